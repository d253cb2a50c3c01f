# SPDX-License-Identifier: Apache-2.0
"""The schema's number, its text, and the way from an older number to this one.

`schema.sql` has the tables, `surface.sql` the macros and views; a store is made from both.
`migrations/NNNN.sql` takes a store from number NNNN − 1 to NNNN: tables and their rows. The
comments and the surface are made anew from the two files after the last one.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from store.transaction import query

if TYPE_CHECKING:
    import duckdb

SCHEMA_VERSION = 5

_HERE = Path(__file__).parent


def ddl() -> str:
    """Everything that makes an empty store."""
    return (_HERE / "schema.sql").read_text() + surface()


def surface() -> str:
    """Macros and views, made anew whatever was there."""
    return (_HERE / "surface.sql").read_text()


def table_comments() -> str:
    """The statements of `schema.sql` that comment on tables and columns."""
    text = (_HERE / "schema.sql").read_text()
    return "\n".join(re.findall(r"^comment on .*?;$", text, re.M | re.S))


def migrations(found: int) -> Iterator[tuple[int, str]]:
    """The numbers above `found` with their statements, in order."""
    for number in range(found + 1, SCHEMA_VERSION + 1):
        yield number, (_HERE / "migrations" / f"{number:04}.sql").read_text()


def make(connection: "duckdb.DuckDBPyConnection") -> None:
    """Fill an empty file."""
    from importlib.metadata import version

    connection.execute("begin")
    connection.execute(ddl())
    values = {"version": SCHEMA_VERSION, "made_by": version("starloop")}
    connection.execute(query("begin_store"), values)
    connection.execute("commit")
    connection.execute("checkpoint")


def bring_up(connection: "duckdb.DuckDBPyConnection", found: int) -> None:
    """Go from schema `found` to this starloop's."""
    for number, statements in migrations(found):
        connection.execute("begin")
        connection.execute(statements)
        if number == SCHEMA_VERSION:
            connection.execute(table_comments() + surface())
        connection.execute(query("set_version"), {"version": number})
        connection.execute("commit")
        connection.execute("checkpoint")
