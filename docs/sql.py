# SPDX-License-Identifier: Apache-2.0
"""Writes docs/sql.md from the comments in the store's schema: `make docs`."""

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb

from store.versions import SCHEMA_VERSION, ddl

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE / "sql_examples.sql"
HEAD = f"""# The store in SQL

Made by `make docs` from the comments in `store/schema.sql` and `store/surface.sql`; schema
{SCHEMA_VERSION}. Ask with `starloop sql "…"`, `make sql Q="…"` or `starloop.open().sql("…")`. The
views and macros are the surface to build on: their columns stay; the tables below them may grow.

Ids are UUIDs over content; a run is named by its name. Filter views by `run`: then only that run's
rows are read. Table macros take an id as text or as UUID: `from trained_by('08bb519d-…')`.

`starloop sql` takes one statement that reads, and stops it after 60 seconds or at 4 GB of memory
(half of the machine where that is less); `--timeout`, `--memory` and `--threads` say otherwise.
`starloop.open(memory="8GB", threads=4)` has the same bound of memory and none of time. Neither
reads files, nor spills to disk. A table shows `--rows` rows, 1,000 if not said; `--format csv`,
`json` and `parquet` write every row as it comes.
"""


def examples() -> dict[str, tuple[str, str]]:
    """Of each object: the question, and the SQL that answers it."""
    found = re.findall(r"^-- (\w+): (.*)\n((?:(?!--).+\n?)+)", EXAMPLES.read_text(), re.M)
    return {name: (question, sql.strip()) for name, question, sql in found}


def page() -> str:
    """The whole page."""
    with duckdb.connect() as connection:
        connection.execute(ddl())
        return "\n".join(_lines(connection)).rstrip() + "\n"


def _lines(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    asked = examples()
    yield HEAD
    yield "## Views\n"
    for name, comment in connection.execute(
        "select view_name, comment from duckdb_views() where not internal order by view_oid"
    ).fetchall():
        yield from _object(connection, name, comment, asked)
    yield "## Macros\n"
    for name, parameters, comment, kind in connection.execute(
        "select function_name, parameters, comment, function_type from duckdb_functions() "
        "where not internal order by function_type, function_oid"
    ).fetchall():
        yield f"### {name}({', '.join(parameters)})\n"
        yield f"{comment}.\n"
        if kind == "table_macro":
            found = connection.execute(
                f"describe from {name}({', '.join(['null'] * len(parameters))})"
            )
            yield f"Columns: {', '.join(f'`{row[0]}`' for row in found.fetchall())}.\n"
        yield from _example(name, asked)
    yield "## Tables\n"
    for name, comment in connection.execute(
        "select table_name, comment from duckdb_tables() order by table_oid"
    ).fetchall():
        yield from _object(connection, name, comment, asked)


def _object(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    comment: str,
    asked: dict[str, tuple[str, str]],
) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"{comment}.\n"
    yield "| column | type | |"
    yield "|---|---|---|"
    columns = connection.execute(
        "select column_name, data_type, comment from duckdb_columns() where table_name = ? "
        "order by column_index",
        [name],
    ).fetchall()
    for column, type_, says in columns:
        yield f"| `{column}` | {type_.lower()} | {says.replace('|', chr(92) + '|')} |"
    yield ""
    yield from _example(name, asked)


def _example(name: str, asked: dict[str, tuple[str, str]]) -> Iterator[str]:
    if name in asked:
        question, sql = asked[name]
        yield f"{question[0].upper()}{question[1:]}\n"
        yield f"```sql\n{sql}\n```\n"


if __name__ == "__main__":
    (HERE / "sql.md").write_text(page())
