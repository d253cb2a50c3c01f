# SPDX-License-Identifier: Apache-2.0
"""Rows are stored once, whole, and unchanged; a file that is not ours is refused."""

import dataclasses
import types
import typing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages import ids, rows
from stages.errors import StoreError
from stages.rows import Problem, Trajectory, VerdictComponent
from store.db import Store
from store.scratch import scratch
from store.transaction import Transaction, as_row, table_of
from store.versions import SCHEMA_VERSION


def problem(number: int, split: str = "train") -> Problem:
    question = f"{number}+1"
    answer = str(number + 1)
    return Problem(ids.problem_id("sums", question, answer), "sums", split, question, answer)


def count(store: Store, table: str) -> int:
    with duckdb.connect(str(store.path), read_only=True) as connection:
        found = connection.execute(f"select count(*) from {table}").fetchone()
    assert found is not None
    return int(found[0])


def trajectory(label: str, said: str, slot: str = "slot") -> Trajectory:
    return Trajectory(
        trajectory_id=ids.outside_trajectory_id(slot, 0),
        content_id=ids.content_id((1,), tuple(map(ord, said))),
        problem_id=problem(1).problem_id,
        prompt_id=ids.mint("q", 1),
        model_id=None,
        sampling_id=None,
        purpose="seed",
        origin="seed",
        seed=None,
        slot=0,
        completion=said,
        token_ids=tuple(map(ord, said)),
        logprobs=None,
        finish_reason="stop",
        engine=label,
        engine_version=None,
        dtype=None,
        weight_version=None,
    )


def test_insert_returns_the_new_keys_and_only_those(store: Store) -> None:
    one, two = problem(1), problem(2)
    with store.transaction() as tx:
        assert tx.insert(Problem, [one]) == {(one.problem_id,)}
    with store.transaction() as tx:
        assert tx.insert(Problem, [two, one, two]) == {(two.problem_id,)}
        assert tx.insert(Problem, [one, two]) == set()
        assert tx.insert(Problem, []) == set()
    assert count(store, "problem") == 2


def test_a_row_that_is_there_already_keeps_its_first_values(store: Store) -> None:
    with store.transaction() as tx:
        tx.insert(Problem, [problem(1, "train")])
        tx.insert(Problem, [problem(1, "dev")])
        (found,) = tx.rows(Problem, "problems_by_id", ids=[problem(1).problem_id])
    assert found.split == "train"


def test_two_differing_rows_of_one_key_are_refused_and_nothing_is_stored(store: Store) -> None:
    refused = pytest.raises(StoreError, match=r"two problem rows with the same key .* differ")
    with refused, store.transaction() as tx:
        tx.insert(Problem, [problem(7)])
        tx.insert(Problem, [problem(1, "train"), problem(2), problem(1, "dev")])
    assert count(store, "problem") == 0


def test_a_key_of_two_columns_tells_rows_apart_by_both(store: Store) -> None:
    verdict = ids.mint("j", 1)
    parts = [VerdictComponent(verdict, name, 1.0, 0.5) for name in ("form", "sum")]
    with store.transaction() as tx:
        assert tx.insert(VerdictComponent, parts) == {(verdict, "form"), (verdict, "sum")}
        assert tx.insert(VerdictComponent, parts[:1]) == set()


def test_a_slot_with_other_content_is_refused_and_nothing_is_stored(store: Store) -> None:
    with store.transaction() as tx:
        tx.insert(Trajectory, [trajectory("first", "ab")])
    refused = pytest.raises(StoreError, match=r"with other content .*: a slot is sampled once")
    with refused, store.transaction() as tx:
        tx.insert(Problem, [problem(1)])
        tx.insert(Trajectory, [trajectory("x", "zz", "free"), trajectory("second", "ba")])
    assert count(store, "trajectory") == 1
    assert count(store, "problem") == 0


def test_a_slot_with_the_same_content_is_left_as_it_is(store: Store) -> None:
    with store.transaction() as tx:
        tx.insert(Trajectory, [trajectory("first", "ab")])
        assert tx.insert(Trajectory, [trajectory("second", "ab")]) == set()
        slot = trajectory("first", "ab").trajectory_id
        assert tx.rows(Trajectory, "trajectories_by_id", ids=[slot]) == [trajectory("first", "ab")]


