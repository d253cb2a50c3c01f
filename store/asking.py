# SPDX-License-Identifier: Apache-2.0
"""SQL from outside: one statement that reads, asked of the readers' copy within limits."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from stages.errors import ConfigError
from store.db import Store
from store.limits import Guard, Limits, Stuck

if TYPE_CHECKING:
    import duckdb

BATCH = 10_000


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it comes: columns (of different names) with their types, then batches.

    What is done within `untimed()` does not count as the query's time.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    untimed: Callable[[], AbstractContextManager[None]]


@contextmanager
def ask_user_sql(
    store: Store, sql: str, limits: Limits | None = None, stuck: Stuck | None = None
) -> Iterator[Answer]:
    """The answer to one statement of a user's that only reads, from the readers' copy.

    Raises ConfigError for a statement that does not read, does not parse, does not run or takes
    more than `limits`, also from `batches`; `stuck` as in `Guard`.
    """
    limits = limits or Limits()
    with (
        store.reader(f"{limits.memory}B", limits.threads) as connection,
        Guard(connection.interrupt, limits, stuck) as guard,
    ):
        reader = guard.call(lambda: _reader(connection, sql))
        schema = pa.schema(
            [
                field.with_name(name)
                for field, name in zip(reader.schema, unique(reader.schema.names), strict=True)
            ]
        )
        yield Answer(schema, _batches(guard, reader, schema), guard.untimed)


def _reader(connection: "duckdb.DuckDBPyConnection", sql: str) -> pa.RecordBatchReader:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise ConfigError(f"sql: {len(statements)} statements were given: give one")
    kind = statements[0].type.name
    if kind == "MULTI":
        raise ConfigError("sql: a PIVOT must name its values: write PIVOT … ON column IN (…)")
    if kind != "SELECT":
        raise ConfigError(
            f"sql: {kind} is not allowed, only SELECT is: runs alone write to the store"
        )
    return connection.sql(sql).to_arrow_reader(BATCH)


def _batches(
    guard: Guard, reader: pa.RecordBatchReader, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    while (batch := guard.call(lambda: next(reader, None))) is not None:
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def unique(names: list[str]) -> list[str]:
    """The names, a later one of two equal ones with a number: a, a_1."""
    taken: dict[str, None] = {}
    for name in names:
        found, number = name, 0
        while found in taken or (number and found in names):
            number += 1
            found = f"{name}_{number}"
        taken[found] = None
    return list(taken)
