# SPDX-License-Identifier: Apache-2.0
"""docs/sql.md is what the schema says of itself, and its examples are answered."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import small_history
from running import ROOT

from report.reference import Example, examples, main, page
from stages.rows import StepOutput, Verdict, Verifier
from store.asking import ask_user_sql
from store.db import Store
from store.versions import ddl

PAGE = ROOT / "docs" / "sql.md"
EXAMPLES = examples()


@pytest.fixture(scope="module")
def rejudged(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The small history; another verifier has judged a1 wrong afterwards."""
    store = Store(tmp_path_factory.mktemp("rejudged") / "store.duckdb")
    store.create()
    strict, verdict, a1 = (small_history.named(name) for name in ("Vstrict", "a1strict?", "a1"))
    place: dict[str, Any] = {
        "run_id": small_history.mint("r", "one"), "round": 1, "refresh": 0, "step": "reverify x",
    }  # fmt: skip
    with store.transaction() as tx:
        small_history.write(tx)
        tx.insert(Verifier, [Verifier(strict, "strict", "1", "{}")])
        tx.insert(
            Verdict,
            [Verdict(verdict, a1, strict, 0, "wrong", 0.0, None, "mismatch", "strong", "none")],
        )
        tx.insert(
            StepOutput,
            [StepOutput(**place, run="one", kind="verdict", id=verdict, reused=False, first=True)],
        )
    return store


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, set[str]]]:
    """What the schema has, as DuckDB says."""
    with duckdb.connect() as connection:
        connection.execute(ddl())
        yield {
            kind: {name for (name,) in connection.execute(sql).fetchall()}
            for kind, sql in {
                "table": "select table_name from duckdb_tables()",
                "view": "select view_name from duckdb_views() where not internal",
                "macro": "select function_name from duckdb_functions() where not internal",
                "column": "select column_name from duckdb_columns() where not internal",
            }.items()
        }


def test_the_page_is_what_the_schema_says_now(tmp_path: Path) -> None:
    main(tmp_path / "sql.md")
    assert PAGE.read_text() == (tmp_path / "sql.md").read_text(), "run `make docs`"


def test_the_page_names_everything_in_the_schema(names: dict[str, set[str]]) -> None:
    text = PAGE.read_text()
    titles = re.findall(r"^### `(\w+)(\(.*\))?`$", text, re.M)
    assert [name for name, _ in titles if [t for t, _ in titles].count(name) > 1] == []
    assert {name for name, parameters in titles if parameters} == names["macro"]
    assert {name for name, parameters in titles if not parameters} == names["table"] | names["view"]
    assert names["column"] == set(re.findall(r"^- `(\w+)` [a-z]", text, re.M))


def test_the_surface_comes_first() -> None:
    heads = re.findall(r"^## (.*)$", PAGE.read_text(), re.M)
    assert heads == ["Views", "Table macros", "Macros", "Tables"]


def test_no_sentence_ends_twice_and_nothing_is_missing() -> None:
    text = PAGE.read_text()
    assert re.findall(r"\.\.$|: $|None|\n\n\n", text, re.M) == []


def test_every_view_and_macro_has_one_example_that_asks_it(names: dict[str, set[str]]) -> None:
    about = [example.about for example in EXAMPLES]
    assert sorted(about) == sorted(names["view"] | names["macro"])
    assert [e.about for e in EXAMPLES if not re.search(rf"\b{e.about}\b", e.sql)] == []
    assert [e.about for e in EXAMPLES if not e.question.endswith("?")] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.about)
def test_an_example_of_the_page_is_answered_with_rows(rejudged: Store, example: Example) -> None:
    assert f"{example.question}\n\n```sql\n{example.sql}\n```\n" in PAGE.read_text()
    with ask_user_sql(rejudged, example.sql.replace("'star'", "'one'")) as found:
        answered = pa.Table.from_batches(found.batches, found.schema)
    assert answered.num_rows > 0


def test_a_change_of_a_comment_changes_the_page(told: Store, tmp_path: Path) -> None:
    changed = Store(tmp_path / "store.duckdb")
    changed.create()
    with duckdb.connect(str(changed.path)) as connection:
        connection.execute("comment on column run.name is 'Mine'")
        connection.execute("comment on view round_summary is 'Ours'")
        connection.execute("comment on macro table trained_by is 'Theirs'")
    before, after = page(told).splitlines(), page(changed).splitlines()
    assert [line for line in after if line not in before] == [
        "Ours.",
        "Theirs.",
        "- `name` varchar: Mine",
    ]
