# SPDX-License-Identifier: Apache-2.0
"""Which checkpoints `keep` lets go, on the small history: what any run needs is never freed."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from running import ROOT, Ended, ask, contents

sys.path.insert(0, str(ROOT / "tests" / "store"))

import small_history
from small_history import named

from flows.lock import run_lock
from flows.retention import Checkpoint, free, freeable, hold, litter
from stages.errors import StoreError
from stages.ids import mint
from store.db import Store

Command = Callable[..., Ended]
RUNS = ("one", "two")
BYTES = 1234


@pytest.fixture
def told(tmp_path: Path) -> Store:
    """The small history with a folder for each of M0 … M3, each under its id."""
    store = Store(tmp_path / "runs" / "store.duckdb")
    store.create()
    with store.transaction() as tx:
        small_history.write(tx)
    change(store, "update model set path = 'models/' || model_id::varchar")
    for n in range(4):
        folder = store.folder / "models" / str(named(f"M{n}"))
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(b"w" * BYTES)
    return store


def change(store: Store, sql: str, *values: object) -> None:
    with duckdb.connect(str(store.path)) as connection:
        connection.execute(sql, values)


def rule(store: Store, run: str, keep: str, target: int, **more: Any) -> None:
    """What the newest config of a run says."""
    with store.transaction() as tx:
        tx.append(
            "add_event",
            run_id=mint("r", run), round=None, refresh=None, kind="config_changed", message="",
            detail=json.dumps({"keep": keep, "rounds": target, "evaluate": {"every": 1}, **more}),
        )  # fmt: skip


def found(store: Store, runs: tuple[str, ...] = RUNS, busy: tuple[str, ...] = ()) -> set[str]:
    """Labels of the models that may go."""
    labels = {named(f"M{n}"): f"M{n}" for n in range(4)}
    with store.transaction() as tx:
        return {labels[each.model_id] for each in freeable(tx, store, runs, busy)}


def fork(store: Store, name: str, keep: str, at: int = 1) -> None:
    """A fork of run one at a round, not trained beyond it."""
    place = {"run_id": mint("r", name), "forked_from": mint("r", "one"), "forked_at_round": at}
    with store.transaction() as tx:
        tx.append("begin_run", name=name, recipe="star", identity="{}", manifest="{}", **place,
                  config=json.dumps({"keep": keep, "rounds": 4}))  # fmt: skip
        tx.append("fork_steps", **place)
        tx.append("fork_outputs", **place)


@pytest.mark.parametrize(
    ("keep", "target", "freed"),
    [
        ("all", 2, set()),
        ("last(1)", 2, {"M1"}),
        ("last(2)", 2, set()),
        ("last(9)", 2, set()),
        ("best", 2, set()),  # M1 measures 1.0, M2 is the last
        ("last(1)", 3, set()),  # U2 refers to M1, and the run is not complete
    ],
)
def test_a_run_keeps_its_last_model_its_best_and_what_it_refers_to(
    told: Store, keep: str, target: int, freed: set[str]
) -> None:
    rule(told, "one", keep, target)
    assert found(told) == freed


def test_the_newest_rule_counts(told: Store) -> None:
    rule(told, "one", "last(1)", 2)
    rule(told, "one", "all", 2)
    assert found(told) == set()


@pytest.mark.parametrize(("value", "freed"), [(0.25, {"M1"}), (0.5, {"M1"}), (0.75, set())])
def test_best_is_the_round_with_the_highest_pass_at_1_the_first_of_equal_ones(
    told: Store, value: float, freed: set[str]
) -> None:
    """The base measures 0.5: where it is best, M1 may go."""
    sql = "update metric set value = ? where name = 'pass_at_1' and slice = 'all' and value = 1"
    change(told, sql, value)
    rule(told, "one", "best", 2)
    assert found(told) == freed


def test_optimizer_state_that_is_carried_on_keeps_its_model_until_the_run_is_complete(
    told: Store,
) -> None:
    sql = "update training_update set reference_model_id = null, optimizer_from = ? "
    change(told, f"{sql} where update_id = ?", named("U1"), named("U2"))
    for target, freed in ((2, {"M1"}), (3, set())):
        rule(told, "one", "last(1)", target)
        assert found(told) == freed


def test_a_round_that_is_not_whole_keeps_its_model_and_the_one_it_started_from(
    told: Store,
) -> None:
    """Round 2 of run one is trained and not measured; run two's round 1 is not either."""
    change(told, "delete from step_run where run = 'one' and round = 2 and step = 'evaluate'")
    for run in RUNS:
        rule(told, run, "last(1)", 1)
    assert found(told) == set()


