# SPDX-License-Identifier: Apache-2.0
"""Folding the write-ahead log into the store, whose file is never written in place.

DuckDB's own checkpoint rewrites blocks of the file in place, and a process that is killed within
such a write leaves a file that cannot be read. So a commit only appends to the log beside the file
(`STORE.wal`), which every opening replays, and the log is folded in now and then:

1. file and log are copied to a draft, which DuckDB checkpoints and syncs;
2. the draft is renamed to `STEM.folded.duckdb`: from here on it is the store;
3. the log, which the draft holds, is removed;
4. the folded file is renamed onto the store.

Killed before 2, nothing has happened; killed after it, the next process that opens the store does
3 and 4. Whoever does a step holds DuckDB's lock on the file that has the store's name; a process
that gets this lock later sees that the name has gone to another file, and opens that one.

The lock is one of fcntl(2): the system drops it when the process closes any descriptor of the
file. So nothing here closes one before the connection is closed.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from stages.sync import sync_folder
from store.files import copy_file, sync_file

if TYPE_CHECKING:
    import duckdb

ASK_THE_DOCTOR = "; `starloop doctor` says what can be done"
LOG_BYTES = 2 << 20  # a log may grow so large, or to this part of the file:
LOG_SHARE = 32  # replaying takes about 9 ms a MiB at each opening, folding copies the file


def wal_of(path: Path) -> Path:
    """DuckDB's write-ahead log of a file: what was committed and is not in the file yet."""
    return path.with_name(path.name + ".wal")


def folded_of(path: Path) -> Path:
    """The file that is to take the store's place."""
    return path.with_name(f"{path.name.removesuffix('.duckdb')}.folded.duckdb")


def bytes_of(path: Path) -> int:
    """The size of a file, 0 where there is none."""
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def is_long(path: Path) -> bool:
    """Whether a store's log is to be folded now, within a round."""
    return bytes_of(wal_of(path)) > max(LOG_BYTES, bytes_of(path) // LOG_SHARE)


def identity(path: Path) -> tuple[int, int] | None:
    """Which file has this name; None where none has."""
    with suppress(FileNotFoundError):
        stat = path.stat()
        return stat.st_dev, stat.st_ino
    return None


def is_open_here(path: Path) -> bool:
    """Whether this process has the very file open that has this name now."""
    named = identity(path)
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):  # the listing's own descriptor is closed by now
            stat = os.fstat(int(name))
            if (stat.st_dev, stat.st_ino) == named:
                return True
    return False


def is_settled(path: Path, say: Callable[[str], None]) -> bool:
    """Whether the file that this process has locked is the store, and may be used.

    False where the store's name has gone to another file before it was locked, or where a fold
    that was cut short had to be finished: then the store is to be opened again.
    """
    if not is_open_here(path):
        return False
    if not folded_of(path).exists():
        return True
    finish(path)
    say(f"store {path}: a process was killed while it folded the log in; that is now finished")
    return False


def not_opened(path: Path, error: Exception) -> str:
    """Why DuckDB does not open the store, in one line."""
    if "not a valid DuckDB database file" in str(error):
        return (
            f"store {path} is not a DuckDB file: name another with --store or STARLOOP_STORE, "
            "or move it away"
        )
    why = str(error).splitlines()[0]
    return f"store {path} cannot be opened: {why}{ASK_THE_DOCTOR}"


def whole_copy(
    source: BinaryIO,
    path: Path,
    draft: Path,
    connect: Callable[[Path], "duckdb.DuckDBPyConnection"],
) -> None:
    """Copy a store, open as `source`, to a draft that holds in itself what the log holds."""
    remove(draft)
    copy_file(source, draft)
    if bytes_of(wal_of(path)):
        with wal_of(path).open("rb") as log:
            copy_file(log, wal_of(draft))
        connection = connect(draft)
        try:
            connection.execute("checkpoint")
        finally:
            connection.close()
        wal_of(draft).unlink(missing_ok=True)  # empty, if it is there


def replace(path: Path, draft: Path) -> None:
    """Let a draft be the store from now on: it holds all that is kept, the log goes."""
    sync_file(draft)
    draft.rename(folded_of(path))
    sync_folder(path.parent)
    finish(path)


def finish(path: Path) -> None:
    """Put the folded file in the store's place."""
    wal_of(path).unlink(missing_ok=True)
    sync_folder(path.parent)
    folded_of(path).rename(path)
    sync_folder(path.parent)


def remove(draft: Path) -> None:
    """Remove a draft and its log, also those that a killed process of the same id left."""
    for path in (wal_of(draft), draft):
        path.unlink(missing_ok=True)
