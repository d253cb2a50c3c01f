# SPDX-License-Identifier: Apache-2.0
"""Files of other tools become a run of their own: one committed step, in one transaction.

The step's key is made of the files' contents and the options, so a file is taken in once.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.commit import Output, store_step
from flows.lock import run_lock, sweep
from report.imports import import_lines
from stages import ids
from stages.errors import ConfigError, TaskDataError
from stages.ids import Id
from stages.imports import FORMATS, Kind
from stages.imports.files import file_hash, records_of, sayable
from stages.imports.taking import File, Ingested, Options, counts, left_out
from stages.ingest import ingest
from stages.policies.checkpoint import load_tokenizer, tokenizer_hash
from stages.rows import Origin, Problem
from stages.settings import canonical
from store.db import Store
from store.manifest import manifest
from store.transaction import Transaction

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: checked options, files still unread."""

    files: Sequence[Path]
    kind: Kind
    format: str
    mapping: Mapping[str, str]
    origin: Origin
    task: str
    split: str
    tokenizer: Path | None
    correct_at: float | None
    name: str


def take_in(asked: Request, store: Store, say: Say) -> None:
    """Store the rows of the files as a run, and say what they were and what was left out."""
    begun = time.monotonic()
    hashes = _hashes(asked.files)
    tokenizer = None if asked.tokenizer is None else _tokenizer(asked.tokenizer)
    identity = _identity(asked, hashes)
    key = ids.step_key("import", 1, hashes, canonical(identity))
    run_id = ids.run_id(asked.name)
    if store.path.exists() and _known(store, key, asked.name, say):
        return
    files = _read(asked, hashes)
    options = Options(
        asked.kind, asked.format, asked.task, asked.split, asked.origin,
        canonical({k: v for k, v in identity.items() if k not in ("files", "correct_at", "split")}),
        asked.correct_at,
    )  # fmt: skip
    taken = ingest(files, options, tokenizer)
    _refuse_empty(files)
    with run_lock(store.folder / asked.name, asked.name):
        sweep(store)
        store.create()
        if _known(store, key, asked.name, say):
            return
        with store.transaction() as tx:
            detail = {
                "counts": counts(taken),
                **left_out(files, options),
                "notes": _notes(tx, taken, asked.split),
            }
            lines = import_lines(asked.kind, detail)
            config = {**identity, "files": _named(asked, hashes)}
            tx.append(
                "begin_run",
                run_id=run_id,
                name=asked.name,
                recipe="import",
                config=canonical(config),
                identity=canonical(identity),
                manifest=canonical(manifest()),
                forked_from=None,
                forked_at_round=None,
            )
            place = {"run_id": run_id, "round": 0, "refresh": 0}
            output = Output(taken.tables(), taken.uses())
            wall_s = time.monotonic() - begun
            store_step(tx, asked.name, place, "import", key, output, wall_s, 0.0)
            tx.append(
                "add_event",
                **place,
                kind="imported",
                message=lines[0],
                detail=canonical(detail),
            )
        store.snapshot()
    say(f"run {asked.name}: {lines[0]}")
    for line in lines[1:]:
        say(line)


def _hashes(paths: Sequence[Path]) -> list[str]:
    """The files' SHA-256; ConfigError where two are the same."""
    found: dict[str, Path] = {}
    for path in paths:
        same = found.setdefault(file_hash(path), path)
        if same is not path:
            raise ConfigError(f"{path} has the same content as {same}: give it once")
    return list(found)


def _tokenizer(folder: Path) -> Any:
    if not folder.is_dir():
        raise ConfigError(
            f"--tokenizer: {folder} is no folder: name a local folder that has tokenizer.json"
        )
    return load_tokenizer(folder)


def _identity(asked: Request, hashes: Sequence[str]) -> dict[str, Any]:
    """All that shapes the rows; no name and no path is in it."""
    return {
        "files": list(hashes),
        "as": asked.kind,
        "format": asked.format,
        "map": dict(asked.mapping),
        "origin": asked.origin,
        "task": asked.task,
        "split": asked.split,
        "tokenizer": None if asked.tokenizer is None else tokenizer_hash(asked.tokenizer),
        "correct_at": asked.correct_at,
    }


def _named(asked: Request, hashes: Sequence[str]) -> list[dict[str, str]]:
    named = zip(asked.files, hashes, strict=True)
    return [{"name": sayable(path), "sha256": sha256} for path, sha256 in named]


def _known(store: Store, key: Id, name: str, say: Say) -> bool:
    """Whether these files are in the store; ConfigError where the name has another content."""
    with store.transaction() as tx:
        same = tx.ask("step_by_key", step_key=key)
        taken = tx.ask("run_by_name", name=name)
    if same:
        say(f"imported already as run {same[0]['run']}: nothing was changed")
        return True
    if taken:
        what = "an import of other files or options" if taken[0]["recipe"] == "import" else "a run"
        raise ConfigError(f"--name: {name} is {what} in this store: give another --name")
    return False


def _read(asked: Request, hashes: Sequence[str]) -> list[File]:
    files = []
    for path, sha256 in zip(asked.files, hashes, strict=True):
        source = records_of(path)
        reading = FORMATS[asked.format].read(source, asked.kind, asked.mapping)
        files.append(File(sayable(path), sha256, source.where.rpartition(" ")[2], reading))
    return files


def _refuse_empty(files: Sequence[File]) -> None:
    if any(file.reading.rows for file in files):
        return
    reasons = sorted({reason for file in files for reason in file.reading.refused})
    raise TaskDataError(
        f"{files[0].name}: no row can be taken in ({'; '.join(reasons)}): name a file with rows "
        "that can"
    )


def _notes(tx: Transaction, taken: Ingested, split: str) -> list[str]:
    """What people should know of rows that were taken in."""
    notes = []
    if taken.cut_unknown:
        notes.append(
            "no column tells whether a completion was cut off; taken as finished: "
            f"{taken.cut_unknown:,}"
        )
    unanswered = sum(not problem.answer for problem in taken.problems.values())
    if unanswered:
        notes.append(f"without a reference answer: {_problems(unanswered)}")
    stored = tx.rows(Problem, "problems_by_id", ids=list(taken.problems))
    others = sum(problem.split != split for problem in stored)
    if others:
        notes.append(
            f"in the store under another split than {split}, and kept there: {_problems(others)}"
        )
    return notes


def _problems(count: int) -> str:
    return f"{count:,} problem{'s' * (count != 1)}"
