# SPDX-License-Identifier: Apache-2.0
"""`starloop doctor --recover`: in the place of a store that cannot be read, the most that can be.

A log that does not replay is kept up to its damaged place. For a file that cannot be read stands
the readers' copy, with the log if DuckDB says that it belongs to it: then nothing is lost.
"""

import os
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from stages.errors import StoreError
from store import checkpoint
from store.checks import FILE, Finding, Unreadable, blocks, look_inside, when
from store.db import DuckDBError, Store, open_file
from store.files import copy_file
from store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Recovery:
    """The files that keep what was there, and what is lost."""

    kept: list[Path]
    lost: str


@dataclass(frozen=True, slots=True)
class _Way:
    """A file to go back to, how many bytes of the log to replay on it, and what is then lost."""

    file: Path
    log: int
    lost: str


def recover(store: Store) -> Recovery | None:
    """Back up a store that cannot be read, and put in its place the most that can be.

    None where the store and its log can be read. Raises StoreError where nothing can be put in its
    place, LockedError where another process has the store open.
    """
    log = checkpoint.wal_of(store.path)
    try:
        found = look_inside(store)
    except Unreadable as error:
        found = [error.finding]
    faults = [one for one in found if one.where in (FILE, str(log))]
    if not faults:
        return None
    draft = store.path.with_name(f"{store.stem}.{os.getpid()}.tmp")
    try:
        for way in _ways(store, faults[0]):
            if _makes(way, log, draft):
                kept = _back_up(store, log)
                checkpoint.replace(store.path, draft)
                return Recovery(kept, way.lost)
    except OSError as error:
        raise StoreError(
            f"store {store.path} cannot be recovered ({error}): it is as it was; make room or mend "
            "the disk and run the same command again"
        ) from error
    finally:
        checkpoint.remove(draft)
    raise StoreError(f"{faults[0].what}: nothing to recover it from; put back a backup")


def _ways(store: Store, fault: Finding) -> Iterator[_Way]:
    """What to try, the most first."""
    length = checkpoint.bytes_of(checkpoint.wal_of(store.path))
    if fault.where == FILE:
        if store.copy.exists():
            if length:
                yield _Way(store.copy, length, "nothing")
            since = f"what was committed since the readers' copy of {when(store)}"
            yield _Way(store.copy, 0, since)
        return
    place = re.search(r"byte position (\d+)", fault.what)
    if place:
        kept = int(place[1])
        yield _Way(store.path, kept, f"what the log held after its first {kept:,} bytes")
    yield _Way(store.path, 0, "what the log alone held")


def _makes(way: _Way, log: Path, draft: Path) -> bool:
    """Whether it gives a draft of which every value can be read."""
    checkpoint.remove(draft)
    with way.file.open("rb") as file:
        copy_file(file, draft)
    if way.log:
        with log.open("rb") as file:
            checkpoint.wal_of(draft).write_bytes(file.read(way.log))
    try:
        with closing(open_file(draft)) as connection:
            connection.execute("checkpoint")
            list(blocks(Transaction(connection)))
    except DuckDBError:
        return False
    return True


def _back_up(store: Store, log: Path) -> list[Path]:
    """Copies of the file and its log under a name that is free."""
    number = 1
    while (backup := store.path.with_name(f"{store.stem}.unrecovered-{number}.duckdb")).exists():
        number += 1
    pairs = [(store.path, backup)]
    if checkpoint.bytes_of(log):
        pairs.append((log, checkpoint.wal_of(backup)))
    for source, target in pairs:
        with source.open("rb") as file:
            copy_file(file, target)
    return [target for _, target in pairs]
