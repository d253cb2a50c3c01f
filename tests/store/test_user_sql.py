# SPDX-License-Identifier: Apache-2.0
"""SQL from a person: one statement that reads is answered, everything else is refused."""

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import starloop
from stages.errors import ConfigError, LoopError
from store.asking import ask_user_sql, unique
from store.db import DuckDBError, Store
from store.limits import Limits, default_memory, memory_of
from store.versions import SCHEMA_VERSION

READS = [
    "select version from store_info",
    "select version from store_info;",
    "from store_info select version -- and a comment",
    "with found as (select version from store_info) select * from found",
    "from query('select version from store_info')",
    "select version from query_table('store_info')",
    "table store_info order by all limit 1",
]
REFUSED = {
    "": "0 statements were given",
    " ;; ": "0 statements were given",
    "-- nothing but a comment": "0 statements were given",
    "select 1; select 2": "2 statements were given",
    "select 1; drop table run": "2 statements were given",
    "drop table run": "DROP is not allowed",
    "insert into store_info values (9, 'me')": "INSERT is not allowed",
    "update store_info set version = 9": "UPDATE is not allowed",
    "delete from store_info": "DELETE is not allowed",
    "create table mine (x int)": "CREATE is not allowed",
    "attach 'other.duckdb' as other": "ATTACH is not allowed",
    "copy store_info to 'out.csv'": "COPY is not allowed",
    "export database 'out'": "EXPORT is not allowed",
    "pragma database_size": "PRAGMA is not allowed",
    "set enable_external_access = true": "SET is not allowed",
    "set memory_limit = '100GB'": "SET is not allowed",
    "reset memory_limit": "SET is not allowed",
    "use memory": "SET is not allowed",
    "begin": "TRANSACTION is not allowed",
    "checkpoint": "CALL is not allowed",
    "vacuum": "VACUUM is not allowed",
    "install httpfs": "LOAD is not allowed",
    "load json": "LOAD is not allowed",
    "create temp table mine as select 1": "CREATE is not allowed",
    "prepare mine as select 1": "PREPARE is not allowed",
    "execute mine": "EXECUTE is not allowed",
    "explain select 1": "EXPLAIN is not allowed",
    "explain analyze select 1": "EXPLAIN is not allowed",
    "alter table run add column x int": "ALTER is not allowed",
    "comment on table run is 'mine'": "ALTER is not allowed",
    "pivot run on name using count(*)": "a PIVOT must name its values",
    "with x as (delete from store_info returning *) from x": "attached in read-only mode",
    "with x as (insert into run select * from run returning *) from x": "read-only mode",
    "from enable_logging()": "the configuration has been locked",
    "select getenv('HOME')": "getenv does not exist",
    "from glob('/*')": "file system operations are disabled",
    "from duckdb_secrets()": "file system operations are disabled",
    "from parquet_metadata('{file}')": "file system operations are disabled",
    "from sniff_csv('{file}')": "file system operations are disabled",
    "from read_blob('{file}')": "file system operations are disabled",
    "from read_duckdb('{store}')": "file system operations are disabled",
    "from '{store}'": "file system operations are disabled",
    "call pragma_version()": "CALL is not allowed",
    "select * from read_csv('{file}')": "file system operations are disabled",
    "select * from read_text('{file}')": "file system operations are disabled",
    "from '{file}'": "file system operations are disabled",
    "select * from query('drop table run')": "Expected a single SELECT",
    "from query('from store_info; from run')": "Expected a single SELECT",
    "selekt 1": "syntax error at or near",
    "select (": "syntax error",
    "select missing from run": 'column "missing" not found',
    "select * from nowhere": "nowhere does not exist",
    "from round_sumary": 'Did you mean "round_summary"?',
    "select error('no'\n || chr(10) || 'way')": "no way",
}


def answer(store: Store, sql: str, **limits: Any) -> pa.Table:
    with ask_user_sql(store, sql, Limits(**limits)) as found:
        return pa.Table.from_batches(found.batches, found.schema)


@pytest.mark.parametrize("sql", READS)
def test_one_statement_that_reads_is_answered(store: Store, sql: str) -> None:
    assert answer(store, sql).select(["version"]).to_pylist() == [{"version": SCHEMA_VERSION}]


@pytest.mark.parametrize("sql", REFUSED)
def test_everything_else_is_refused_in_one_line_and_changes_nothing(
    store: Store, tmp_path: Path, sql: str
) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a,b\n1,2\n")
    store.snapshot()
    before = {path: path.read_bytes() for path in sorted(tmp_path.iterdir())}
    with pytest.raises(ConfigError) as caught:
        answer(store, sql.replace("{file}", str(file)).replace("{store}", str(store.path)))
    assert REFUSED[sql] in str(caught.value)
    assert str(caught.value).startswith("sql: ")
    assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in sorted(tmp_path.iterdir())} == before


def test_a_variable_of_the_calling_code_is_no_table(store: Store) -> None:
    mine = pa.table({"x": [1]})
    assert mine.num_rows == 1
    with pytest.raises(ConfigError, match="mine does not exist"):
        answer(store, "from mine")


