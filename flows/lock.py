# SPDX-License-Identifier: Apache-2.0
"""Holding a run, and clearing away what a holder that was killed left behind."""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stages.errors import ConfigError, LockedError

if TYPE_CHECKING:
    from stages.ids import Id
    from store.db import Store
    from store.transaction import Transaction


@contextmanager
def run_lock(folder: Path, name: str) -> Iterator[None]:
    """Hold a run; LockedError names the process that holds it already."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a+", errors="replace")
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        raise ConfigError(
            f"--name: {name!r} cannot be used, {error.filename} is in the way: move it, or use "
            "another --name"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise LockedError(
                f"run {name} is being worked on by process {holder}: wait for it, or use "
                "another --name"
            ) from error
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def drafts(store: "Store") -> list[Path]:
    """Our own drafts (`….PID.tmp`) whose process is gone."""
    stem = re.escape(store.stem)
    ours = re.compile(
        rf"(?:{stem}(?:\.(?:snapshot|backup))?|(?:tiny|gguf|lora)-[0-9a-f]{{16}}"
        r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9]{1,9})\.tmp(?:\.wal)?"
    )
    found = [*store.folder.glob("*.tmp*"), *store.folder.glob("models/*.tmp")]
    matches = [(path, ours.fullmatch(path.name)) for path in found]
    return [path for path, match in matches if match and not _alive(int(match[1]))]


def sweep(store: "Store") -> None:
    """Remove drafts whose process is gone; nothing else is touched."""
    for path in drafts(store):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def holder_of(folder: Path) -> int | None:
    """The process that works on a run: its lock names one, and it is there."""
    try:
        holder = (folder / "lock").read_text().strip()
    except (OSError, ValueError):
        return None
    known = holder.isascii() and holder.isdigit() and _alive(int(holder))
    return int(holder) if known else None


def sweep_work(store: "Store", folder: Path, run_id: "Id", last: int) -> None:
    """Remove the workspaces that `leftovers` names."""
    with store.transaction() as tx:
        found = leftovers(tx, folder, run_id, last)
    for path in found:
        shutil.rmtree(path, ignore_errors=True)


def leftovers(tx: "Transaction", folder: Path, run_id: "Id", last: int) -> list[Path]:
    """The workspaces of a run's steps that are committed, up to round `last`.

    A step clears its own, but not where it was killed between the two, at the end of a round.
    """
    keys = tx.ask("step_keys", run_id=run_id, round=last)
    paths = [folder / "work" / str(row["step_key"]) for row in keys]
    return [path for path in dict.fromkeys(paths) if path.is_dir()]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