def test_a_model_that_two_runs_use_goes_only_where_neither_needs_it(told: Store) -> None:
    fork(told, "three", "all")
    rule(told, "one", "last(1)", 2)
    assert found(told, ("one",)) == set()
    rule(told, "three", "last(1)", 2)
    assert found(told, ("one",)) == set()  # the fork stands at round 1: it goes on from M1


def test_a_fork_that_has_trained_beyond_its_round_lets_the_source_model_go(told: Store) -> None:
    fork(told, "three", "last(1)")
    rule(told, "one", "last(1)", 2)
    rule(told, "three", "last(1)", 2)
    assert found(told) == set()
    with told.transaction() as tx:
        small_history._step(tx, "three", 2, "update", ("U3", "M3"))
        small_history._step(tx, "three", 2, "evaluate", ("E2",))
    assert found(told) == {"M1"}


def test_a_base_that_a_config_names_is_kept(told: Store) -> None:
    rule(told, "one", "last(1)", 2)
    path = told.folder / "models" / str(named("M1"))
    rule(told, "two", "all", 2, policy={"type": "folder", "path": str(path)})
    assert found(told) == set()


def test_a_run_that_is_worked_on_keeps_all_its_models(told: Store) -> None:
    rule(told, "one", "last(1)", 2)
    (told.folder / "one").mkdir()
    with run_lock(told.folder / "one", "one"), hold(told, RUNS) as busy:
        assert list(busy) == ["one"]
        assert busy["one"].isdigit()
        assert found(told, busy=tuple(busy)) == set()
    with hold(told, RUNS) as busy:
        assert busy == {}


@pytest.mark.parametrize(
    "sql",
    [
        "update model set origin = 'outside'",
        "update model set path = '/elsewhere/' || model_id::varchar",
        "update model set path = 'models/../other'",
    ],
)
def test_a_model_that_is_not_ours_or_lies_elsewhere_is_never_freed(told: Store, sql: str) -> None:
    rule(told, "one", "last(1)", 2)
    change(told, f"{sql} where model_id = ?", named("M1"))
    assert found(told) == set()


def test_a_link_to_a_folder_elsewhere_is_never_freed(told: Store, tmp_path: Path) -> None:
    rule(told, "one", "last(1)", 2)
    folder = told.folder / "models" / str(named("M1"))
    folder.rename(tmp_path / "mine")
    folder.symlink_to(tmp_path / "mine")
    assert found(told) == set()


def test_freeing_deletes_the_folder_keeps_the_row_and_is_an_event(told: Store) -> None:
    rule(told, "one", "last(1)", 2)
    before = contents(told.path)
    (freed,) = free(told, RUNS)
    folder = told.folder / "models" / str(named("M1"))
    assert freed == Checkpoint(named("M1"), folder, BYTES, (mint("r", "one"), 1), ("one",))
    left = {path.name for path in (told.folder / "models").iterdir()}
    assert left == {str(named(f"M{n}")) for n in (0, 2, 3)}
    after = contents(told.path)
    new = [row for row in after.pop("event") if row not in before["event"]]
    del before["event"]
    assert after == before
    ((run, number, _, _, kind, message, detail),) = new
    assert (run, number, kind) == (mint("r", "one"), 1, "freed")
    assert message == f"checkpoint {named('M1')} was freed: 1.2 kB"
    assert json.loads(detail) == {"bytes": BYTES, "model": str(named("M1")), "runs": ["one"]}
    assert free(told, RUNS) == []


