# SPDX-License-Identifier: Apache-2.0
"""Resets of reference and optimizer through the whole loop, killed, forked and shown."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running import ROOT, TRY, ask, clean_environment, facts, starloop

from configs.load import load
from report.rounds import header
from stages.errors import ConfigError

GRPO = ROOT / "configs" / "tiny" / "grpo.yaml"
GIVEN = (
    GRPO, "update.reference=base", "update.reset_optimizer=never", "rounds=5",
    "timing.policy_refresh=every_round", "update.steps.first=2", "monitors.kl=false",
    "update.updater={type: grpo, batch_size: 16, warmup_steps: 0, beta: 0.1}",
)  # fmt: skip
PLATEAU = (*GIVEN, "update.resets=on_plateau(2)")  # the made-up student never gets better


def resets(store: Path, run: str = "grpo") -> list[tuple[int, dict[str, Any]]]:
    found = ask(
        store,
        "select event.round, detail from event join run using (run_id) "
        "where run.name = ? and kind = 'reset' order by round",
        run,
    )
    return [(number, json.loads(detail)) for number, detail in found]


def updates(store: Path, run: str = "grpo") -> list[tuple[int, Any, Any, Any]]:
    """Round, start, reference, and whether the optimizer went on, in order."""
    return ask(
        store,
        "select s.round, u.init_model_id, u.reference_model_id, u.optimizer_from is not null "
        "from step_output s join training_update u on u.update_id = s.id where s.run = ? "
        "order by s.round",
        run,
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("resets") / "store.duckdb"
    ended = starloop("run", *PLATEAU, "--store", store)
    assert (ended.code, ended.err) == (0, "")
    assert "resets on_plateau(2)" in ended.out and "begins with a reset" in ended.out
    return store


@pytest.mark.slow
def test_a_plateau_resets_reference_and_optimizer_of_the_rounds_that_follow(done: Path) -> None:
    values = ask(
        done,
        "select s.round, m.value, (m.high - m.low) / 2 / 1.959963984540054 from step_output s "
        "join metric m on m.evaluation_id = s.id where s.kind = 'evaluation' "
        "and m.name = 'pass_at_1' and m.slice = 'all' order by s.round",
    )
    assert [number for number, *_ in values] == [0, 1, 2, 3, 4, 5]
    expected, since, best = [], 1, values[0]
    for number in range(1, 6):
        newest = values[number - 1]
        if newest[1] > best[1] + newest[2]:
            best = newest
        if number > since and newest[0] - best[0] >= 2:
            expected.append(number)
            since, best = number, newest
    assert [number for number, _ in resets(done)] == expected != []
    trained = updates(done)
    base = trained[0][1]
    reference, came = base, dict(resets(done))
    for number, init, used, goes_on in trained:
        if number in came:
            reference = init
            assert came[number]["model"] == str(init)
        assert (used, goes_on) == (reference, number > 1 and number not in came)


@pytest.mark.slow
def test_a_reset_is_shown_by_status_and_report(done: Path) -> None:
    (first, detail), *_ = resets(done)
    assert f"reset in round {first}" in starloop("status", "--store", done).out
    report = starloop("report", "grpo", "--store", done).out
    assert "grpo: resets" in report and detail["why"] in report


@pytest.mark.slow
def test_a_run_killed_after_a_reset_ends_like_one_that_was_not(done: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    command = [str(Path(sys.executable).with_name("starloop")), "run", *map(str, PLATEAU)]
    process = subprocess.Popen(
        [*command, "--store", str(store)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True, env=clean_environment(), text=True,
    )  # fmt: skip
    assert process.stdout is not None
    said = next(line for line in process.stdout if "begins with a reset" in line)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    (first, _), *_ = resets(done)
    assert said.startswith(f"round {first} begins")
    ended = starloop("run", *PLATEAU, "--store", store)
    assert ended.code == 0, ended.err
    assert f"round {first} begins with a reset" not in ended.out  # it has begun
    assert resets(store) == resets(done)
    assert facts(store) == facts(done)


@pytest.mark.slow
def test_a_fork_takes_over_the_resets_up_to_its_round(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done.parent, tmp_path / "runs", ignore=shutil.ignore_patterns(".prefect"))
    store = tmp_path / "runs" / done.name
    (first, _), *_ = resets(store)
    changed = (*GIVEN, f"update.resets=every({first + 50})", f"rounds={first + 1}")
    ended = starloop("run", *changed, "--fork", f"grpo@{first}", "--name", "bent", "--store", store)
    assert ended.code == 0, ended.err
    assert resets(store, "bent") == resets(store)[:1]
    (_, _, reference, goes_on) = updates(store, "bent")[first]
    assert reference == updates(store)[first - 1][1] and goes_on


@pytest.mark.slow
def test_rounds_may_be_counted_instead(tmp_path: Path) -> None:
    store = tmp_path / "store.duckdb"
    ended = starloop("run", *GIVEN, "update.resets=every(2)", "evaluate.every=5", "--store", store)
    assert ended.code == 0, ended.err
    assert [number for number, _ in resets(store)] == [3, 5]
    assert [goes_on for *_, goes_on in updates(store)] == [False, True, False, True, False]


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["update.resets=sometimes"], "update.resets: 'sometimes' is not allowed: use never, ev"),
        (["update.resets=every(0)"], "'every(0)' is not allowed"),
        (["update.resets=every(2)", "update.init_from=base"], "use init_from: round_start"),
        (["update.resets=every(2)", "update.reference=round_start"], "which moves along by itself"),
        (["update.resets=every(2)", "update.reference=synced(every 3)"], "use reference: base"),
        (
            ["update.resets=every(2)", "update.reference=null", "update.updater.beta=0.0",
             "update.reset_optimizer=round"],
            "there is neither a reference nor an optimizer that goes on over rounds",
        ),
    ],
)  # fmt: skip
def test_a_reset_that_resets_nothing_is_refused(overrides: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(GRPO, [*map(str, GIVEN[1:]), *overrides])
    assert said in str(caught.value)


def test_a_header_says_when_a_run_resets() -> None:
    assert header(load(GRPO, list(map(str, PLATEAU[1:])))).endswith("resets on_plateau(2)")
    assert "resets" not in header(load(TRY))
