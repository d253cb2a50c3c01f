# SPDX-License-Identifier: Apache-2.0
"""The one place that opens DuckDB: one short transaction at a time, and a copy for readers.

DuckDB lets one process write and shuts all others out meanwhile, so the file is opened for one
transaction and closed again. If somebody else has it open, the writer waits and says who.
Readers get a copy beside the store, renamed into place, and never stop a run.
"""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from stages.errors import ConfigError, LockedError, SlotConflict, StoreError
from stages.ids import Id
from stages.rows import Trajectory
from stages.shards import sync_folder, to_table

SCHEMA_VERSION = 1
Row = TypeVar("Row")
Say = Callable[[str], None]

_WRITER: dict[str, Any] = {"storage_compatibility_version": "v1.5.0"}
_READER: dict[str, Any] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
}


@cache
def query(name: str) -> str:
    """The text of `store/queries/NAME.sql`."""
    return (Path(__file__).parent / "queries" / f"{name}.sql").read_text()


def table_of(row_type: type) -> str:
    """The table of a row type: its name in snake case."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", row_type.__name__).lower()


def as_row(row_type: type[Row], values: Mapping[str, Any]) -> Row:
    """A row from a query's columns; lists become tuples."""
    return row_type(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})


class Transaction:
    """Reads and writes inside one transaction of the store."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def ask(
        self, name: str, /, ids: Sequence[Id] | None = None, **values: Any
    ) -> list[dict[str, Any]]:
        """The rows of a named query as dicts; `ids` are its table `wanted (position, id)`."""
        cursor = self._run(name, ids, values)
        columns = [column[0] for column in cursor.description or []]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]

    def rows(
        self, row_type: type[Row], name: str, /, ids: Sequence[Id] | None = None, **values: Any
    ) -> list[Row]:
        """The rows of a named query that selects a row type's columns."""
        return [as_row(row_type, row) for row in self.ask(name, ids, **values)]

    def insert(self, row_type: type[Row], rows: Sequence[Row]) -> set[tuple[Any, ...]]:
        """Append the rows whose key is not there yet; returns the keys that were new.

        Raises StoreError if two of the rows share a key and differ.
        """
        key: tuple[str, ...] = row_type.KEY  # type: ignore[attr-defined]
        unique: dict[tuple[Any, ...], Row] = {}
        for row in rows:
            values = tuple(getattr(row, name) for name in key)
            if unique.setdefault(values, row) != row:
                raise StoreError(
                    f"two {table_of(row_type)} rows with the same key {values} differ: "
                    "nothing was stored; ids must follow from content"
                )
        if not unique:
            return set()
        return self.insert_table(row_type, to_table(row_type, list(unique.values())))

    def insert_table(self, row_type: type[Row], table: pa.Table) -> set[tuple[Any, ...]]:
        """Append an Arrow table of a row type, keys already there left out."""
        key = ", ".join(row_type.KEY)  # type: ignore[attr-defined]
        self._connection.register("incoming", table)
        try:
            if row_type is Trajectory:
                self._refuse_other_content()
            sql = query("insert").format(table=table_of(row_type), key=key)
            return set(self._connection.execute(sql).fetchall())
        finally:
            self._connection.unregister("incoming")

    def append(self, name: str, /, **values: Any) -> None:
        """Run a named statement that writes."""
        self._connection.execute(query(name), values)

    def _refuse_other_content(self) -> None:
        for clash in self._connection.execute(query("slot_conflict")).fetchall():
            raise SlotConflict(
                f"trajectory {clash[0]} is in the store with other content ({clash[1]}, now "
                f"{clash[2]}): a slot is sampled once; nothing was stored",
                clash[0],
            )

    def _run(
        self, name: str, ids: Sequence[Id] | None, values: Mapping[str, Any]
    ) -> duckdb.DuckDBPyConnection:
        if ids is not None:
            wanted = pa.table(
                {
                    "position": pa.array(range(len(ids)), pa.int64()),
                    "id": pa.array([i.bytes for i in ids], pa.uuid()),
                }
            )
            self._connection.register("wanted", wanted)
        return self._connection.execute(query(name), dict(values))


