# SPDX-License-Identifier: Apache-2.0
"""The forecast of a dry run, against hand-worked numbers and what a finished run left."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from running import ROOT, TRY, Ended, ask

from configs.load import load
from flows.forecast import forecast
from flows.fork import Fork
from report.forecast import Forecast, forecast_page
from store.db import Store

Command = Callable[..., Ended]
STAR = ROOT / "configs" / "star.yaml"
# 3 copies of (100 + 10 × 20) bytes less the 150 there, 2 × 40 of checkpoints, 60 of training,
# and twice the log of 4 answers
SMALL = Forecast("r", 2, 4, 3, 2, 10, 20.0, True, 100, 50, "all", 2, 40, 60, 1210)


def test_the_room_needed_is_worked_out_by_hand() -> None:
    assert SMALL.grown == 300
    assert SMALL.log == 2 * 4 * 20
    assert SMALL.needed == 3 * 300 - 150 + 2 * 160 + 80 + 60 == 1210
    assert "warning" not in forecast_page(SMALL)
    last = forecast_page(replace(SMALL, free_bytes=1209)).splitlines()[-1]
    assert last.startswith("warning: 1 B are missing: make room, keep fewer checkpoints")


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    page = forecast_page(replace(SMALL, checkpoint_bytes=None, training_bytes=None))
    assert "of a size that is known once a run began" in page
    assert "1.1 kB needed without the checkpoints, 1.2 kB free" in page
    found = forecast("star", load(STAR), Store(tmp_path / "none" / "store.duckdb"))
    assert (found.checkpoint_bytes, found.measured) == (None, False)
    assert found.per_trajectory == 280 + 8 * 96
    assert not (tmp_path / "none").exists()


def test_the_trajectories_are_those_that_a_finished_run_has(finished: Path) -> None:
    found = forecast("new", load(TRY), Store(finished))
    sql = "select count(*) from trajectory where purpose = ?"
    ((answers,),) = ask(finished, sql, "train")
    ((held_out,),) = ask(finished, sql, "eval")
    ((hinted,),) = ask(finished, sql, "rationalize")
    assert (found.rounds, found.answers, found.hinted) == (2, 60, 60)
    assert (2 * found.answers, 3 * found.held_out) == (answers, held_out)
    assert found.in_all == 2 * (60 + 60) + 3 * found.held_out >= answers + hinted + held_out
    (folder, *_) = (finished.parent / "models").glob("*/model.safetensors")
    assert found.checkpoint_bytes == pytest.approx(folder.stat().st_size, rel=0.2)
    ((stored,),) = ask(finished, "select count(*) from trajectory")
    assert found.per_trajectory == Store(finished).copy.stat().st_size / stored


@pytest.mark.parametrize(
    ("keep", "rounds", "at_once"),
    [
        *(("all", 2, 0), ("all", 9, 7), ("best", 9, 3), ("best", 4, 2)),
        *(("last(1)", 9, 2), ("last(3)", 9, 4), ("last(30)", 9, 7)),
    ],
)
def test_a_run_that_is_there_is_asked_for_its_rest(
    finished: Path, keep: str, rounds: int, at_once: int
) -> None:
    found = forecast("try", load(TRY, [f"keep={keep}", f"rounds={rounds}"]), Store(finished))
    assert (found.rounds, found.checkpoints) == (rounds - 2, at_once)
    assert found.in_all == (rounds - 2) * (60 + 60 + found.held_out)


def test_a_fork_is_asked_for_the_rounds_after_its_source(finished: Path) -> None:
    found = forecast("bent", load(TRY, ["rounds=4"]), Store(finished), Fork("try", 1))
    assert (found.rounds, found.in_all) == (3, 3 * (120 + found.held_out))


def test_rounds_that_are_not_measured_have_no_held_out_answers(finished: Path) -> None:
    found = forecast("new", load(TRY, ["rounds=5", "evaluate.every=2"]), Store(finished))
    assert found.in_all == 5 * 120 + 3 * found.held_out  # rounds 0, 2 and 4


def test_an_update_keeps_two_checkpoints_and_writes_a_third(tiny_folder: Path) -> None:
    weights = (tiny_folder / "model.safetensors").stat().st_size
    here = Store(tiny_folder.parent / "none" / "store.duckdb")
    policy = f"policy={{type: folder, path: {tiny_folder}}}"
    for save_every, saved in ((1000, 1), (60, 2), (1, 3)):
        more = ["rounds=1", "update.steps.first=100", f"update.updater.save_every={save_every}"]
        found = forecast("new", load(STAR, [policy, *more]), here)
        assert found.checkpoint_bytes == pytest.approx(weights, rel=0.2)
        assert found.training_bytes == 3 * saved * (found.checkpoint_bytes or 0)


def test_epochs_are_forecast_from_all_that_may_train(tiny_folder: Path) -> None:
    # 100 answers and 100 hinted ones in each of 2 rounds, 10 seed rows: 410 rows, 2 epochs of 64
    here = Store(tiny_folder.parent / "none" / "store.duckdb")
    given = [
        f"policy={{type: folder, path: {tiny_folder}}}", "rounds=2", "update.steps={epochs: 2}",
        "generate.problems.per_round=100", "mix.seed_rows=10",
    ]  # fmt: skip
    for save_every, saved in ((13, 1), (12, 2), (6, 3)):  # 13 steps
        found = forecast(
            "new", load(STAR, [*given, f"update.updater.save_every={save_every}"]), here
        )
        assert found.training_bytes == 3 * saved * (found.checkpoint_bytes or 0)
    replaced = [*given, "mix.history=new_only", "update.updater.save_every=7"]  # 210 rows, 7 steps
    found = forecast("new", load(STAR, replaced), here)
    assert found.training_bytes == 3 * (found.checkpoint_bytes or 0)


def test_a_dry_run_shows_the_config_on_stdout_and_the_forecast_on_stderr(
    command: Command, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name for path in finished.parent.iterdir()}
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 8, 1))  # type: ignore[attr-defined]
    ended = command("run", TRY, "keep=best", "--rounds", 3, "--dry-run", "--store", finished)
    assert ended.code == 0
    assert json.loads(ended.out)["keep"] == "best"
    first, *_, last = ended.err.splitlines()
    assert first == "forecast for run try, rounds to go: 1"
    assert last.startswith("warning: ")
    assert {path.name for path in finished.parent.iterdir()} == before
