# SPDX-License-Identifier: Apache-2.0
"""Engine starts: measured where a run has some, warned of where they take most of the time."""

import json
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from running import ROOT, TRY, Ended, ask

from configs.load import load
from configs.schema import Config
from flows.context import Run
from flows.screen import Screen
from flows.starts import starts_warning
from stages import ids
from stages.policies.checkpoint import model_id_of, model_row
from stages.rows import Model
from stages.samplers import vllm_child
from store.db import Store

VLLM = [f"sampler={{type: vllm, python: {sys.executable}}}", "verifier={type: exact}"]
DPO = ROOT / "configs" / "dpo.yaml"


def online(*more: str) -> Config:
    """DPO on 600 problems a round, 8 answers of at most 96 tokens each, 60 steps."""
    given = ["generate.problems.per_round=600", "generate.n=8", "update.steps.first=60"]
    return load(DPO, ["sampler={type: vllm}", *given, *more])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "runs" / "store.duckdb")
    made.create()
    return made


def test_the_share_is_worked_out_by_hand_from_what_is_assumed(store: Store) -> None:
    """every(1): 10 problems × 8 × 48 tokens / 5,000 a second, a step: 1.8 s beside 60 s."""
    line = starts_warning("one", online("timing.policy_refresh=every(1)"), store, 600)
    assert line is not None
    assert line.startswith("warning: 97% of the time goes into starting the sampler's engine")
    assert "assumed: 60 s a start, 5,000 tokens a second" in line
    assert "raise s in timing.policy_refresh" in line


@pytest.mark.parametrize(
    "overrides",
    [
        ["timing.policy_refresh=every(60)"],  # 46 s of sampling, 60 steps
        ["timing.policy_refresh=every(1)", "generate.sampling.max_tokens=8192"],
        ["timing.policy_refresh=every(1)", "sampler={type: transformers}"],
    ],
)
def test_there_is_no_warning_where_the_work_is_more_or_no_process_is_started(
    store: Store, overrides: list[str]
) -> None:
    assert starts_warning("one", online(*overrides), store, 600) is None


def measured(store: Store, refresh_s: float) -> None:
    """A run that started an engine in 20 and 40 s and had two refreshes of so many seconds."""
    run = ids.run_id("one")
    with store.transaction() as tx:
        tx.append(
            "begin_run", run_id=run, name="one", recipe="dpo", config="{}", identity="{}",
            manifest="{}", forked_from=None, forked_at_round=None,
        )  # fmt: skip
        for seconds in (20.0, 40.0):
            tx.append(
                "add_event", run_id=run, round=None, refresh=None, kind="engine_started",
                message="", detail=json.dumps({"seconds": seconds}),
            )  # fmt: skip
        for refresh in (0, 1):
            for step, wall_s in (("generate", refresh_s - 5), ("update", 5.0)):
                tx.append(
                    "commit_step", run_id=run, round=1, refresh=refresh, step=step,
                    step_key=ids.step_key(step, 1, [refresh], ""), reused=False, wall_s=wall_s,
                    work_s=0.0,
                )  # fmt: skip
    store.snapshot()


def test_what_the_run_has_measured_takes_the_place_of_what_is_assumed(store: Store) -> None:
    measured(store, refresh_s=40.0)
    line = starts_warning("one", online("timing.policy_refresh=every(60)"), store, 600)
    assert line is not None
    assert line.startswith("warning: 75% of the time goes into")
    assert "(measured: 30 s a start, 40 s a refresh with it)" in line
    assert starts_warning("another", online("timing.policy_refresh=every(60)"), store, 600) is None


def test_measured_refreshes_that_are_long_enough_need_no_warning(store: Store) -> None:
    measured(store, refresh_s=90.0)
    assert starts_warning("one", online("timing.policy_refresh=every(1)"), store, 600) is None


def test_a_dry_run_says_it(command: Callable[..., Ended], tmp_path: Path) -> None:
    given = ["sampler={type: vllm}", "timing.policy_refresh=every(1)", "--dry-run"]
    ended = command("run", DPO, *given, "--store", tmp_path / "runs" / "store.duckdb")
    assert ended.code == 0
    assert "warning: 97% of the time goes into starting the sampler's engine" in ended.err


def test_each_engine_that_a_run_starts_is_an_event_with_its_seconds(
    store: Store, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = ROOT / "tests" / "stages" / "samplers" / "vllm_stub.py"
    monkeypatch.setattr(vllm_child, "__file__", str(stub))
    config = load(TRY, [f"policy={{type: folder, path: {tiny_folder}}}", *VLLM])
    screen = Screen(Console(file=StringIO()))
    run = Run("one", ids.run_id("one"), config, store, screen)
    with store.transaction() as tx:
        tx.insert(Model, [model_row(tiny_folder, "outside", store.folder)])
    model = model_id_of(tiny_folder)
    try:
        assert run.engine(model) is run.engine(model)
    finally:
        run.close()
    ((message, detail),) = ask(store.path, "select message, detail from event")
    assert message.startswith("the sampler's engine started in ")
    assert 0 < json.loads(detail)["seconds"] < 60