def test_a_failed_transaction_stores_nothing(store: Store) -> None:
    with pytest.raises(RuntimeError, match="power cut"), store.transaction() as tx:
        tx.insert(Problem, [problem(1)])
        tx.append(
            "add_event",
            run_id=None, round=None, refresh=None, kind="x", message="x", detail=None,
        )  # fmt: skip
        raise RuntimeError("power cut")
    assert (count(store, "problem"), count(store, "event")) == (0, 0)


def test_wanted_rows_come_in_the_order_asked_for(store: Store) -> None:
    asked = [problem(n) for n in (5, 2, 9, 1)]
    with store.transaction() as tx:
        tx.insert(Problem, sorted(asked, key=lambda p: p.question))
        found = tx.rows(Problem, "problems_by_id", ids=[p.problem_id for p in asked])
        assert tx.rows(Problem, "problems_by_id", ids=[]) == []
    assert found == asked


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    ids.Id: st.uuids(),
    str: TEXT,
    int: st.integers(-(2**31), 2**31 - 1),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    tuple[int, ...]: st.lists(st.integers(-(2**31), 2**31 - 1), max_size=4).map(tuple),
    tuple[float, ...]: st.lists(st.floats(width=32, allow_nan=False), max_size=4).map(tuple),
    tuple[bool, ...]: st.lists(st.booleans(), max_size=4).map(tuple),
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    if isinstance(hint, types.UnionType):
        return st.one_of(
            *(st.none() if a is type(None) else values_of(a) for a in typing.get_args(hint))
        )
    if typing.get_origin(hint) is typing.Literal:
        return st.sampled_from(typing.get_args(hint))
    return BY_TYPE[hint]


def rows_of(row_type: type) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(row_type)
    return st.builds(
        row_type, **{f.name: values_of(hints[f.name]) for f in dataclasses.fields(row_type)}
    )


@pytest.mark.parametrize(
    "row_type",
    [t for t in vars(rows).values() if isinstance(t, type) and hasattr(t, "KEY")],
    ids=lambda t: t.__name__,
)
@settings(max_examples=15)
@given(data=st.data())
def test_any_row_comes_back_as_it_went_in(
    schema: duckdb.DuckDBPyConnection, row_type: type, data: st.DataObject
) -> None:
    row = data.draw(rows_of(row_type))
    schema.execute("begin")
    try:
        assert len(Transaction(schema).insert(row_type, [row])) == 1
        cursor = schema.execute(f"from {table_of(row_type)}")
        names = [column[0] for column in cursor.description or []]
        assert [as_row(row_type, dict(zip(names, found, strict=True)))
                for found in cursor.fetchall()] == [row]  # fmt: skip
    finally:
        schema.execute("rollback")


def test_creating_a_store_that_is_there_keeps_its_rows(store: Store) -> None:
    with store.transaction() as tx:
        tx.insert(Problem, [problem(1)])
    store.create()
    assert count(store, "problem") == 1
    names = sorted(path.name for path in store.folder.iterdir())
    assert names == ["store.duckdb", "store.duckdb.wal"]


def test_a_file_that_is_not_duckdb_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    path.write_text("not a database, but long enough to have a header " * 100)
    with pytest.raises(StoreError, match="is not a DuckDB file: name another") as caught:
        Store(path).create()
    assert "\n" not in str(caught.value)
    assert path.read_text().startswith("not a database")


def test_a_store_of_another_schema_version_is_refused_in_one_line(store: Store) -> None:
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("update store_info set version = version + 1")
    with pytest.raises(StoreError) as caught:
        store.create()
    assert f"has schema {SCHEMA_VERSION + 1}, this starloop writes {SCHEMA_VERSION}" in str(
        caught.value
    )
    assert "\n" not in str(caught.value)


def test_a_store_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no store at .*nowhere.duckdb: start a run first"):
        Store(tmp_path / "nowhere.duckdb").reader()
    assert list(tmp_path.iterdir()) == []


def test_readers_and_scratch_databases_draw_no_progress_bar(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.duckdb")
    store.create()
    store.snapshot()
    asked = "select current_setting('enable_progress_bar')"
    with store.reader() as reader, scratch(tmp_path, "1GB") as own:
        for connection in (reader, own):
            assert connection.execute(asked).fetchall() == [(False,)]