def test_a_store_that_refuses_the_event_leaves_the_checkpoint_where_it_was(
    told: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule(told, "one", "last(1)", 2)

    def refuse(*_: object) -> None:
        raise StoreError("disk full")

    monkeypatch.setattr("flows.retention._record", refuse)
    with pytest.raises(StoreError, match="disk full"):
        free(told, RUNS)
    folder = told.folder / "models" / str(named("M1"))
    assert [path.stat().st_size for path in folder.iterdir()] == [BYTES]


def test_only_workspaces_of_committed_steps_of_whole_rounds_are_litter(told: Store) -> None:
    change(told, "delete from step_run where run = 'one' and round = 2 and step = 'evaluate'")
    keys = {name: mint("k", name) for name in ("one 1 mix", "one 2 mix", "one 2 evaluate")}
    for key in keys.values():
        (told.folder / "one" / "work" / str(key)).mkdir(parents=True)
    with told.transaction() as tx:
        named_ = [(run, path.name) for run, path in litter(tx, told, ("one",))]
        assert litter(tx, told, ("two",)) == []
    assert named_ == [("one", str(keys["one 1 mix"]))]


# ── the command ────────────────────────────────────────────────────────────────


def test_gc_lists_with_sizes_and_frees_with_yes_alone(command: Command, told: Store) -> None:
    rule(told, "one", "last(1)", 2)
    work = told.folder / "one" / "work" / str(mint("k", "one 1 mix"))
    work.mkdir(parents=True)
    (work / "shard").write_bytes(b"s" * 1000)
    listed = command("gc", "--store", told.path)
    assert (listed.code, listed.err) == (0, "")
    head, _, model, space, last = listed.out.splitlines()
    assert head.split() == ["what", "run", "name", "size"]
    assert model.split() == ["checkpoint", "one", str(named("M1")), "1.2", "kB"]
    assert space.split() == ["workspace", "one", work.name, "1.0", "kB"]
    assert last == "nothing was deleted: --yes frees 2.2 kB"
    assert work.is_dir()
    assert (told.folder / "models" / str(named("M1"))).is_dir()
    two = command("gc", "two", "--store", told.path)
    assert two.out.startswith("nothing to free")
    freed = command("gc", "--yes", "--store", told.path)
    assert freed.out.splitlines()[:-1] == listed.out.splitlines()[:-1]
    assert freed.out.splitlines()[-1] == "freed 2.2 kB"
    assert not work.exists()
    assert not (told.folder / "models" / str(named("M1"))).exists()
    assert ask(told.copy, "select count(*) from event where kind = 'freed'") == [(1,)]
    assert command("gc", "--yes", "--store", told.path).out.startswith("nothing to free")


def test_gc_leaves_out_a_run_that_is_worked_on_and_names_the_process(
    command: Command, told: Store
) -> None:
    rule(told, "one", "last(1)", 2)
    (told.folder / "one").mkdir()
    with run_lock(told.folder / "one", "one"):
        ended = command("gc", "--yes", "--store", told.path)
    assert ended.code == 0
    assert ended.err.startswith("one is left out, process ")
    assert (told.folder / "models" / str(named("M1"))).is_dir()


def test_gc_of_a_run_that_is_not_there_names_those_that_are(command: Command, told: Store) -> None:
    ended = command("gc", "on", "--yes", "--store", told.path)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "starloop: gc: there is no run 'on'; runs: one, two; did you mean 'one'?\n"
    missing = command("gc", "--store", told.folder / "other.duckdb")
    assert missing.code == 1
    assert not (told.folder / "other.duckdb").exists()
