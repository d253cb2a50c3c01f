# SPDX-License-Identifier: Apache-2.0
"""Retention: which checkpoints stay on disk, and how the others are freed.

A checkpoint may go only if an update made it, it lies in the store's `models` under its id, no
run's `keep` names it and nothing that a run still has to do needs it; its model row stays. That is
decided, and the folder renamed to a draft, while the store is held: no other process can come to
need it meanwhile. A draft whose process is gone is swept.
"""

import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.context import Run
from flows.fork import whole_rounds
from flows.lock import leftovers, run_lock
from report.text import size
from stages.errors import LockedError
from stages.ids import Id
from stages.settings import canonical
from stages.sync import sync_folder
from store.db import Store
from store.transaction import Transaction

Rule = Mapping[str, Any]
Uses = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that may go: where it lies, its bytes, and the runs that used it."""

    model_id: Id
    folder: Path
    bytes: int
    first: tuple[Id, int]  # a run that used it, and in which round
    runs: tuple[str, ...]


def retain(run: Run) -> None:
    """After a refresh: free what the run's `keep` lets go and no other run needs."""
    freed = [] if run.config.keep == "all" else free(run.store, (run.name,))
    _free_optimizers(run)
    if freed:
        count = f"{len(freed)} checkpoint{'s' * (len(freed) > 1)}"
        total = size(sum(each.bytes for each in freed))
        run.screen.say(f"{count} freed, {total} (keep: {run.config.keep})")


def _free_optimizers(run: Run) -> None:
    """Remove optimizer states that no refresh goes on from: not of a round's end, or model gone."""
    folders = {folder.name: folder for folder in run.optimizers.glob("*")}
    if len(folders) < 2:
        return
    with run.store.transaction() as tx:
        made = tx.ask("optimizers_kept")
    for row in made:
        folder = folders.get(str(row["update_id"]))
        kept = row["ends"] and (run.models / str(row["model_id"])).is_dir()
        if folder and not kept:
            shutil.rmtree(folder, ignore_errors=True)


def free(store: Store, runs: Collection[str], busy: Collection[str] = ()) -> list[Checkpoint]:
    """Free the checkpoints that `freeable` names; each is an event."""
    moved: list[tuple[Path, Path]] = []
    try:
        with store.transaction() as tx:
            found = freeable(tx, store, runs, busy)
            for each in found:
                draft = each.folder.with_name(f"{each.folder.name}.{os.getpid()}.tmp")
                each.folder.rename(draft)
                moved.append((each.folder, draft))
                _record(tx, each)
    except BaseException:
        for folder, draft in moved:
            draft.rename(folder)
        raise
    if moved:
        sync_folder(store.folder / "models")
    for _, draft in moved:
        shutil.rmtree(draft)
    return found


def freeable(
    tx: Transaction, store: Store, runs: Collection[str], busy: Collection[str] = ()
) -> list[Checkpoint]:
    """The checkpoints used by `runs` that may go; runs that are `busy` keep all of theirs."""
    used = tx.ask("models_used")
    needed = _needed(tx, used, busy)
    found = []
    for model_id in dict.fromkeys(use["model_id"] for use in used if use["run"] in runs):
        uses = [use for use in used if use["model_id"] == model_id]
        folder = store.folder / "models" / str(model_id)
        ours = uses[0]["origin"] == "update" and store.folder / uses[0]["path"] == folder
        if ours and model_id not in needed and folder.is_dir() and not folder.is_symlink():
            first = (uses[0]["run_id"], uses[0]["round"])
            names = tuple(dict.fromkeys(use["run"] for use in uses))
            found.append(Checkpoint(model_id, folder, bytes_in(folder), first, names))
    return found


def _needed(tx: Transaction, used: Uses, busy: Collection[str]) -> set[Id]:
    """The models that some run's rule, resume, references or base need."""
    rules = {rule["run_id"]: rule for rule in tx.ask("keep_rules")}
    referred = tx.ask("models_referred")
    bases = {Path(rule["base_path"]).name for rule in rules.values() if rule["base_path"]}
    needed = {use["model_id"] for use in used if str(use["model_id"]) in bases}
    for run_id in {use["run_id"] for use in used}:
        rule = rules.get(run_id)
        uses = [use for use in used if use["run_id"] == run_id]
        if rule is None or rule["keep"] == "all" or rule["name"] in busy:
            needed |= {use["model_id"] for use in uses}
            continue
        done = whole_rounds(tx, rule, rule["every"])
        last = max(done, default=0)
        ended_with = {use["round"]: use["model_id"] for use in uses}
        needed |= {uses[-1]["model_id"], *(u["model_id"] for u in uses if u["round"] == 0)}
        kept = [last, *_kept_rounds(tx, rule, done)]
        needed |= {ended_with[number] for number in kept if number in ended_with}
        if last < rule["target"]:
            needed |= {row["model_id"] for row in referred if row["run_id"] == run_id}
    return needed


def _kept_rounds(tx: Transaction, rule: Rule, done: Sequence[int]) -> list[int]:
    """The rounds whose models `best` or `last(n)` names."""
    if rule["keep"] == "best":
        table = tx.ask("round_table", run=rule["name"])
        measured = [row for row in table if row["pass_at_1"] is not None]
        best = max(measured, key=lambda row: (row["pass_at_1"], -row["round"]), default=None)
        return [best["round"]] if best else []
    (n,) = re.findall(r"\d+", rule["keep"])
    return list(done[-int(n) :])


def litter(tx: Transaction, store: Store, runs: Collection[str]) -> list[tuple[str, Path]]:
    """Workspaces of committed steps that were left, each with its run; nobody works on `runs`."""
    found = []
    for rule in tx.ask("keep_rules"):
        if rule["name"] in runs:
            last = max(whole_rounds(tx, rule, rule["every"]), default=-1)
            paths = leftovers(tx, store.folder / rule["name"], rule["run_id"], last)
            found += [(rule["name"], path) for path in paths]
    return found


def _record(tx: Transaction, each: Checkpoint) -> None:
    run_id, number = each.first
    detail = {"model": str(each.model_id), "bytes": each.bytes, "runs": each.runs}
    tx.append(
        "add_event",
        run_id=run_id,
        round=number,
        refresh=None,
        kind="freed",
        message=f"checkpoint {each.model_id} was freed: {size(each.bytes)}",
        detail=canonical(detail),
    )


def bytes_in(path: Path) -> int:
    """What a file or a folder holds."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_size for file in files if file.is_symlink() or file.is_file())


@contextmanager
def hold(store: Store, runs: Sequence[str]) -> Iterator[dict[str, str]]:
    """Hold the runs that nobody works on; yields the others, each with its process."""
    busy = {}
    with ExitStack() as locks:
        for name in runs:
            if (store.folder / name).is_dir():
                try:
                    locks.enter_context(run_lock(store.folder / name, name))
                except LockedError:
                    busy[name] = (store.folder / name / "lock").read_text(errors="replace").strip()
        yield busy
