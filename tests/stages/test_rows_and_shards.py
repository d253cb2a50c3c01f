# SPDX-License-Identifier: Apache-2.0
"""Every row type survives an Arrow table and a Parquet shard; a bad shard is refused."""

import dataclasses
import resource
import typing
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stage_rows import a_problem, a_prompt, a_trajectory

from stages import rows
from stages.errors import StoreError
from stages.shards import (
    arrow_schema,
    from_table,
    read_shard,
    read_shards,
    to_table,
    write_shard,
)

ROW_TYPES = [
    value
    for value in vars(rows).values()
    if dataclasses.is_dataclass(value) and value.__module__.startswith(f"{rows.__name__}.")
]
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    UUID: st.uuids(),
    str: st.text() | st.just("NUL \0, über, 数, 🙂, line\r\nend"),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
}
ITEMS: dict[Any, st.SearchStrategy[Any]] = {  # of tuples: 32-bit columns
    int: st.integers(0, 2**31 - 1),
    float: st.floats(allow_nan=False, width=32),
    bool: st.booleans(),
}
each_row_type = pytest.mark.parametrize("row_type", ROW_TYPES, ids=lambda t: t.__name__)
few = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """A strategy for a field's type hint."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, UnionType):
        return st.one_of(st.none(), *(values_of(a) for a in arguments if a is not type(None)))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(ITEMS[arguments[0]], max_size=4).map(tuple)
    return VALUES[hint]


def some_rows(row_type: Any) -> st.SearchStrategy[list[Any]]:
    """A strategy for lists of rows, built from the type hints."""
    hints = typing.get_type_hints(row_type)
    fields = {field.name: values_of(hints[field.name]) for field in dataclasses.fields(row_type)}
    return st.lists(st.builds(row_type, **fields), max_size=4)


def test_there_are_rows_to_test() -> None:
    assert {"Problem", "Trajectory", "Verdict", "StepOutput"} <= {t.__name__ for t in ROW_TYPES}


@each_row_type
@few
@given(data=st.data())
def test_rows_come_back_from_a_table_and_a_shard(
    row_type: Any, data: st.DataObject, tmp_path: Path
) -> None:
    made = data.draw(some_rows(row_type))
    assert from_table(row_type, to_table(row_type, made)) == made
    write_shard(tmp_path / "rows.parquet", row_type, made)
    assert read_shard(tmp_path / "rows.parquet", row_type) == made
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


@each_row_type
def test_rows_are_frozen_and_keyed_by_their_own_fields(row_type: Any) -> None:
    row = row_type(*(None for _ in dataclasses.fields(row_type)))
    first = dataclasses.fields(row_type)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(row, first, 1)
    assert set(row_type.KEY) <= {field.name for field in dataclasses.fields(row_type)}
    assert not hasattr(row, "__dict__")


def test_columns_are_taken_by_name() -> None:
    problems = [a_problem(1), a_problem(2)]
    table = to_table(rows.Problem, problems)
    assert from_table(rows.Problem, table.select(table.column_names[::-1])) == problems


def test_several_shards_are_read_in_the_order_given(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write_shard(tmp_path / "new" / f"{number}.parquet", rows.Problem, [a_problem(number)])
    found = read_shards([tmp_path / "new" / f"{n}.parquet" for n in (3, 1, 2)], rows.Problem)
    assert found == [a_problem(3), a_problem(1), a_problem(2)]


def test_a_shard_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_shard(path, rows.Problem, [a_problem(1), a_problem(2)])
    write_shard(path, rows.Problem, [a_problem(3)])
    assert read_shard(path, rows.Problem) == [a_problem(3)]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    path = tmp_path / "seed=3" / "rows.parquet"
    write_shard(path, rows.Problem, [a_problem(1)])
    assert read_shard(path, rows.Problem) == [a_problem(1)]


def test_rows_that_cannot_be_written_leave_no_shard(tmp_path: Path) -> None:
    wrong = dataclasses.replace(a_problem(1), difficulty="hard")
    with pytest.raises(pa.ArrowException):
        write_shard(tmp_path / "rows.parquet", rows.Problem, [wrong])
    assert not (tmp_path / "rows.parquet").exists()


def test_a_shard_that_finds_no_room_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    """The process may write no file longer than a byte, as on a full disk."""
    path = tmp_path / "shards" / "rows.parquet"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        with pytest.raises(StoreError, match=r"rows\.parquet cannot be written .*: make room"):
            write_shard(path, rows.Problem, [a_problem(1)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_torn_shard_is_refused(tmp_path: Path, share: float) -> None:
    path = tmp_path / "rows.parquet"
    problem = a_problem(1)
    write_shard(path, rows.Trajectory, [a_trajectory(a_prompt(problem), slot=n) for n in range(9)])
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(StoreError, match=r"rows\.parquet cannot be read .*delete it and run again"):
        read_shard(path, rows.Trajectory)


def test_a_missing_shard_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"none\.parquet cannot be read"):
        read_shard(tmp_path / "none.parquet", rows.Problem)


def test_a_shard_of_another_row_type_is_refused_with_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_shard(path, rows.TrainingVisit, [])
    with pytest.raises(StoreError, match=r"does not hold TrainingSet rows .*tokens.*update_id"):
        read_shard(path, rows.TrainingSet)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda table: table.drop_columns(["template"]),
        lambda table: table.append_column("extra", pa.array([1])),
        lambda table: table.select(table.column_names[::-1]),
    ],
    ids=["column missing", "column added", "columns in another order"],
)
def test_other_columns_are_refused(tmp_path: Path, spoil: Any) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(spoil(to_table(rows.Problem, [a_problem(1)])), path)
    with pytest.raises(StoreError, match="does not hold Problem rows"):
        read_shard(path, rows.Problem)


def test_a_column_of_another_type_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table = to_table(rows.Problem, [a_problem(1)])
    place = table.column_names.index("difficulty")
    pq.write_table(table.set_column(place, "difficulty", pa.array([1.0], pa.float32())), path)
    with pytest.raises(StoreError, match=r"columns that differ: by type"):
        read_shard(path, rows.Problem)


def test_a_schema_has_the_fields_in_order() -> None:
    assert arrow_schema(rows.TrainingVisit) == pa.schema(
        [("update_id", pa.uuid()), ("training_row_id", pa.uuid()), ("visits", pa.int64())]
    )