# ── limits ──────────────────────────────────────────────────────────────────────────────────

ENDLESS = {
    "a recursion": "with recursive t(n) as (select 1 union all select n + 1 from t) from t",
    "a product of tables": "select a.range + b.range from range(1000000) a, range(1000000) b",
    "a count": "select count(*) from range(1000000000000)",
    "a sleep": "select sleep_ms(100000000)",
}
SORT = "select range from range(100000000) order by hash(range)"


@pytest.mark.parametrize("sql", ENDLESS.values(), ids=list(ENDLESS))
def test_a_query_without_end_is_stopped_in_time(store: Store, sql: str) -> None:
    store.snapshot()
    begun = time.monotonic()
    with (
        pytest.raises(ConfigError, match=r"stopped after 0\.2 s: .*--timeout"),
        ask_user_sql(store, sql, Limits(timeout_s=0.2)) as found,
    ):
        for _ in found.batches:
            pass
    assert time.monotonic() - begun < 10


def test_time_in_which_the_answer_is_read_is_not_the_querys(store: Store) -> None:
    store.snapshot()
    with ask_user_sql(store, "from range(30000)", Limits(timeout_s=2.0)) as found:
        next(found.batches)
        with found.untimed():
            time.sleep(2.2)
        assert sum(batch.num_rows for batch in found.batches) == 20_000
    with (
        pytest.raises(ConfigError, match="stopped after"),
        ask_user_sql(store, "from range(30000)", Limits(timeout_s=2.0)) as found,
    ):
        next(found.batches)
        time.sleep(2.2)
        next(found.batches)


def test_an_answer_comes_in_batches_before_the_query_has_ended(store: Store) -> None:
    with ask_user_sql(store, ENDLESS["a product of tables"], Limits(timeout_s=60.0)) as found:
        assert next(found.batches).num_rows == next(found.batches).num_rows == 10_000


def test_work_that_hears_no_interrupt_is_told_of_once_and_then_waited_for(store: Store) -> None:
    told: list[LoopError] = []
    deaf = "select list_product(range(30000000)) + list_product(range(30000001))"
    with (
        pytest.raises(ConfigError, match="stopped after") as caught,
        ask_user_sql(store, deaf, Limits(timeout_s=0.05), told.append) as found,
    ):
        list(found.batches)
    assert told in ([caught.value], [])  # none where this machine is quick


def test_a_query_that_needs_more_memory_is_told_so_and_no_disk_fills(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"needs more than 0\.2 GB of memory: .*--memory"):
        answer(store, SORT, memory=200_000_000, threads=1)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {store.path.name, store.copy.name}


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_bounded(store: Store, threads: int) -> None:
    found = answer(store, "select current_setting('threads') as n", threads=threads)
    assert found.to_pylist() == [{"n": threads}]


SIZES = {"2GB": 2 * 10**9, "512MB": 512 * 10**6, " 1.5 GiB ": 3 * 2**29, "1tb": 10**12}


@pytest.mark.parametrize("text", SIZES)
def test_a_size_is_a_number_with_its_unit(text: str) -> None:
    assert memory_of(text) == SIZES[text]


@pytest.mark.parametrize("text", ["", "lots", "2", "-2GB", "nanGB", "2GB2GB", "50%", "1e9GB"])
def test_another_size_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--memory: .*is not a size: write for example 2GB"):
        memory_of(text)


def test_too_little_memory_for_any_query_is_refused() -> None:
    with pytest.raises(ConfigError, match="99MB is too little for any query: give 100MB or more"):
        memory_of("99MB")


@given(names=st.lists(st.sampled_from(["a", "a_1", "a_2", "b"]), max_size=7))
def test_columns_of_an_answer_have_different_names(names: list[str]) -> None:
    found = unique(names)
    assert len(set(found)) == len(found) == len(names)
    assert all(
        new == old or new.startswith(f"{old}_") for new, old in zip(found, names, strict=True)
    )
    assert [new for new, old in zip(found, names, strict=True) if names.count(old) == 1] == [
        old for old in names if names.count(old) == 1
    ]


def test_two_columns_of_one_name_are_both_answered(store: Store) -> None:
    assert answer(store, "select 1 as a, 2 as a").to_pylist() == [{"a": 1, "a_1": 2}]


def test_a_notebook_has_the_same_memory_and_no_end(store: Store) -> None:
    store.snapshot()
    with (
        starloop.open(store.path, memory="200MB", threads=1) as db,
        pytest.raises(DuckDBError, match="Out of Memory"),
    ):
        db.sql(SORT).fetchall()
    with starloop.open(store.path) as db:
        (limit,) = db.execute("select current_setting('memory_limit')").fetchall()
        assert abs(float(limit[0].split()[0]) * 2**30 - default_memory()) < 2**27
        with pytest.raises(DuckDBError, match="locked"):
            db.execute("set memory_limit = '100GB'")
