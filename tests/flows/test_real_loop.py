# SPDX-License-Identifier: Apache-2.0
"""The whole loop, small, with the real sampler and the real trainer: it resumes when cut."""

import os
import signal
import time
from pathlib import Path

import pytest
from running import ROOT, ask, facts, starloop, start

STAR = ROOT / "configs" / "star.yaml"
SMALL = [
    *("task.digits=3", "task.train=1500", "policy.digits=3", "policy.steps=120"),
    *("generate.problems.per_round=150", "update.steps.first=20", "update.updater.save_every=5"),
    *("evaluate.n=2", "evaluate.k=2", "evaluate.problems=10"),
]


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of two undisturbed rounds."""
    store = tmp_path_factory.mktemp("real") / "runs" / "store.duckdb"
    ended = starloop("run", STAR, *SMALL, "--rounds", 2, "--store", store)
    assert (ended.code, ended.err) == (0, "")
    return store


@pytest.mark.slow
def test_every_policy_that_sampled_is_a_model_with_its_own_trajectories(learned: Path) -> None:
    policies = ask(
        learned,
        "select round, count(distinct model_id), count(distinct weight_version) from trajectory "
        "join step_output on id = trajectory_id where purpose = 'train' and step = 'generate' "
        "group by all order by all",
    )
    assert policies == [(1, 1, 1), (2, 1, 1)]
    starts = ask(learned, "select count(distinct init_model_id), count(*) from training_update")
    assert starts == [(1, 2)], "STaR trains the base afresh each round"


@pytest.mark.slow
def test_an_update_that_is_killed_goes_on_from_its_checkpoint_to_the_same_rows(
    learned: Path, tmp_path: Path
) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    process = start(store, STAR, *SMALL, "--rounds", 2)
    deadline = time.monotonic() + 300
    while not (saved := list(store.parent.glob("star/work/*/training/checkpoint-*/COMPLETE"))):
        assert process.poll() is None and time.monotonic() < deadline, "no checkpoint came"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    ended = starloop("run", STAR, *SMALL, "--rounds", 2, "--store", store)
    assert (ended.code, ended.err) == (0, "")
    assert saved
    mine, undisturbed = facts(store), facts(learned)
    assert {name for name in mine if mine[name] != undisturbed[name]} == set()
