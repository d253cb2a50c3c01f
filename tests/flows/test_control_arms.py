# SPDX-License-Identifier: Apache-2.0
"""Shaped rewards and control arms in real runs of one store: what training sees, what measures."""

from pathlib import Path

import pytest
from running import ROOT, Ended, ask, starloop

pytestmark = pytest.mark.slow

CONFIG = ROOT / "configs" / "tiny" / "dpo.yaml"
KEYS = ("update.updater.takes=rollout", "timing.policy_refresh=every_round", "--rounds", "1")
SHAPED = (
    "verifier={type: weighted, parts: [{type: exact}, {type: format}, {type: length, rule: "
    "among(4)}, {type: distance, wanted: 1}], weights: [1.0, 0.25, 0.5, 0.0]}"
)
ARMS = ("random", "incorrect", "format_only")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arms") / "runs" / "store.duckdb"


@pytest.fixture(scope="module")
def runs(store: Path) -> dict[str, Ended]:
    """The true reward, a shaped one, and each control arm, by the name that was given."""
    given = {"true": (), "shaped": (SHAPED,), **{arm: (f"reward.type={arm}",) for arm in ARMS}}
    ended = {}
    for name, keys in given.items():
        run = "true" if name in ARMS else name
        ended[name] = starloop("run", CONFIG, *KEYS, *keys, "--name", run, "--store", store)
        assert ended[name].code == 0, ended[name].err
    return ended


def test_a_shaped_reward_is_the_sum_of_its_stored_parts_and_right_is_what_exact_says(
    store: Path, runs: dict[str, Ended]
) -> None:
    rows = ask(
        store,
        "select f.status, f.score, sum(c.value * c.weight), count(*), "
        "max(c.value) filter (component = 'exact'), min(c.weight) "
        "from trajectory_fate f join verdict v using (trajectory_id) "
        "join verifier w on w.verifier_id = v.verifier_id and w.name = 'weighted' "
        "join verdict_component c using (verdict_id) "
        "where f.run = 'shaped' and f.purpose = 'train' group by f.trajectory_id, 1, 2",
    )
    assert len(rows) == 240
    for status, score, total, parts, exact, least in rows:
        assert score == pytest.approx(total)
        assert (status == "correct") == (exact == 1.0)
        assert (parts, least) == (4, 0.0)
    assert len({score for _, score, *_ in rows}) > 2
    groups = ask(
        store,
        "select t.problem_id, max(value), min(value) from verdict_component "
        "join verdict using (verdict_id) join trajectory t using (trajectory_id) "
        "where component = 'length' and t.purpose = 'train' group by all",
    )
    assert len(groups) == 60
    assert all(-0.5 <= low <= high <= 0.5 for _, high, low in groups)
    assert any(low < 0 for _, _, low in groups)


def test_an_arm_is_in_the_runs_name_header_and_report(store: Path, runs: dict[str, Ended]) -> None:
    names = {name for (name,) in ask(store, "select name from run")}
    assert names == {"true", "shaped", *(f"true-{arm}" for arm in ARMS)}
    assert "reward exact; update tally" in runs["true"].out
    assert "reward 1 × exact + 0.25 × format + 0.5 × length (rule among(4)) (metrics: " in (
        runs["shaped"].out
    )
    assert "reward random (p 0.5, seed 0) in place of exact: a control arm; " in runs["random"].out
    for arm in ARMS:
        assert f"run true-{arm} begins" in runs[arm].out
        page = starloop("report", f"true-{arm}", "--store", store)
        assert page.code == 0 and "A control arm: training saw another reward" in page.out
    assert "A control arm" not in starloop("report", "true", "--store", store).out


def test_training_sees_the_arms_reward_on_the_same_answers_and_the_status_stays(
    store: Path, runs: dict[str, Ended]
) -> None:
    fates = {
        run: {id_: (status, score) for id_, status, score in ask(
            store,
            "select trajectory_id, status, score from trajectory_fate "
            "where run = ? and round = 1 and purpose = 'train'",
            run,
        )}
        for run in ("true", *(f"true-{arm}" for arm in ARMS))
    }  # fmt: skip
    true = fates["true"]
    for arm in ARMS:
        found = fates[f"true-{arm}"]
        assert found.keys() == true.keys()
        assert {id_: status for id_, (status, _) in found.items()} == {
            id_: status for id_, (status, _) in true.items()
        }
        assert {id_: score for id_, (_, score) in found.items()} != {
            id_: score for id_, (_, score) in true.items()
        }
    assert all(
        score == float(status == "wrong") or score == 0.0
        for status, score in fates["true-incorrect"].values()
    )
    trained = ask(
        store,
        "select r.name, x.trajectory_id, x.reward from run r "
        "join step_output s on s.run_id = r.run_id and s.kind = 'training_set' "
        "join training_row_trajectory x on x.training_set_id = s.id",
    )
    assert {name for name, _, _ in trained} == {"shaped", *fates}
    for name, trajectory, reward in trained:
        if name in fates:
            assert reward == fates[name][trajectory][1]
    sets = ask(store, "select count(distinct id) from step_output where kind = 'training_set'")
    assert sets == [(5,)]


def test_what_is_measured_is_measured_by_the_true_verifier(
    store: Path, runs: dict[str, Ended]
) -> None:
    verifiers = ask(
        store,
        "select distinct r.name, v.name, v.config from run r "
        "join step_output s on s.run_id = r.run_id and s.kind = 'evaluation' "
        "join evaluation e on e.evaluation_id = s.id join verifier v using (verifier_id)",
    )
    exact = {(run, name) for run, name, _ in verifiers if run != "shaped"}
    assert exact == {("true", "exact"), *((f"true-{arm}", "exact") for arm in ARMS)}
    base = ask(store, "select run, pass_at_1 from round_summary where round = 0")
    assert len({value for _, value in base}) == 1 and len(base) == 5
    judged = ask(
        store,
        "select distinct v.name, t.purpose from verdict d join verifier v using (verifier_id) "
        "join trajectory t using (trajectory_id)",
    )
    assert {name for name, purpose in judged if purpose == "eval"} == {"exact", "weighted"}
    assert {(f"exact+{arm}", "train") for arm in ARMS} <= set(judged)
    reused = ask(
        store,
        "select r.name from run r join step_run s using (run_id) "
        "where s.step = 'generate' and s.reused",
    )
    assert {name for (name,) in reused} == {"shaped", *(f"true-{arm}" for arm in ARMS)}


def test_the_store_is_sound_with_all_of_them(store: Path, runs: dict[str, Ended]) -> None:
    ended = starloop("doctor", "--store", store)
    assert ended.code == 0, ended.out
