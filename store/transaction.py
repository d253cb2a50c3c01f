# SPDX-License-Identifier: Apache-2.0
"""Reading and writing inside one transaction: named queries in, rows out."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from stages.errors import SlotConflict, StoreError
from stages.ids import Id
from stages.rows import Trajectory

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Row = TypeVar("Row")


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


def unique_table(row_type: type[Row], rows: Sequence[Row]) -> "pa.Table":
    """Rows as an Arrow table, each key once: slow work that needs no open store.

    Raises StoreError if two of the rows share a key and differ.
    """
    from stages.shards import to_table

    key: tuple[str, ...] = row_type.KEY  # type: ignore[attr-defined]
    unique: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        values = tuple(getattr(row, name) for name in key)
        if unique.setdefault(values, row) != row:
            raise StoreError(
                f"two {table_of(row_type)} rows with the same key {values} differ: "
                "nothing was stored; ids must follow from content"
            )
    return to_table(row_type, list(unique.values()))


class Transaction:
    """Reads and writes inside one transaction of the store."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
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

    def insert(self, row_type: type[Row], rows: "Sequence[Row] | pa.Table") -> set[tuple[Any, ...]]:
        """Append the rows, or their Arrow table, whose key is not there yet; returns the new keys.

        Raises StoreError if two of the rows share a key and differ.
        """
        table = unique_table(row_type, rows) if isinstance(rows, Sequence) else rows
        if not table.num_rows:
            return set()
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
    ) -> "duckdb.DuckDBPyConnection":
        if ids is not None:
            import pyarrow as pa

            wanted = pa.table(
                {
                    "position": pa.array(range(len(ids)), pa.int64()),
                    "id": pa.array([i.bytes for i in ids], pa.uuid()),
                }
            )
            self._connection.register("wanted", wanted)
        return self._connection.execute(query(name), dict(values))


def read(
    connection: "duckdb.DuckDBPyConnection", name: str, /, **values: Any
) -> list[dict[str, Any]]:
    """The rows of a named query on a reader's connection."""
    return Transaction(connection).ask(name, **values)


def read_table(connection: "duckdb.DuckDBPyConnection", name: str, /, **values: Any) -> "pa.Table":
    """The answer of a named query on a reader's connection as an Arrow table, ids as text."""
    found: pa.Table = connection.sql(query(name), params=values).to_arrow_table()
    return found