class Store:
    """A store file; every method opens it, does one thing and closes it."""

    def __init__(self, path: Path, say: Say | None = None, patience_s: float = 600.0) -> None:
        self.path = path
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

    def create(self) -> None:
        """Make the file with its schema if it is not there; refuse one of another version."""
        if not self.path.exists():
            self._create()
        with self.transaction() as tx:
            (found,) = tx.ask("store_version")
        if found["version"] != SCHEMA_VERSION:
            raise StoreError(
                f"store {self.path} has schema {found['version']}, this starloop writes "
                f"{SCHEMA_VERSION}: use the starloop that made it, or another --store"
            )

    def _create(self) -> None:
        from importlib.metadata import version

        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(f"{self.stem}.{os.getpid()}.tmp")
        connection = duckdb.connect(str(draft), config=_WRITER)
        connection.execute("begin")
        connection.execute((Path(__file__).parent / "schema.sql").read_text())
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
            shutil.copyfile(self.path, draft)
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

    def reader(self) -> duckdb.DuckDBPyConnection:
        """A read-only, locked-down connection to the copy (made now if there is none)."""
        if not self.path.exists():
            raise StoreError(
                f"there is no store at {self.path}: start a run first (`make star`), or name one "
                "with --store or STARLOOP_STORE"
            )
        if not self.copy.exists():
            self.snapshot()
        try:
            # Attached, not opened: DuckDB hands out an open file again by its path, and a copy that
            # was renamed into place would not be seen while an older reader is open.
            connection = duckdb.connect(config=_READER)
            path = str(self.copy).replace("'", "''")
            connection.execute(f"attach '{path}' as store (read_only)")
            connection.execute("use store")
            connection.execute("set enable_external_access = false")
            connection.execute("set lock_configuration = true")
            return connection
        except duckdb.Error as error:
            raise StoreError(
                f"the readers' copy {self.copy} cannot be opened "
                f"({str(error).splitlines()[0]}): delete it, it is made anew from the store"
            ) from error

    def _connect(self) -> duckdb.DuckDBPyConnection:
        deadline, pause, told = time.monotonic() + self._patience_s, 0.02, False
        while True:
            try:
                return duckdb.connect(str(self.path), config=_WRITER)
            except duckdb.Error as error:
                holder = re.search(r"PID (\d+)", str(error))
                if "Could not set lock" not in str(error):
                    raise StoreError(_first_line(error, self.path)) from error
                who = f"process {holder[1]}" if holder else "another process"
                if time.monotonic() > deadline:
                    raise LockedError(
                        f"store {self.path} is held by {who}: end it or close its connection, "
                        "then run again"
                    ) from error
                if not told and pause > 0.5:
                    self._say(f"waiting for the store: {who} has {self.path} open")
                    told = True
                time.sleep(pause)
                pause = min(pause * 1.5, 2.0)


def read(
    connection: duckdb.DuckDBPyConnection, name: str, /, **values: Any
) -> list[dict[str, Any]]:
    """The rows of a named query on a reader's connection."""
    return Transaction(connection).ask(name, **values)


def ask_user_sql(store: Store, sql: str) -> pa.Table:
    """The answer to one statement of a user's that only reads, from the readers' copy.

    Raises ConfigError for a statement that does not read, does not parse or does not run.
    """
    with store.reader() as connection:
        try:
            statements = connection.extract_statements(sql)
            if len(statements) != 1:
                raise ConfigError(f"sql: {len(statements)} statements were given: give one")
            if statements[0].type != duckdb.StatementType.SELECT:
                kind = statements[0].type.name
                raise ConfigError(
                    f"sql: {kind} is not allowed, only SELECT is: runs alone write to the store"
                )
            return connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise ConfigError(f"sql: {' '.join(str(error).split())}") from error


def _first_line(error: duckdb.Error, path: Path) -> str:
    if "not a valid DuckDB database file" in str(error):
        return (
            f"store {path} is not a DuckDB file: name another with --store or STARLOOP_STORE, "
            "or move it away"
        )
    return f"store {path} cannot be opened: {str(error).splitlines()[0]}"
