# SPDX-License-Identifier: Apache-2.0
"""Publishing a checkpoint with its card and training set: to a folder, or to the Hub."""

import json
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from configs.load import check
from flows.models import checkpoint_at
from report.card import Subject, card
from report.things import model_of, run_and_round
from stages.errors import ConfigError, StoreError
from stages.ids import Id
from stages.policies.checkpoint import MARKER, model_id_of
from stages.policies.hub import OFFLINE, offline
from stages.rows import Model
from stages.sync import sync_folder
from store.db import Store
from store.exporting import export
from store.files import copy_file, sync_file
from store.transaction import Transaction

HUB = "hub:"
CARD = "README.md"
_EMPTY = {".gitattributes"}  # what a repository of the Hub has from its start


@dataclass(frozen=True, slots=True)
class Publication:
    """What is published: its files by name, and where each lies now."""

    subject: Subject
    files: Mapping[str, Path]


@contextmanager
def publication(store: Store, at: str) -> Iterator[Publication]:
    """The files of the model that `RUN[@ROUND]` ended with, for as long as the block lasts."""
    with store.reader() as connection:
        tx = Transaction(connection)
        run, number = run_and_round(connection, at)
        thing = model_of(connection, f"{run}@{number}")
        if number == 0:
            raise ConfigError(
                f"{run}@0 is the base, which the run did not make: name a later round"
            )
        (model,) = tx.rows(Model, "model_by_id", model_id=thing.id)
        (found,) = tx.ask("run_by_name", name=run)
        (newest,) = tx.ask("newest_config", run_id=found["run_id"])
        base: Id = model_of(connection, f"{run}@0").id
    folder = checkpoint_at(store, model, lambda: store.folder / model.path)
    subject = Subject(run, number, model, base, check(json.loads(newest["config"])))
    with tempfile.TemporaryDirectory(prefix="starloop-publish-") as beside:
        extra = Path(beside)
        (extra / CARD).write_text(card(store, subject))
        with store.reader() as connection:
            export(connection, run, "training-set", number, "parquet", extra / "training_set")
        yield Publication(
            subject, {**_files(folder, leave={MARKER, CARD}), **_files(extra, leave=set())}
        )


def _files(folder: Path, leave: set[str]) -> dict[str, Path]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {str(path.relative_to(folder)): path for path in found}
    return {name: path for name, path in names.items() if name not in leave}


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder to make; it must not hold anything."""

    path: Path

    def check(self) -> None:
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise ConfigError(f"--to: {self.path} is there and not an empty folder: name another")

    def take(self, what: Publication) -> str:
        """Write the folder whole; where it is."""
        self.check()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        shutil.rmtree(draft, ignore_errors=True)
        try:
            for name, source in what.files.items():
                target = draft / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with source.open("rb") as file:
                    copy_file(file, target)
                sync_file(target)
            if (copied := model_id_of(draft)) != what.subject.model.model_id:
                raise StoreError(
                    f"the copy of the checkpoint is model {copied}, and {what.subject.run}@"
                    f"{what.subject.round} is {what.subject.model.model_id}: its files changed "
                    "meanwhile; nothing was written, run the same command again"
                )
            draft.rename(self.path)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        sync_folder(self.path.parent)
        return str(self.path)


@dataclass(frozen=True, slots=True)
class Hub:
    """A model repository of the Hugging Face Hub: private, made if it is not there."""

    name: str

    def check(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", self.name):
            raise ConfigError(f"--to: {HUB}{self.name} is not allowed: write {HUB}OWNER/NAME")

    def take(self, what: Publication) -> str:
        """Upload everything in one commit; its address."""
        from huggingface_hub import CommitOperationAdd, HfApi
        from huggingface_hub.utils.tqdm import disable_progress_bars

        self.check()
        if offline():
            raise ConfigError(
                f"--to: {OFFLINE}={os.environ[OFFLINE]} forbids the Hub: unset it, or name a folder"
            )
        disable_progress_bars()
        api, made = HfApi(), False
        try:
            if api.repo_exists(self.name):
                self._refuse_full(api)
            else:
                api.create_repo(self.name, private=True)
                made = True
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # a training set beside its model
                done = api.create_commit(
                    self.name,
                    [CommitOperationAdd(name, path) for name, path in what.files.items()],
                    commit_message=f"{what.subject.run}, round {what.subject.round}, by starloop",
                )
        except ConfigError:
            raise
        except Exception as error:
            said = " ".join(str(error).split())[:300]
            left = "; the repository was made and is empty" if made else ""
            raise ConfigError(
                f"--to: nothing was published to {HUB}{self.name}{left} ({type(error).__name__}: "
                f"{said}): check the name, the network and HF_TOKEN, or name a folder"
            ) from error
        return str(done.commit_url)

    def _refuse_full(self, api: Any) -> None:
        held = set(api.list_repo_files(self.name)) - _EMPTY
        if held:
            raise ConfigError(
                f"--to: {HUB}{self.name} holds {len(held)} files ({min(held)} …): name another "
                "repository"
            )


def target(to: str) -> Folder | Hub:
    """Where `--to` points; ConfigError where nothing can be written there."""
    hub = to.startswith(HUB)
    found = Hub(to.removeprefix(HUB)) if hub else Folder(Path(to).expanduser().absolute())
    found.check()
    return found
