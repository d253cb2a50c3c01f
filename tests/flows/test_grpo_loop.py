# SPDX-License-Identifier: Apache-2.0
"""Policy gradients through the whole loop: groups, further tries, resume; training is a tally."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from running import ROOT, TRY, ask, contents, facts, starloop, start

from configs.load import load
from stages.errors import ConfigError

GRPO = ROOT / "configs" / "tiny" / "grpo.yaml"
REAL = (
    "policy.steps=0",
    "sampler={type: transformers}",
    "generate.sampling={temperature: 1.0, max_tokens: 8}",
    "update.updater={type: grpo, batch_size: 8, warmup_steps: 0}",
    "gates.preflight=warn",
    "rounds=1",
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rounds of two refreshes, 12 problems to each try of them, 16 mixed groups wanted."""
    store = tmp_path_factory.mktemp("grpo") / "store.duckdb"
    ended = starloop("run", GRPO, "--store", store)
    assert (ended.code, ended.err) == (0, "")
    return store


def test_each_refresh_trains_on_groups_of_its_own(done: Path) -> None:
    found = ask(
        done,
        "select s.round, s.refresh, u.steps_done, y.rows > 0 from step_output s "
        "join training_update u on u.update_id = s.id "
        "join training_set y using (training_set_id) order by all",
    )
    assert found == [(round_, refresh, 3, True) for round_ in (1, 2) for refresh in (0, 1)]


def test_answers_to_a_problem_share_a_group_of_their_policy_and_refresh(done: Path) -> None:
    groups = ask(
        done,
        "select count(*), count(distinct problem_id), count(distinct model_id), "
        "count(distinct group_id) from trajectory where purpose = 'train' group by group_id",
    )
    assert set(groups) == {(4, 1, 1, 1)}
    assert ask(done, "select count(*) from trajectory where purpose = 'eval' and "
                     "group_id is not null") == [(0,)]  # fmt: skip


def test_rewards_and_advantages_are_those_of_the_whole_group(done: Path) -> None:
    """The stored advantage is (r − mean) / population deviation over all four answers."""
    found = ask(
        done,
        "with judged as (select t.group_id, t.trajectory_id, v.score from trajectory t "
        "join verdict v using (trajectory_id) where t.purpose = 'train'), spread as ("
        "select group_id, avg(score) as mean, stddev_pop(score) as deviation from judged group by "
        "all) select x.advantage, (score - mean) / deviation, x.reward, score, w.weight "
        "from training_row_trajectory x join judged using (trajectory_id) join spread "
        "using (group_id) join training_row w using (training_set_id, training_row_id)",
    )
    assert len(found) > 100
    for advantage, expected, reward, score, weight in found:
        assert advantage == pytest.approx(expected) and weight == advantage and reward == score


def test_no_group_of_equal_rewards_trains_and_each_says_why(done: Path) -> None:
    found = ask(
        done,
        "with sides as (select group_id, min(score) = max(score) as equal, min(score) as least "
        "from trajectory join verdict using (trajectory_id) where purpose = 'train' group by all) "
        "select distinct equal, least, d.why from decision d join trajectory using (trajectory_id) "
        "join sides using (group_id) order by all",
    )
    assert {(equal, why) for equal, _, why in found if equal} == {(True, "all_right"),
                                                                  (True, "all_wrong")}  # fmt: skip
    assert {why for equal, _, why in found if not equal} <= {"kept", "truncated", "over_wanted"}


def test_further_problems_are_tried_while_too_few_groups_are_mixed(done: Path) -> None:
    tries = ask(
        done,
        "select round, refresh, step, count(distinct t.problem_id) from step_output s "
        "join trajectory t on t.trajectory_id = s.id where starts_with(s.step, 'generate') "
        "group by all order by all",
    )
    assert {step for _, _, step, _ in tries} == {"generate", "generate-2"}
    assert {count for *_, count in tries} == {12}
    asked = ask(
        done,
        "select round, refresh, count(distinct problem_id), count(*) from step_output s "
        "join trajectory t on t.trajectory_id = s.id where starts_with(s.step, 'generate') "
        "group by all",
    )
    assert all(problems * 4 == answers for _, _, problems, answers in asked)
    kept = ask(
        done,
        "select s.round, s.refresh, count(distinct t.group_id) from step_run s "
        "join decision d using (step_key) join trajectory t using (trajectory_id) "
        "where d.kept group by all order by all",
    )
    assert [groups for *_, groups in kept] == [16] * 4


