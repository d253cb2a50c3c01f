# SPDX-License-Identifier: Apache-2.0
"""The one place that opens DuckDB: one short transaction at a time, and a copy for readers.

DuckDB lets one process write and shuts all others out meanwhile, so the file is opened for one
transaction and closed again (`instance.py`). If somebody else has it open, the writer waits and
says who.
A commit is appended to the log beside the file, which `checkpoint.py` folds in now and then.
Readers get a copy beside the store, renamed into place, and never stop a run.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import duckdb

from stages.errors import LockedError, StoreError
from stages.sync import sync_folder
from store import checkpoint
from store.files import copy_file
from store.instance import Attached
from store.transaction import Transaction
from store.versions import SCHEMA_VERSION, bring_up, make

DuckDBError = duckdb.Error
NO_ROOM = (duckdb.OutOfMemoryException, duckdb.IOException)
Say = Callable[[str], None]

_WRITER: dict[str, Any] = {
    "storage_compatibility_version": "v1.5.0",
    "checkpoint_threshold": "1000TB",  # no commit checkpoints: see store/checkpoint.py
}
_READER: dict[str, Any] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "temp_directory": "",  # a query that needs more memory fails, and no disk fills
}


class Store:
    """A store file; every method opens it, does one thing and closes it."""

    def __init__(self, path: Path, say: Say | None = None, patience_s: float = 60.0) -> None:
        self.path = path
        self.waited_s = 0.0  # for other processes to let go of the file
        self._say = say or (lambda message: None)
        self._patience_s = patience_s

    @property
    def folder(self) -> Path:
        """The folder that holds the store, its copy, models and runs."""
        return self.path.parent

    @property
    def stem(self) -> str:
        """The file's name without `.duckdb`: what the names of copy and drafts begin with."""
        return self.path.name.removesuffix(".duckdb")

    @property
    def copy(self) -> Path:
        """The readers' copy."""
        return self.path.with_name(f"{self.stem}.snapshot.duckdb")

    def must_exist(self) -> None:
        """StoreError where there is no file yet."""
        if not self.path.exists():
            raise StoreError(
                f"there is no store at {self.path}: start a run first (`make star`), or name one "
                "with --store or STARLOOP_STORE"
            )

    def create(self) -> None:
        """Make the file if it is not there; bring one of an older schema up to this one's."""
        if not self.path.exists():
            self._create()
        with self.transaction() as tx:
            found = self._version(tx)
        if found < SCHEMA_VERSION:
            self._migrate(found)

    def _version(self, tx: Transaction) -> int:
        """The file's schema; StoreError where it is newer than this starloop, or none of ours."""
        try:
            (row,) = tx.ask("store_version")
        except duckdb.CatalogException as error:
            raise StoreError(
                f"{self.path} is a DuckDB file but no store of starloop's: name another with "
                "--store or STARLOOP_STORE"
            ) from error
        found = int(row["version"])
        if found > SCHEMA_VERSION:
            raise StoreError(
                f"store {self.path} has schema {found}, this starloop writes {SCHEMA_VERSION}: use "
                "the newer starloop that made it, or another --store"
            )
        return found

    def _migrate(self, found: int) -> None:
        """Keep the file as it was, and go from schema to schema in a draft that takes its place."""
        backup = self.path.with_name(f"{self.stem}.schema-{found}.duckdb")
        with (
            self._refusing(f"store {self.path} cannot be brought to schema {SCHEMA_VERSION}"),
            self._whole_draft() as (tx, draft),
        ):
            if self._version(tx) == SCHEMA_VERSION:
                return
            with draft.open("rb") as whole:
                copy_file(whole, self._draft("backup"))
            self._draft("backup").rename(backup)
            with closing(open_file(draft)) as connection:
                bring_up(connection, found)
            checkpoint.replace(self.path, draft)
        self._say(f"store {self.path} brought to schema {SCHEMA_VERSION}; as it was: {backup.name}")

    def _create(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self._draft()
        checkpoint.remove(draft)
        with closing(open_file(draft)) as connection:
            make(connection)
        with suppress(FileExistsError):
            os.link(draft, self.path)
        draft.unlink()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """One transaction: all of it is stored at the end, or nothing."""
        attached, failed = self._connect(), True
        try:
            attached.connection.execute("begin")
            yield Transaction(attached.connection)
            attached.connection.execute("commit")
            failed = False
        except (duckdb.IOException, duckdb.TransactionException) as error:
            raise StoreError(
                f"store {self.path} cannot be written ({' '.join(str(error).split())}): nothing of "
                "this step was stored; make room or mend the disk and run the same command again"
            ) from error
        finally:
            attached.close(failed)
        if checkpoint.is_long(self.path):
            self._fold()

    def snapshot(self) -> Path:
        """Fold the log in, rename a fresh copy into the readers' place and return its path."""
        self._fold()
        draft = self._draft("snapshot")
        with self._refusing(f"the readers' copy {self.copy} cannot be written"):
            try:
                with self._held() as (_, source):
                    copy_file(source, draft)
                    draft.rename(self.copy)
            finally:
                draft.unlink(missing_ok=True)
        sync_folder(self.folder)
        return self.copy

    def _fold(self) -> None:
        """Let the store's file hold what its log holds; nothing is done where there is no log."""
        if checkpoint.bytes_of(checkpoint.wal_of(self.path)):
            what = f"store {self.path}: its log stays beside it and cannot be folded in"
            with self._refusing(what), self._whole_draft() as (_, draft):
                checkpoint.replace(self.path, draft)

    @contextmanager
    def _refusing(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, duckdb.Error) as error:
            raise StoreError(
                f"{what} ({' '.join(str(error).split())}): make room or mend the disk and run the "
                "same command again"
            ) from error

    @contextmanager
    def _whole_draft(self) -> Iterator[tuple[Transaction, Path]]:
        """The store locked, to ask, and a draft that holds all that it holds."""
        draft = self._draft()
        try:
            with self._held() as (attached, source):
                if not attached.alone:
                    raise StoreError(
                        f"store {self.path} is open twice in this process: end the other "
                        "transaction first"
                    )
                checkpoint.whole_copy(source, self.path, draft, open_file)
                yield Transaction(attached.connection), draft
        finally:
            checkpoint.remove(draft)
            self._draft("backup").unlink(missing_ok=True)

    def reader(
        self, memory: str | None = None, threads: int | None = None
    ) -> duckdb.DuckDBPyConnection:
        """A read-only, locked-down connection to the copy (made now if there is none).

        `memory` (`4GB`) and `threads` bound what its queries take; None leaves DuckDB's default.
        """
        self.must_exist()
        if not self.copy.exists():
            self.create()
            self.snapshot()
        try:
            # Attached, not opened: DuckDB hands out an open file again by its path, and a copy that
            # was renamed into place would not be seen while an older reader is open.
            limits = {"memory_limit": memory, "threads": threads}
            given = {name: value for name, value in limits.items() if value is not None}
            connection = in_memory(given)
            path = str(self.copy).replace("'", "''")
            connection.execute(f"attach '{path}' as store (read_only)")
            connection.execute("use store")
            self._refuse_old_copy(connection)
            connection.execute("set enable_external_access = false")
            connection.execute("set lock_configuration = true")
            return connection
        except duckdb.Error as error:
            raise StoreError(
                f"the readers' copy {self.copy} cannot be opened "
                f"({str(error).splitlines()[0]}): delete it, it is made anew from the store"
            ) from error

    def _refuse_old_copy(self, connection: duckdb.DuckDBPyConnection) -> None:
        found = self._version(Transaction(connection))
        if found < SCHEMA_VERSION:
            raise StoreError(
                f"the readers' copy {self.copy} has schema {found}, this starloop reads "
                f"{SCHEMA_VERSION}: `starloop snapshot` brings store and copy up to it, a backup "
                "is kept"
            )

    def _draft(self, what: str = "") -> Path:
        """A file of this process, which `sweep` removes if the process is killed."""
        return self.path.with_name(f"{self.stem}{'.' * bool(what)}{what}.{os.getpid()}.tmp")

    @contextmanager
    def _held(self) -> Iterator[tuple[Attached, BinaryIO]]:
        """The store locked, and its file to copy from: closed last, or the lock would go."""
        with ExitStack() as last, closing(self._connect()) as attached:
            yield attached, last.enter_context(self.path.open("rb"))

    def _connect(self) -> Attached:
        begun, pause, tell_after = time.monotonic(), 0.02, 1.0
        while True:
            named = checkpoint.identity(self.path)
            try:
                attached = Attached(self.path, instance)
            except duckdb.Error as error:
                holder = re.search(r"PID (\d+)", str(error))
                if "Could not set lock" not in str(error):
                    if named != checkpoint.identity(self.path):
                        continue
                    raise StoreError(checkpoint.not_opened(self.path, error)) from error
                who = f"process {holder[1]}" if holder else "another process"
                waited = time.monotonic() - begun
                if waited > self._patience_s:
                    raise LockedError(
                        f"store {self.path} is held by {who}: end it or close its connection, "
                        "then run again"
                    ) from error
                if waited > tell_after:
                    self._say(f"waiting for the store: {who} has {self.path} open")
                    tell_after += 300.0
                time.sleep(pause)
                pause = min(pause * 1.2, 0.1 if waited < 10.0 else 2.0)
            else:
                if checkpoint.is_settled(self.path, self._say):
                    self.waited_s += time.monotonic() - begun if pause > 0.02 else 0.0
                    return attached
                attached.close(failed=True)


def open_file(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection that writes to a file of the store's kind."""
    return _open(str(path), _WRITER)


def instance(path: Path) -> duckdb.DuckDBPyConnection:
    """A DuckDB instance that a file of the store's kind is attached to."""
    connection = _open(":memory:", {**_WRITER, "temp_directory": f"{path}.tmp"})
    connection.execute("pragma disable_checkpoint_on_shutdown")
    return connection


def in_memory(limits: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """A connection to no file, which loads and reads nothing of its own accord."""
    return _open(":memory:", {**_READER, **limits})


def _open(path: str, config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """A connection that draws no progress bar: our commands' output is for people and programs."""
    connection = duckdb.connect(path, config=config)
    connection.execute("set enable_progress_bar = false")
    return connection
