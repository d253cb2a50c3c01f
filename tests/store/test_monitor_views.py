# SPDX-License-Identifier: Apache-2.0
"""Monitors, training curves and timing of a small history, row by row."""

from collections.abc import Iterator

import duckdb
import pytest
import small_history as history
from small_history import named

from stages import rows
from stages.ids import mint
from store.transaction import Transaction


@pytest.fixture
def told(schema: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The history, with round 1 of run `one` watched on two accelerators."""
    cursor = schema.cursor()
    cursor.execute("begin")
    tx = Transaction(cursor)
    history.write(tx)
    key = mint("k", "watched")
    place = {"run_id": mint("r", "one"), "round": 1, "refresh": 0, "step": "watch"}
    tx.append("commit_step", **place, step_key=key, reused=False, wall_s=4.0, work_s=3.0)
    tx.insert(rows.Monitor, [rows.Monitor(key, "length", part, value)
                             for part, value in (("all", 4.0), ("wrong", 4.5))])  # fmt: skip
    cursor.execute("""update run set manifest = '{"accelerators": 2}' where name = 'one'""")
    yield cursor
    cursor.execute("rollback")
    cursor.close()


def test_monitors_of_a_round_and_the_seconds_of_its_steps(
    told: duckdb.DuckDBPyConnection,
) -> None:
    sql = (
        "select name, slice, value from round_monitors where run = 'one' and round = 1 order by all"
    )
    found = told.execute(sql).fetchall()
    steps = ("generate", "mix", "rationalize", "update", "verify")  # each 1.5 s, 1 s of it work
    assert found == [
        ("gpu_s", "all", 16.0),
        *(("gpu_s", step, 2.0) for step in steps),
        ("gpu_s", "watch", 6.0),
        ("length", "all", 4.0),
        ("length", "wrong", 4.5),
        ("wall_s", "all", 11.5),
        *(("wall_s", step, 1.5) for step in steps),
        ("wall_s", "watch", 4.0),
        ("work_s", "all", 8.0),
        *(("work_s", step, 1.0) for step in steps),
        ("work_s", "watch", 3.0),
    ]


def test_without_accelerators_there_are_no_seconds_of_them(
    told: duckdb.DuckDBPyConnection,
) -> None:
    sql = "select distinct value from round_monitors where run = 'two' and name = 'gpu_s'"
    assert told.execute(sql).fetchall() == [(0.0,)]
    base = "select count(*) from round_monitors where round = 0"
    assert told.execute(base).fetchall() == [(0,)]  # round 0 has no refresh


def test_training_curves_step_by_step(told: duckdb.DuckDBPyConnection) -> None:
    sql = "select * exclude (run) from training_curve where run = 'one' order by all"
    assert told.execute(sql).fetchall() == [
        *((1, 0, step, "logps/chosen", value) for step, value in enumerate((-4.0, -4.5, -6.0), 1)),
        *((2, 0, step, "logps/chosen", value) for step, value in enumerate((-5.0, -5.0, -4.0), 1)),
    ]
    other = "select count(*) from training_curve where run = 'two'"
    assert told.execute(other).fetchall() == [(0,)]


def test_a_policy_is_refreshed_every_so_many_steps_or_never(
    told: duckdb.DuckDBPyConnection,
) -> None:
    # run one: 3 + 3 steps, answers of M0 and M1; run two: 3 steps, answers of M0 alone
    found = told.execute("select run, steps, policies, s from run_timing order by run").fetchall()
    assert found == [("one", 6, 2, 3.0), ("two", 3, 1, None)]


def test_an_update_begins_and_ends_with_a_tenth_of_its_steps(
    told: duckdb.DuckDBPyConnection,
) -> None:
    tx = Transaction(told)
    tx.insert(rows.TrainingMetric, [
        rows.TrainingMetric(named("U3"), step, "loss", float(step)) for step in range(1, 26)
    ])  # fmt: skip
    ends = tx.ask("training_ends", run="two", round=1, refresh=0)
    assert ends == [
        {"round": 1, "refresh": 0, "name": "loss", "began": 1.5, "ended": 24.5}  # two of 25 steps
    ]
    short = tx.ask("training_ends", run="one", round=1, refresh=0)
    assert [(row["began"], row["ended"]) for row in short] == [(-4.0, -6.0)]  # one of three
    assert [row["round"] for row in tx.ask("training_ends", run="one", round=2, refresh=0)] == [
        1,
        2,
    ]


def test_the_policy_of_a_refresh_that_is_not_watched_yet_is_still_needed(
    told: duckdb.DuckDBPyConnection,
) -> None:
    tx = Transaction(told)

    def needed() -> set[object]:
        rows_ = tx.ask("models_referred")
        return {row["model_id"] for row in rows_ if row["run_id"] == mint("r", "one")}

    assert needed() - {None} == {named("M0"), named("M1")}  # where U2 began; its reference
    place = {"run_id": mint("r", "one"), "round": 2, "refresh": 0, "step": "watch"}
    key = mint("k", "watched too")
    tx.append("commit_step", **place, step_key=key, reused=False, wall_s=4.0, work_s=3.0)
    assert needed() - {None} == {named("M1")}