def test_sampled_and_kept_groups_are_counted(done: Path) -> None:
    found = dict(
        ask(
            done,
            "select name, list(value order by round, refresh) from round_monitors "
            "where name in ('groups', 'groups_kept') group by all",
        )
    )
    assert found["groups_kept"] == [16.0] * 4
    assert set(found["groups"]) <= {12.0, 24.0, 36.0} and max(found["groups"]) > 16


def test_the_spread_of_advantages_and_the_share_of_equal_groups_are_measured(done: Path) -> None:
    found = {
        (name, round_, refresh): value
        for name, round_, refresh, value in ask(
            done, "select name, round, refresh, value from round_monitors where slice = 'all'"
        )
    }
    spread = ask(
        done,
        "select s.round, s.refresh, var_pop(x.advantage) from step_output s "
        "join training_row_trajectory x on x.training_set_id = s.id group by all order by all",
    )
    equal = ask(
        done,
        "with groups as (select s.round, s.refresh, t.group_id, min(v.score) = max(v.score) as "
        "equal from step_output s join trajectory t on t.trajectory_id = s.id "
        "join verdict v using (trajectory_id) where starts_with(s.step, 'generate') group by all) "
        "select round, refresh, avg(equal::integer) from groups group by all order by all",
    )
    assert len(spread) == len(equal) == 4
    for round_, refresh, value in spread:
        assert found["advantage_variance", round_, refresh] == pytest.approx(value)
    for round_, refresh, value in equal:
        assert found["equal_rewards", round_, refresh] == pytest.approx(value)


def test_a_finished_run_does_nothing_when_it_is_run_again(done: Path) -> None:
    before = contents(done)
    ended = starloop("run", GRPO, "--store", done)
    assert ended.code == 0 and "complete" in ended.out
    assert contents(done) == before


def test_the_doctor_finds_every_id_as_it_should_be(done: Path) -> None:
    ended = starloop("doctor", "--store", done)
    assert ended.code == 0, ended.out + ended.err


@pytest.mark.slow
def test_a_run_killed_among_its_tries_ends_like_one_that_was_not(
    done: Path, tmp_path: Path
) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    process = start(store, GRPO)
    deadline = time.monotonic() + 120
    while len([p for p in store.parent.glob("models/*-*-*") if p.is_dir()]) < 2:  # base, an update
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    ended = starloop("run", GRPO, "--store", store)
    assert ended.code == 0, ended.err
    assert "going on" in ended.out
    assert facts(store) == facts(done)


