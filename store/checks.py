# SPDX-License-Identifier: Apache-2.0
"""What `starloop doctor` looks for in the store file: each check reads in sets and counts."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stages.errors import StoreError
from store.db import DuckDBError, Store
from store.files import copy_file
from store.transaction import Transaction, read
from store.versions import SCHEMA_VERSION

_BACK = "put back a copy of the store from before (a backup, or the readers' copy)"
_BY_HAND = "the store was changed by other hands than starloop's: " + _BACK


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, where, and how it is mended."""

    what: str
    where: str
    mend: str


class Unreadable(StoreError):
    """The store cannot be read on: what else is wrong cannot be told."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.what)
        self.finding = finding


def schema(tx: Transaction) -> Iterator[Finding]:
    """the file opens, its log replays, and its schema is the one that this starloop writes"""
    try:
        (row,) = tx.ask("store_version")
    except DuckDBError as error:
        what = f"the file is no store of starloop's, or damaged ({_first_line(error)})"
        raise Unreadable(Finding(what, "store_info", "name another with --store")) from error
    found = row["version"]
    if found == SCHEMA_VERSION:
        return
    mend = "`starloop snapshot` brings it up, a backup is kept"
    if found > SCHEMA_VERSION:
        mend = "use the newer starloop that made it"
    what = f"the store has schema {found}, this starloop has {SCHEMA_VERSION}"
    raise Unreadable(Finding(what, "store_info", mend))
    yield


def blocks(tx: Transaction) -> Iterator[Finding]:
    """every value of every table can be read"""
    tx.ask("doctor_blocks")
    yield from ()


def orphans(tx: Transaction) -> Iterator[Finding]:
    """every trajectory, verdict, training set, update, model and evaluation is used by a run"""
    for row in tx.ask("doctor_orphans"):
        yield Finding(
            f"no run uses {_many(row['count'], row['what'] + ' row')}",
            f"{row['what']} {row['example']}",
            _BY_HAND,
        )


def dangling(tx: Transaction) -> Iterator[Finding]:
    """every id that names a row names one that is there"""
    for row in tx.ask("doctor_dangling"):
        yield Finding(
            f"{_many(row['count'], 'row')} of {row['what']} without its {row['target']} row",
            f"{row['what'].split()[0]} {row['example']}",
            _BY_HAND,
        )


def minted(tx: Transaction) -> Iterator[Finding]:
    """every id is what its row's content makes"""
    for row in tx.ask("doctor_ids"):
        yield Finding(
            f"{_many(row['count'], 'id')} of {row['what']} not made of the row's content",
            f"{row['what']} {row['example']}",
            _BY_HAND,
        )


def parents(tx: Transaction) -> Iterator[Finding]:
    """what a model rests on is what its update and the rows that it visited say"""
    for row in tx.ask("doctor_parents"):
        yield Finding(
            f"model_parent does not fit the updates: {row['count']} × {row['what']}",
            f"{'model' if row['what'] == 'update missing' else 'update'} {row['example']}",
            _BY_HAND,
        )


Check = Callable[[Transaction], Iterator[Finding]]
# In this order: where one of the first two fails, the others could not be asked.
CHECKS: tuple[Check, ...] = (schema, blocks, orphans, dangling, minted, parents)


def look_inside(store: Store) -> list[Finding]:
    """The findings of all checks, from one transaction; LockedError where the store is held.

    Raises Unreadable where the store cannot be opened or read on.
    """
    wal = wal_of(store)
    before = _stamp(wal)
    try:
        with store.transaction() as tx:
            found = _all(tx)
    except Unreadable:
        raise
    except StoreError as error:  # LockedError is none: it goes up
        raise Unreadable(_not_opened(wal, str(error))) from error
    if before is not None and before == _stamp(wal):
        found.append(_unreplayed(wal, "DuckDB passes it over"))
    return found


def _all(tx: Transaction) -> list[Finding]:
    try:
        return [finding for check in CHECKS for finding in check(tx)]
    except DuckDBError as error:
        what = f"a block of the store is damaged ({_first_line(error)})"
        raise Unreadable(Finding(what, "the store file", _BACK)) from error


def recover(store: Store) -> list[Path]:
    """Back the store up and move a write-ahead log that does not replay aside.

    The two files made; none where the log replays or there is none. LockedError where another
    process has the store open.
    """
    wal = wal_of(store)
    before = _stamp(wal)
    try:
        found = look_inside(store)
    except Unreadable as error:
        found = [error.finding]
    if before is None or before != _stamp(wal) or str(wal) not in {one.where for one in found}:
        return []
    number = 1
    while (backup := store.path.with_name(f"{store.stem}.unrecovered-{number}.duckdb")).exists():
        number += 1
    aside = backup.with_name(backup.name + ".wal")
    copy_file(store.path, backup)
    wal.rename(aside)
    return [backup, aside]


def behind(store: Store) -> Iterator[Finding]:
    """the readers' copy has all that the store has"""
    if not store.copy.exists():
        return
    with store.transaction() as tx:
        (now,) = tx.ask("doctor_extent")
    mend = "renew it: `starloop snapshot`"
    try:
        with store.reader() as connection:
            (then,) = read(connection, "doctor_extent")
    except (StoreError, DuckDBError) as error:
        yield Finding(f"the readers' copy cannot be read: {error}", str(store.copy), mend)
        return
    if now != then:
        lacks = " and ".join(
            _many(now[name] - then[name], name[:-1]) for name in now if now[name] != then[name]
        )
        yield Finding(f"the readers' copy is older: it lacks {lacks}", str(store.copy), mend)


def wal_of(store: Store) -> Path:
    """DuckDB's write-ahead log of a store: what was committed and is not in the file yet."""
    return store.path.with_name(store.path.name + ".wal")


def _not_opened(wal: Path, error: str) -> Finding:
    if "replaying WAL" in error:
        return _unreplayed(wal, error.rpartition("replaying WAL file ")[2])
    return Finding(error, "the store file", _BACK)


def _unreplayed(wal: Path, why: str) -> Finding:
    return Finding(
        f"the write-ahead log does not replay ({why})",
        str(wal),
        "`starloop doctor --recover` moves it aside and keeps a backup; what was committed last "
        "is then lost, and the command of that run does it again",
    )


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file does; None where it is not there or empty."""
    with suppress(FileNotFoundError):
        stat = path.stat()
        return (stat.st_ino, stat.st_mtime_ns, stat.st_size) if stat.st_size else None
    return None


def _first_line(error: Exception) -> str:
    """DuckDB's own errors may hold a stack trace."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"
