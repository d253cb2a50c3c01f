# SPDX-License-Identifier: Apache-2.0
"""The one place that opens DuckDB: one short transaction at a time, and a copy for readers.

DuckDB lets one process write and shuts all others out meanwhile, so the file is opened for one
transaction and closed again. If somebody else has it open, the writer waits and says who.
Readers get a copy beside the store, renamed into place, and never stop a run.
"""

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb

from stages.errors import LockedError, StoreError
from stages.shards import sync_folder
from store.files import copy_file
from store.transaction import Transaction, query
from store.versions import SCHEMA_VERSION, ddl, migrations, surface, table_comments

DuckDBError = duckdb.Error
Say = Callable[[str], None]

_WRITER: dict[str, Any] = {"storage_compatibility_version": "v1.5.0"}
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
        """Back the file up, then go from schema to schema, one transaction each."""
        backup = self.path.with_name(f"{self.stem}.schema-{found}.duckdb")
        draft = self.path.with_name(f"{self.stem}.{os.getpid()}.tmp")
        connection = self._connect()
        try:
            found = self._version(Transaction(connection))
            connection.execute("checkpoint")
            if found < SCHEMA_VERSION:
                copy_file(self.path, draft)
                draft.rename(backup)
                sync_folder(self.folder)
            for number, statements in migrations(found):
                connection.execute("begin")
                connection.execute(statements)
                if number == SCHEMA_VERSION:
                    connection.execute(table_comments() + surface())
                connection.execute(query("set_version"), {"version": number})
                connection.execute("commit")
                connection.execute("checkpoint")
                if number == SCHEMA_VERSION:
                    self._say(
                        f"store {self.path} brought to schema {number}; as it was: {backup.name}"
                    )
        except (OSError, duckdb.Error) as error:
            raise StoreError(
                f"store {self.path} cannot be brought to schema {SCHEMA_VERSION} ({error}): it is "
                "as it was; make room or mend the disk and run the same command again"
            ) from error
        finally:
            draft.unlink(missing_ok=True)
            connection.close()

    def _create(self) -> None:
        from importlib.metadata import version

        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(f"{self.stem}.{os.getpid()}.tmp")
        connection = _open(str(draft), _WRITER)
        connection.execute("begin")
        connection.execute(ddl())
        connection.execute(
            query("begin_store"), {"version": SCHEMA_VERSION, "made_by": version("starloop")}
        )
        connection.execute("commit")
        connection.execute("checkpoint")
        connection.close()
        with suppress(FileExistsError):
            os.link(draft, self.path)
        draft.unlink()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """One transaction: all of it is stored at the end, or nothing."""
        connection = self._connect()
        try:
            connection.execute("begin")
            yield Transaction(connection)
            connection.execute("commit")
        except (duckdb.IOException, duckdb.TransactionException) as error:
            raise StoreError(
                f"store {self.path} cannot be written ({' '.join(str(error).split())}): nothing of "
                "this step was stored; make room or mend the disk and run the same command again"
            ) from error
        finally:
            connection.close()

    def snapshot(self) -> Path:
        """Rename a fresh copy into the readers' place and return its path."""
        draft = self.copy.with_name(f"{self.stem}.snapshot.{os.getpid()}.tmp")
        connection = self._connect()
        try:
            connection.execute("checkpoint")
            copy_file(self.path, draft)
            draft.rename(self.copy)
        except (OSError, duckdb.Error) as error:
            draft.unlink(missing_ok=True)
            raise StoreError(
                f"the readers' copy {self.copy} cannot be written ({error}): make room or mend the "
                "disk and run the same command again"
            ) from error
        finally:
            connection.close()
        sync_folder(self.folder)
        return self.copy

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
            connection = _open(":memory:", {**_READER, **given})
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

    def _connect(self) -> duckdb.DuckDBPyConnection:
        begun, pause, tell_after = time.monotonic(), 0.02, 1.0
        while True:
            try:
                connection = _open(str(self.path), _WRITER)
            except duckdb.Error as error:
                holder = re.search(r"PID (\d+)", str(error))
                if "Could not set lock" not in str(error):
                    raise StoreError(_first_line(error, self.path)) from error
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
                self.waited_s += time.monotonic() - begun if pause > 0.02 else 0.0
                return connection


def _open(path: str, config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """A connection that draws no progress bar: our commands' output is for people and programs."""
    connection = duckdb.connect(path, config=config)
    connection.execute("set enable_progress_bar = false")
    return connection


@contextmanager
def scratch(
    folder: Path, memory: str, threads: int | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory for a computation of ours, within `memory` (`4GB`) and `threads`.

    What does not fit is written to a folder of its own in `folder`, which is removed afterwards.
    Raises StoreError where memory or disk do not suffice.
    """
    limits: dict[str, Any] = {"memory_limit": memory, "preserve_insertion_order": False}
    if threads is not None:
        limits["threads"] = threads
    with tempfile.TemporaryDirectory(prefix="scratch-", suffix=".tmp", dir=folder) as spill:
        connection = _open(":memory:", {**_READER, **limits, "temp_directory": spill})
        try:
            yield connection
        except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
            raise StoreError(
                f"{memory} of memory and the disk at {folder} do not suffice "
                f"({str(error).splitlines()[0]}): give it more, or make room"
            ) from error
        finally:
            connection.close()


def _first_line(error: duckdb.Error, path: Path) -> str:
    if "not a valid DuckDB database file" in str(error):
        return (
            f"store {path} is not a DuckDB file: name another with --store or STARLOOP_STORE, "
            "or move it away"
        )
    return f"store {path} cannot be opened: {str(error).splitlines()[0]}"
