# SPDX-License-Identifier: Apache-2.0
"""Others at the store while a run goes on: readers, holders, a second run."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from firing import Range, check_clean, check_equal, held
from running import contents, facts

import starloop


def test_a_reader_open_for_a_whole_round_stops_nothing_and_sees_what_it_opened(
    shooting_range: Range, one_round: Path, undisturbed: Path, tmp_path: Path
) -> None:
    shutil.copytree(one_round.parent, tmp_path / "runs")
    store = tmp_path / "runs" / "store.duckdb"
    rounds = "select max(round) from round_summary"
    with starloop.open(store) as db:
        ended = shooting_range.run(store)
        assert db.execute(rounds).fetchall() == [(1,)]
    assert (ended.code, ended.errors) == (0, [])
    assert [line for line in ended.said if line.startswith("waiting")] == []
    check_equal(store, undisturbed)
    with starloop.open(store) as db:
        assert db.execute(rounds).fetchall() == [(2,)]
    assert contents(store.with_name("store.snapshot.duckdb")) == contents(store)


def test_shards_keep_coming_while_a_reader_holds_the_store_itself(
    shooting_range: Range, one_round: Path, tmp_path: Path
) -> None:
    """Held from the first shard of an evaluation until well after its last."""
    store = tmp_path / "store.duckdb"
    run = shooting_range.start(store, "rounds=1", pace=0.15)
    assert shooting_range.wait_for("begin 0 evaluate")
    while not (first := shards(store)):
        pass
    with held(store, read_only=True) as holder:
        at_hold = shards(store)
        assert shooting_range.wait_for("commit 0 evaluate")
        assert len(shards(store)) >= len(at_hold) + 3
        assert set(first) <= set(shards(store))
        assert shooting_range.wait_for("say waiting for the store")
        assert run.said[-1] == f"waiting for the store: process {holder} has {store} open"
        assert run.last() == ("commit", "0", "evaluate")
    ended = shooting_range.wait()
    assert (ended.code, ended.errors) == (0, [])
    check_equal(store, one_round)


def shards(store: Path) -> list[Path]:
    return sorted(store.parent.glob("try/work/*/shards/*.parquet"))


@pytest.fixture(scope="module")
def second_range(tiny_folder: Path) -> Iterator[Range]:
    """A program of its own for a run beside the first."""
    with Range(tiny_folder) as opened:
        yield opened


def check_both(store: Path, one: Path, two: Path) -> None:
    """The store holds what two others hold, each artefact once, each run's outputs."""
    mine, first, second = facts(store), facts(one), facts(two)
    for table, rows in mine.items():
        if table == "step_output":
            assert rows == sorted([*first[table], *second[table]], key=repr)
        else:
            found = sorted({repr(row) for row in [*first[table], *second[table]]})
            assert [repr(row) for row in rows] == found, table
    check_clean(store, "try", "other")


@pytest.mark.slow
@pytest.mark.parametrize("change", ["rationalize.enabled=false", "seed=1"])
def test_two_runs_at_once_in_one_store_end_with_the_rows_they_would_have_alone(
    shooting_range: Range,
    second_range: Range,
    undisturbed: Path,
    tmp_path: Path,
    change: str,
) -> None:
    store, alone = tmp_path / "both" / "store.duckdb", tmp_path / "alone" / "store.duckdb"
    first = shooting_range.start(store)
    second = second_range.start(store, change, name="other")
    for gun, run in ((shooting_range, first), (second_range, second)):
        gun.wait()
        assert (run.code, run.errors) == (0, [])
    assert shooting_range.run(alone, change, name="other").code == 0
    check_both(store, undisturbed, alone)


@pytest.mark.slow
def test_a_run_killed_beside_another_goes_on_and_neither_notices(
    shooting_range: Range, second_range: Range, undisturbed: Path, tmp_path: Path
) -> None:
    store, alone = tmp_path / "both" / "store.duckdb", tmp_path / "alone" / "store.duckdb"
    for moment in ("commit 0 evaluate", "begin 1 rationalize", "commit 1 update"):
        shooting_range.start(store)
        if moment == "commit 0 evaluate":
            second = second_range.start(store, "seed=1", name="other")
        shooting_range.wait_for(moment)
        shooting_range.kill()
    assert shooting_range.run(store).code == 0
    second_range.wait()
    assert (second.code, second.errors) == (0, [])
    assert shooting_range.run(alone, "seed=1", name="other").code == 0
    check_both(store, undisturbed, alone)
