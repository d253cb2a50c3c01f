# SPDX-License-Identifier: Apache-2.0
"""What `starloop doctor` looks for around the store: where it lies, models, work, drafts."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from flows.lock import drafts, holder_of
from stages.errors import LockedError, StoreError
from stages.policies.checkpoint import MARKER, is_complete, model_id_of
from stages.rows import Model, Trajectory
from stages.shards import read_shard
from store.checks import CHECKS, Finding
from store.checks import behind as copy_behind
from store.db import Store

Mounts = Sequence[tuple[str, str]]  # mount point, type of file system

_REMOTE = re.compile(
    r"nfs\d?|cifs|smb\w*|afpfs|9p|webdav|ceph|glusterfs|fuse(blk|ctl)?(\..*)?|(osx|mac)fuse\w*"
)
_SYNCED = re.compile(
    r"(dropbox|onedrive|google ?drive|icloud ?drive)( .*)?"
    r"|mobile documents|com~apple~clouddocs|cloudstorage",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A store and the mount table of the machine it lies on."""

    store: Store
    mounts: Mounts

    @property
    def runs(self) -> list[Path]:
        """The folders of runs: those that have been locked once."""
        return sorted(lock.parent for lock in self.store.folder.glob("*/lock"))


def refuse_under_way(place: Place) -> None:
    """LockedError while a run is worked on: it would wait for the checks, and at last give up."""
    for folder in place.runs:
        holder = holder_of(folder)
        if holder is not None:
            raise LockedError(
                f"run {folder.name} is being worked on by process {holder}, and would have to wait "
                "for the doctor, who reads the whole store: ask again when the run has ended"
            )


def location(place: Place) -> Iterator[Finding]:
    """the store lies on a local disk that nothing synchronizes"""
    path = place.store.path.resolve()
    mend = "move the store's folder to a local disk: locks and renames are not kept there"
    within = [(point, kind) for point, kind in place.mounts if path.is_relative_to(point)]
    point, kind = max(reversed(within), key=lambda mount: len(mount[0]), default=("", ""))
    if _REMOTE.fullmatch(kind):
        yield Finding(f"the store lies on {kind} (mounted at {point})", str(path), mend)
    synced = [part for part in path.parent.parts if _SYNCED.fullmatch(part)]
    if synced:
        yield Finding(
            f"the store lies in a folder that is synchronized: {synced[0]}", str(path), mend
        )


def models(place: Place) -> Iterator[Finding]:
    """every model's folder is there and holds what the model's id says"""
    with place.store.transaction() as tx:
        rows = tx.ask("doctor_models")
    for row in rows:
        freed = row.pop("freed")
        model = Model(**row)
        folder = place.store.folder / model.path
        what = "" if freed and not folder.exists() else _fault(model, folder)
        if what:
            mend = "put the folder back from a copy, or start a run under another --name"
            yield Finding(f"model {model.model_id}: {what}", str(folder), mend)


def _fault(model: Model, folder: Path) -> str:
    """What is wrong with a checkpoint folder; empty where nothing is."""
    if not folder.is_dir():
        return "its folder is gone"
    marked = (folder / MARKER).exists()
    if model.origin == "update" and not marked:
        return f"its folder has no {MARKER} marker"
    if marked and not is_complete(folder, anew=True):
        return f"files are missing, or have another size or hash than {MARKER} says"
    try:
        found = model_id_of(folder, anew=True)
    except (OSError, ValueError, AttributeError) as error:
        return f"its folder cannot be read ({error})"
    return "" if found == model.model_id else f"its folder holds model {found}"


def shards(place: Place) -> Iterator[Finding]:
    """no sampled row waits in a work folder"""
    for folder in sorted(path for run in place.runs for path in run.glob("work/*/shards")):
        run, key = folder.parents[2].name, folder.parent.name
        rows: set[UUID] = set()
        for path in sorted(folder.glob("*.parquet")):
            try:
                rows |= {row.trajectory_id for row in read_shard(path, Trajectory)}
            except StoreError as error:
                yield Finding(f"run {run}: {error}", str(path), "delete it and run again")
        with place.store.transaction() as tx:
            stored = tx.rows(Trajectory, "trajectories_by_id", ids=list(rows))
        waiting = rows - {row.trajectory_id for row in stored}
        if waiting:
            yield Finding(
                f"run {run}: {len(waiting):,} sampled rows are not in the store yet (step {key})",
                str(folder),
                f"run the command of run {run} again: it goes on from them",
            )


def left_drafts(place: Place) -> Iterator[Finding]:
    """no draft of an ended process is left"""
    for path in sorted(drafts(place.store)):
        yield Finding(
            "a draft is left of a process that has ended", str(path), "the next run removes it"
        )


def behind(place: Place) -> Iterator[Finding]:
    """the readers' copy has all that the store has"""
    return copy_behind(place.store)


Look = Callable[[Place], Iterator[Finding]]
AROUND: tuple[Look, ...] = (location, left_drafts)
BESIDE: tuple[Look, ...] = (models, shards, behind)  # these need a store that can be read
OUTLINE = tuple((check.__doc__ or "").strip() for check in (*AROUND, *CHECKS, *BESIDE))


def mount_table() -> Mounts:
    """Where which file system is mounted, on this machine; empty where that cannot be told."""
    if sys.platform == "linux":
        return parse_mountinfo(Path("/proc/self/mountinfo").read_text(errors="replace"))
    try:
        done = subprocess.run(["/sbin/mount"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return parse_mount(done.stdout)


def parse_mountinfo(text: str) -> Mounts:
    """Mount points and types of Linux's /proc/self/mountinfo."""
    table = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), before.split(" ")[4])
        table.append((point, after.split(" ")[0]))
    return table


def parse_mount(text: str) -> Mounts:
    """Mount points and types of what `mount` prints on macOS."""
    return re.findall(r"^.* on (/.*) \((\w+)[,)]", text, re.M)
