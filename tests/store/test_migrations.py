# SPDX-License-Identifier: Apache-2.0
"""A store of an older schema, as it was written then, is brought up to this one or left as it was.

`golden/first_light.duckdb.xz` is the store that `make try` and an arm of it left under schema 1.
"""

import lzma
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from stages.errors import StoreError
from store.db import Store
from store.transaction import read
from store.versions import SCHEMA_VERSION, ddl, migrations

GOLDEN = Path(__file__).parent / "golden" / "first_light.duckdb.xz"
LOOKS = {
    "columns": "select table_name, column_name, data_type, is_nullable, comment "
    "from duckdb_columns() where not internal order by all",
    "tables": "select table_name, sql, comment from duckdb_tables() order by all",
    "views": "select view_name, sql, comment from duckdb_views() where not internal order by all",
    "macros": "select function_name, parameters, comment from duckdb_functions() "
    "where not internal order by all",
}


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    path = tmp_path / "store.duckdb"
    path.write_bytes(lzma.decompress(GOLDEN.read_bytes()))
    return path


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def test_every_number_up_to_this_one_has_its_file_and_no_other_is_there() -> None:
    assert [number for number, _ in migrations(1)] == list(range(2, SCHEMA_VERSION + 1))
    files = sorted((Path(__file__).parents[2] / "store" / "migrations").glob("*"))
    assert [f.name for f in files] == [f"{n:04}.sql" for n in range(2, SCHEMA_VERSION + 1)]


@pytest.mark.parametrize("look", LOOKS)
def test_a_migrated_store_has_the_schema_of_a_new_one(golden: Path, look: str) -> None:
    Store(golden).create()
    with duckdb.connect() as fresh:
        fresh.execute(ddl())
        expected = fresh.execute(LOOKS[look]).fetchall()
    assert rows(golden, LOOKS[look]) == expected
    assert rows(golden, "select version from store_info") == [(SCHEMA_VERSION,)]


def test_no_row_is_lost_or_changed(golden: Path) -> None:
    tables = [name for (name,) in rows(golden, "select table_name from duckdb_tables()")]
    widened = {
        "step_run": "exclude (run)",
        "step_output": "exclude (run, first)",
        "decision": "exclude (source)",
        "prompt_set": "exclude (config)",
        "prompt": "exclude (shots, messages)",
        "trajectory": "exclude (from_text)",
        "training_row": "exclude (policy_age)",
    }
    before = {table: set(map(repr, rows(golden, f"from {table}"))) for table in tables}
    Store(golden).create()
    for table in set(tables) - {"store_info"}:
        after = rows(golden, f"select * {widened.get(table, '')} from {table}")
        assert sorted(map(repr, after)) == sorted(before[table]), table


def test_the_new_columns_say_what_the_old_rows_said(golden: Path) -> None:
    Store(golden).create()
    unnamed = "from step_output o join run using (run_id) where o.run <> run.name"
    assert rows(golden, f"select count(*) {unnamed}") == [(0,)]
    twice = "select run_id, kind, id from step_output where first group by all having count(*) <> 1"
    assert rows(golden, twice) == []
    every = "select count(distinct (run_id, kind, id)), count(*) filter (first) from step_output"
    ((distinct, first),) = rows(golden, every)
    assert distinct == first > 0
    late = """select count(*) from step_output a join step_output b
        on a.run = b.run and a.kind = b.kind and a.id = b.id and a.first and b.round < a.round"""
    assert rows(golden, late) == [(0,)]


def test_what_a_model_rests_on_is_what_the_updates_say(golden: Path) -> None:
    """Round 2 of STaR starts from the base and learns from the rows of both policies."""
    Store(golden).create()
    found = rows(
        golden,
        "select o.run, o.round, p.relation, count(*) from model_parent p "
        "join step_output o on o.kind = 'training_update' and o.id = p.update_id "
        "group by all order by all",
    )
    assert found == [
        (run, round_, relation, count)
        for run in ("arm", "try")
        for round_, relation, count in [
            (1, "init", 1), (1, "policy", 1), (2, "init", 1), (2, "policy", 2)
        ]
    ]  # fmt: skip