@pytest.mark.slow
def test_groups_that_stay_one_sided_hold_the_round_until_more_tries_are_allowed(
    tmp_path: Path,
) -> None:
    """The student fails at first; with a higher cap the same round goes on from its tries."""
    store = tmp_path / "store.duckdb"
    given = (
        "sampler.skill=0.005", "generate.problems.per_round=4", "mix.groups.wanted=1",
        "timing.policy_refresh=every_round", "rounds=1", "gates.preflight=warn",
    )  # fmt: skip
    held = starloop("run", GRPO, *given, "mix.groups.tries=2", "--store", store)
    assert held.code == 3, held.err
    assert "no group of answers can train after 2 tries at its problems" in held.err
    assert "raise mix.groups.tries and run again" in held.err
    sampled = "select count(*) from trajectory where purpose = 'train'"
    assert ask(store, sampled) == [(32,)]
    ended = starloop("run", GRPO, *given, "mix.groups.tries=50", "--store", store)
    assert ended.code == 0, ended.err
    assert ask(store, sampled)[0][0] > 32
    assert ask(store, "select count(*) from step_run where step = 'generate'") == [(1,)]


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["generate.n=1"], "generate.n is 1: an answer is weighed against others to its problem"),
        (["generate.sampling.top_p=0.9"], "generate.sampling.top_p is 0.9: tokens that it cuts"),
        (["generate.sampling.top_k=20"], "generate.sampling.top_k is 20: tokens that it cuts off"),
        (["generate.sampling.temperature=0.0"], "greedy answers are all alike"),
        (["update.updater={type: grpo, epsilon: 0.3, epsilon_high: 0.2}"], "exchange them"),
        (["update.updater={type: kto}", "update.reference=base"], "does not make its rows"),
        (["update.updater={type: tally}"], "does not make its rows"),
        (["update.updater={type: grpo, beta: 0.1}"], "update.reference is missing: grpo"),
        (["update.reference=base"], "and tally has none: leave it out"),
        (["mix.groups.kl=0.1"], "update.reference is missing"),
        (["mix.groups.kl=0.1", "update.reference=base", "generate.sampling.temperature=0.7"],
         "mix.groups.kl compares with the reference at temperature 1"),
        (["generate.problems.per_round=all"], "there are no further problems to try"),
        (["mix.groups.wanted=null"], "give wanted and equal: drop"),
        (["mix.groups.baseline=none"], "use equal: keep"),
        (["update.updater={type: grpo, ratio: none, loss: dr_grpo, length: 1}",
          "mix.history=accumulate"], "takes no older policy's rollouts"),
        (["generate.max_tokens=[[4, 512], [2, 1024]]"], "with rising rounds"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_the_fix(overrides: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(GRPO, overrides)
    assert said in str(caught.value)


def test_other_recipes_have_no_groups() -> None:
    with pytest.raises(ConfigError, match="recipe star has no groups: leave it out"):
        load(TRY, ["mix.groups.wanted=3"])


@pytest.mark.slow
def test_answers_may_grow_from_a_round_on(tmp_path: Path) -> None:
    store = tmp_path / "store.duckdb"
    ended = starloop("run", GRPO, "generate.max_tokens=[[2, 128]]", "--store", store)
    assert (ended.code, ended.err) == (0, "")
    assert ask(
        store,
        "select distinct s.round, p.max_tokens from step_output s join trajectory t "
        "on t.trajectory_id = s.id join sampling p using (sampling_id) "
        "where s.step = 'generate' order by all",
    ) == [(1, 96), (2, 128)]


@pytest.mark.slow
def test_the_kl_inside_the_reward_is_read_from_the_reference_before_the_groups_are_weighed(
    tmp_path: Path,
) -> None:
    """The policy's ratio to the base is 1 at first, and the stored reward is the score then."""
    store = tmp_path / "store.duckdb"
    ended = starloop(
        "run", GRPO, *REAL, "update.reference=base",
        "mix.groups={baseline: leave_one_out, scale: none, equal: keep, kl: 0.1, truncated: train}",
        "--store", store,
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert "KL k1 in the reward with β 0.1" in ended.out
    found = ask(
        store,
        "select x.reward, v.score, l.logprob, list_sum(t.logprobs) from training_row_trajectory x "
        "join verdict v using (trajectory_id) join trajectory t using (trajectory_id) "
        "join trajectory_logprob l on l.trajectory_id = x.trajectory_id and l.model_id = ("
        "select id from step_output where step = 'setup' and kind = 'model')",
    )
    assert len(found) > 10
    for reward, score, reference, policy in found:
        assert reward == pytest.approx(score - 0.1 * (policy - reference), abs=1e-9)
    shutil.rmtree(tmp_path / "models")


@pytest.mark.slow
def test_the_kl_inside_the_loss_is_to_the_reference_that_the_update_names(tmp_path: Path) -> None:
    """The updater trains on what the made-up student said; two runs differ by β alone."""
    store = tmp_path / "store.duckdb"
    given = ("update.reference=base", "rounds=2", "timing.policy_refresh=every_round",
             "update.steps.first=2")  # fmt: skip
    for name, beta in (("held", 0.5), ("hardly", 1e-6)):
        updater = f"update.updater={{type: grpo, batch_size: 16, warmup_steps: 0, beta: {beta}}}"
        ended = starloop("run", GRPO, *given, updater, "--name", name, "--store", store)
        assert ended.code == 0, ended.err
        assert f"reference base, KL k3 in the loss with β {beta:g}" in ended.out
    found = ask(
        store,
        "select s.run, s.round, u.reference_model_id = (select any_value(id) from step_output "
        "where step = 'setup' and kind = 'model'), u.init_model_id, m.value from step_output s "
        "join training_update u on u.update_id = s.id join training_metric m "
        "on m.update_id = u.update_id and m.name = 'kl' and m.step = 2 order by all",
    )
    assert [row[:3] for row in found] == [
        (run, round_, True) for run in ("hardly", "held") for round_ in (1, 2)
    ]
    assert all(value >= 0 for *_, value in found)
    first = {run: init for run, round_, _, init, _ in found if round_ == 1}
    second = {run: init for run, round_, _, init, _ in found if round_ == 2}
    assert first["held"] == first["hardly"] and second["held"] != second["hardly"]
