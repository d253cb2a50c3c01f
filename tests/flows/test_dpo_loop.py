# SPDX-License-Identifier: Apache-2.0
"""Iterative DPO through the whole loop: refreshes, resume, forks, lineage; training is a tally."""

import os
import signal
import time
from pathlib import Path

import pytest
from running import ROOT, TRY, ask, contents, facts, starloop, start

DPO = ROOT / "configs" / "tiny" / "dpo.yaml"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rounds of three refreshes: 4, 4 and 1 steps of 9."""
    store = tmp_path_factory.mktemp("dpo") / "store.duckdb"
    ended = starloop("run", DPO, "--store", store)
    assert (ended.code, ended.err) == (0, "")
    return store


def test_a_round_is_cut_into_refreshes_and_the_last_takes_what_is_left(done: Path) -> None:
    assert ask(
        done,
        "select s.round, s.refresh, u.steps_done from step_output s "
        "join training_update u on u.update_id = s.id order by all",
    ) == [(1, 0, 4), (1, 1, 4), (1, 2, 1), (2, 0, 4), (2, 1, 4), (2, 2, 1)]


def test_each_refresh_samples_its_share_with_the_newest_policy(done: Path) -> None:
    found = ask(
        done,
        "select s.round, s.refresh, count(distinct t.problem_id), count(*), "
        "count(distinct t.model_id), any_value(t.model_id) from step_output s "
        "join trajectory t on t.trajectory_id = s.id where s.step = 'generate' "
        "group by all order by all",
    )
    assert [row[2:5] for row in found] == [(20, 80, 1)] * 6
    models = ask(
        done,
        "select id from step_output where kind = 'model' and step in ('setup', 'update') "
        "order by round, refresh",
    )
    assert [row[5] for row in found] == [model for (model,) in models][:6]


def test_every_refresh_goes_on_from_the_one_before(done: Path) -> None:
    starts = ask(
        done,
        "select u.init_model_id, lag(u.model_id) over (order by s.round, s.refresh) "
        "from step_output s join training_update u on u.update_id = s.id "
        "order by s.round, s.refresh",
    )
    assert all(init == before for init, before in starts[1:])


def test_the_s_that_was_reached_is_steps_by_policies(done: Path) -> None:
    policies = "select count(distinct model_id) from trajectory where purpose = 'train'"
    assert ask(done, policies) == [(6,)]
    assert ask(done, "select sum(steps_done) from training_update") == [(18,)]


def test_chosen_is_right_and_rejected_is_wrong_in_every_stored_pair(done: Path) -> None:
    roles = ask(
        done,
        "select x.role, v.status, count(*) from training_row_trajectory x "
        "join verdict v using (trajectory_id) group by all order by all",
    )
    assert [(role, status) for role, status, _ in roles] == [
        ("chosen", "correct"), ("rejected", "wrong"),
    ]  # fmt: skip


def test_a_run_and_its_round_name_the_model_of_the_last_refresh(done: Path) -> None:
    ends = ask(
        done,
        "select s.round, arg_max(u.model_id, s.refresh) from step_output s "
        "join training_update u on u.update_id = s.id group by all order by all",
    )
    for name, end in (("dpo@1", ends[0]), ("dpo@2", ends[1]), ("dpo", ends[1])):
        shown = starloop("lineage", "trained-by", name, "--store", done)
        assert f"({end[1]})" in shown.out.splitlines()[0]


def test_a_finished_run_does_nothing_when_it_is_run_again(done: Path) -> None:
    before = contents(done)
    ended = starloop("run", DPO, "--store", done)
    assert ended.code == 0 and "complete" in ended.out
    assert contents(done) == before


@pytest.mark.slow
def test_a_run_killed_between_refreshes_ends_like_one_that_was_not(
    done: Path, tmp_path: Path
) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    process = start(store, DPO)
    deadline = time.monotonic() + 120
    while len([p for p in store.parent.glob("models/*-*-*") if p.is_dir()]) < 3:  # base, 2 updates
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    ended = starloop("run", DPO, "--store", store)
    assert ended.code == 0, ended.err
    assert "going on" in ended.out
    assert facts(store) == facts(done)


@pytest.mark.slow
def test_offline_keeps_the_base_as_the_policy_and_trains_on(tmp_path: Path) -> None:
    store = tmp_path / "store.duckdb"
    ended = starloop("run", DPO, "timing.policy_refresh=never", "--store", store)
    assert (ended.code, ended.err) == (0, "")
    assert "never (offline)" in ended.out
    assert ask(
        store,
        "select count(distinct model_id) from trajectory where purpose = 'train'",
    ) == [(1,)]
    assert ask(
        store,
        "select s.round, max(r.policy_age) from step_output s "
        "join training_row r on r.training_set_id = s.id group by all order by all",
    ) == [(1, 0), (2, 1)]


@pytest.mark.slow
def test_arms_that_train_on_other_kinds_of_rows_share_answers_and_no_mix(tmp_path: Path) -> None:
    store = tmp_path / "store.duckdb"
    shared = ["timing.policy_refresh=every_round", "--rounds", 1, "--store", store]
    for name, recipe, takes in (
        ("imitate", "rejection", "sft"),
        ("prefer", "dpo", "pair"),
        ("weigh", "dpo", "rollout"),
    ):
        given = [f"recipe={recipe}", f"update.updater.takes={takes}", "--name", name]
        ended = starloop("run", DPO, *given, *shared)
        assert (ended.code, ended.err) == (0, "")
    assert ask(
        store,
        "select s.run, any_value(r.kind), count(distinct r.kind) from step_output s "
        "join training_row r on r.training_set_id = s.id where s.step = 'mix' "
        "group by all order by all",
    ) == [("imitate", "sft", 1), ("prefer", "pair", 1), ("weigh", "rollout", 1)]
    assert ask(store, "select count(distinct step_key) from step_run where step = 'generate'") == [
        (1,)
    ]


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["timing.policy_refresh=every(0)"], "use every(s) with s from 1 on"),
        (["update.steps.epochs=1", "update.steps.first=100"], "refreshes are cut by steps"),
        (["update.reference=base"], "tally has none: leave it out"),
        (["update.updater={type: dpo}"], "reference is missing: dpo compares with one"),
        (["update.updater={type: dpo, beta: -1}"], "beta"),
        (["recipe=star"], "does not make its rows"),
        (["generate.problems.per_round=2"], "use a larger s, or more problems a round"),
        (["generate.n=1"], "one_sided"),
    ],
)
def test_what_cannot_be_is_refused_with_the_fix(
    tmp_path: Path, overrides: list[str], said: str
) -> None:
    ended = starloop("run", DPO, *overrides, "--store", tmp_path / "store.duckdb")
    assert ended.code in (1, 2)
    assert said in ended.err


def test_a_star_run_has_one_refresh_a_round(tmp_path: Path) -> None:
    ended = starloop("run", TRY, "timing.policy_refresh=every(3)", "--store", tmp_path / "s.duckdb")
    assert ended.code == 2 and "recipe star has one refresh a round" in ended.err