def test_its_questions_are_answered_as_before(golden: Path) -> None:
    columns = "run, round, pass_at_1, kept, rationalized, hint_leaks, tokens, model_id"
    before = rows(golden, f"select {columns} from round_summary order by run, round")
    ancestry = rows(golden, "from model_ancestry order by all")
    store = Store(golden)
    store.create()
    store.snapshot()
    with store.reader() as connection:
        found = read(connection, "round_table", run=None)
        assert [tuple(row[c] for c in columns.split(", ")) for row in found] == before
        assert connection.execute("from model_ancestry order by all").fetchall() == ancestry
    assert len(before) == 6
    assert len(ancestry) > 0


def test_the_file_as_it_was_is_kept_beside_it_and_the_user_is_told(golden: Path) -> None:
    as_it_was, said = golden.read_bytes(), list[str]()
    Store(golden, said.append).create()
    backup = golden.with_name("store.schema-1.duckdb")
    assert backup.read_bytes() == as_it_was
    assert said == [
        f"store {golden} brought to schema {SCHEMA_VERSION}; as it was: store.schema-1.duckdb"
    ]
    Store(golden, said.append).create()
    assert len(said) == 1
    assert sorted(p.name for p in golden.parent.iterdir()) == [golden.name, backup.name]


def test_a_reader_of_an_old_copy_is_told_what_brings_it_up(golden: Path) -> None:
    old = golden.with_name("store.snapshot.duckdb")
    old.write_bytes(golden.read_bytes())
    with pytest.raises(StoreError, match=r"has schema 1.*`starloop snapshot` brings"):
        Store(golden).reader()
    Store(golden).create()
    Store(golden).snapshot()
    Store(golden).reader().close()


def test_a_store_without_a_copy_is_brought_up_by_its_first_reader(golden: Path) -> None:
    with Store(golden).reader() as connection:
        assert connection.execute("select version from store_info").fetchall() == [
            (SCHEMA_VERSION,)
        ]


def test_a_newer_store_is_refused_and_left_as_it_is(golden: Path) -> None:
    with duckdb.connect(str(golden)) as connection:
        connection.execute("update store_info set version = 99")
    before = golden.read_bytes()
    with pytest.raises(StoreError, match=rf"has schema 99, this starloop writes {SCHEMA_VERSION}"):
        Store(golden).create()
    assert golden.read_bytes() == before
    assert [p.name for p in golden.parent.iterdir()] == [golden.name]


CUT_SHORT = """
import os, signal, sys
from pathlib import Path
import store.versions
from store.db import Store
place = Store(Path(sys.argv[1]))
def cut():
    os.kill(os.getpid(), signal.SIGKILL)
store.versions.surface = cut
place.create()
"""


def test_a_migration_that_is_killed_leaves_the_old_store_and_runs_again(golden: Path) -> None:
    """Killed when the last number's tables are changed and not committed, in the draft."""
    outputs = "select run_id, round, refresh, step, kind, id, reused from step_output order by all"
    before = rows(golden, outputs)
    killed = subprocess.run([sys.executable, "-c", CUT_SHORT, str(golden)], env=dict(os.environ))
    assert killed.returncode == -signal.SIGKILL
    assert rows(golden, outputs) == before
    assert rows(golden, "select version from store_info") == [(1,)]
    Store(golden).create()
    assert rows(golden, outputs) == before
    assert rows(golden, "select version from store_info") == [(SCHEMA_VERSION,)]


def test_a_duckdb_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table mine (x integer)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is a DuckDB file but no store of starloop's"):
        Store(path).create()
    assert path.read_bytes() == before
