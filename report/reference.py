# SPDX-License-Identifier: Apache-2.0
"""The page about the store's SQL, made of the store's own comments: `make docs`."""

import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from store.db import Store
from store.transaction import query, read

HEAD = """\
# The store in SQL

This page is made from the comments of the schema by `make docs`. Ask with `starloop sql "…"`, or in
a notebook with `starloop.open().sql("…")`. Both read a copy of the store that is renewed after each
round and by `starloop snapshot`, and can change nothing: no files, no network, no settings.

`starloop sql` takes one statement that reads, and stops it after 60 seconds or at 4 GB of memory
(half of the machine where that is less); `--timeout`, `--memory` and `--threads` say otherwise.
`starloop.open(memory="8GB", threads=4)` has the same bound of memory and none of time. Nothing
spills to disk. A table shows `--rows` rows, 1,000 if not said; `--format csv`, `json` and `parquet`
write every row as it comes.

Build on the views and macros: their names and columns stay. `star` stands for a run.
"""
IDS = "Ids are `uuid`; a macro takes one as such or as text."


@dataclass(frozen=True, slots=True)
class Example:
    """A question about a view or macro, and its SQL."""

    about: str
    question: str
    sql: str


def examples() -> list[Example]:
    """The examples of `reference.sql`, in its order."""
    text = Path(__file__).with_name("reference.sql").read_text()
    found = re.findall(r"^-- (\w+)\n-- (.+)\n((?:(?!--).+\n)+)", text, re.M)
    return [Example(about, question, sql.strip()) for about, question, sql in found]


def page(store: Store) -> str:
    """The page of a store's schema: views and macros with an example each, then the tables."""
    with store.reader() as connection:
        columns = read(connection, "reference_relations")
        macros = read(connection, "reference_macros")
        answers = {
            macro["name"]: _answer(connection, macro)
            for macro in macros
            if macro["kind"] == "table_macro"
        }
    relations = [list(rows) for _, rows in groupby(columns, lambda row: (row["kind"], row["name"]))]
    views = {rows[0]["name"]: rows for rows in relations if rows[0]["kind"] == "view"}
    tables = [rows for rows in relations if rows[0]["kind"] == "table"]
    named = {macro["name"]: macro for macro in macros}
    asked = examples()
    return "\n".join(
        [
            HEAD,
            "## Views\n",
            *(_view(views[each.about], each) for each in asked if each.about in views),
            f"## Table macros\n\n{IDS}\n",
            *(
                _macro(named[each.about], each) + f"\nColumns: {answers[each.about]}.\n"
                for each in asked
                if each.about in answers
            ),
            "## Macros\n",
            *(
                _macro(named[each.about], each)
                for each in asked
                if each.about in named.keys() - answers.keys()
            ),
            "## Tables\n",
            *(_head(rows[0]["name"], rows[0]["comment"]) + _columns(rows) for rows in tables),
        ]
    )


def _answer(connection: Any, macro: Mapping[str, Any]) -> str:
    """A table macro's columns with their types."""
    arguments = ", ".join(["null::varchar"] * len(macro["parameters"]))
    sql = query("reference_columns").format(macro=macro["name"], arguments=arguments)
    return ", ".join(f"`{name}` {type_}" for name, type_ in connection.execute(sql).fetchall())


def _head(title: str, comment: str) -> str:
    return f"### `{title}`\n\n{comment}.\n\n"


def _view(columns: Sequence[Mapping[str, Any]], example: Example) -> str:
    head = _head(columns[0]["name"], columns[0]["comment"])
    return head + _shown(example) + "\n" + _columns(columns)


def _macro(macro: Mapping[str, Any], example: Example) -> str:
    head = _head(f"{macro['name']}({', '.join(macro['parameters'])})", macro["comment"])
    return head + _shown(example)


def _shown(example: Example) -> str:
    return f"{example.question}\n\n```sql\n{example.sql}\n```\n"


def _columns(columns: Sequence[Mapping[str, Any]]) -> str:
    lines = (
        f"- `{row['column_name']}` {row['data_type']}{', or null' * row['nullable']}: {row['says']}"
        for row in columns
    )
    return "\n".join(lines) + "\n"


def main(path: Path) -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store.duckdb")
        store.create()
        path.write_text(page(store))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
