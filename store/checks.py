# SPDX-License-Identifier: Apache-2.0
"""What `starloop doctor` looks for in the store file: each check reads in sets and counts."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from stages.errors import StoreError
from store.checkpoint import ASK_THE_DOCTOR, bytes_of, wal_of
from store.db import DuckDBError, Store
from store.transaction import Transaction, read
from store.versions import SCHEMA_VERSION

_BACK = "put back a copy of the store from before (a backup, or the readers' copy)"
FILE = "the store file"
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
    try:
        with store.transaction() as tx:
            used = tx.ask("doctor_log")[0]["wal_size"] != "0 bytes"
            found = _all(store, tx)
    except Unreadable:
        raise
    except StoreError as error:  # LockedError is none: it goes up
        raise Unreadable(_not_opened(store, str(error).removesuffix(ASK_THE_DOCTOR))) from error
    if bytes_of(wal_of(store.path)) and not used:
        found.append(_unreplayed(store, "DuckDB passes it over"))
    return found


def _all(store: Store, tx: Transaction) -> list[Finding]:
    try:
        return [finding for check in CHECKS for finding in check(tx)]
    except DuckDBError as error:
        what = f"a block of the store is damaged ({_first_line(error)})"
        raise Unreadable(_torn(store, what)) from error


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


def _not_opened(store: Store, error: str) -> Finding:
    if "replaying WAL" in error:
        return _unreplayed(store, error.rpartition("replaying WAL file ")[2])
    return _torn(store, error)


def _unreplayed(store: Store, why: str) -> Finding:
    return Finding(
        f"the write-ahead log does not replay ({why})",
        str(wal_of(store.path)),
        "`starloop doctor --recover` keeps a backup and what was committed before the damaged "
        "place; what was committed after it is lost, and the command of that run does it again",
    )


def _torn(store: Store, what: str) -> Finding:
    """What to do about a file that cannot be read: the readers' copy may stand in for it."""
    if store.copy.exists():
        with suppress(StoreError, DuckDBError):
            store.reader().close()
            mend = (
                f"`starloop doctor --recover` keeps a backup and puts back the readers' copy of "
                f"{when(store)}, with the log if it fits to that; else what was committed since is "
                "lost, and the command of that run does it again"
            )
            return Finding(what, FILE, mend)
    return Finding(what, FILE, _BACK)


def when(store: Store) -> str:
    """When the readers' copy was made."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(store.copy.stat().st_mtime))


def _first_line(error: Exception) -> str:
    """DuckDB's own errors may hold a stack trace."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"
