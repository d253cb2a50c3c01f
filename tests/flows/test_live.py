# SPDX-License-Identifier: Apache-2.0
"""Runs on a real terminal: the screen, Ctrl-C in each stage, watched from elsewhere, killed."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from running import ROOT, TRY, clean_environment, server, starloop
from terminals import terminal

from flows.progress import FILE, Tail

PLACES = ", ".join(f"'{{{name}}}'" for name in ("data", "start", "steps", "seed", "out"))
SLEEPER = f"[{sys.executable}, -c, 'import time; time.sleep(600)', {PLACES}]"


def wait_for_stage(folder: Path, label: str, process: "subprocess.Popen[bytes]") -> None:
    """Until the run is in the stage, or has ended."""
    tail, deadline = Tail(folder / FILE), time.monotonic() + 120
    while process.poll() is None:
        if any(e["event"] == "stage" and e["stage"] == label for e in tail.read()):
            return
        assert time.monotonic() < deadline, f"{label} never began"
        time.sleep(0.02)


def small(folder: Path, *more: str) -> list[str]:
    """A run whose policy is there already."""
    return ["run", str(TRY), f"policy={{type: folder, path: {folder}}}", *more]


def events_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("columns", [60, 140])
def test_a_run_draws_its_screen_and_leaves_the_table(
    tiny_folder: Path, tmp_path: Path, columns: int
) -> None:
    given = [*small(tiny_folder), "--rounds", "1", "--store", str(tmp_path / "store.duckdb")]
    with terminal(*given, columns=columns, PREFECT_API_URL=server()) as on:
        assert on.end() == 0
        assert re.search(r"run try · round 1 of 1 · \d:\d\d", on.text)
        assert on.is_restored
        *_, head, base, one = on.text.rstrip().splitlines()
    assert head.split()[:2] == ["round", "pass@1"]
    assert ("rationalized" in head) is (columns == 140)
    assert (base.split()[0], one.split()[0]) == ("base", "1")
    assert max(len(line) for line in (head, base, one)) <= columns


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "overrides"),
    [
        ("base model", ["policy={type: tiny, digits: 3, steps: 100000}"]),
        ("evaluate", ["sampler={type: transformers}", "evaluate.n=4000"]),
        ("generate", ["sampler={type: transformers}", "evaluate.n=4", "generate.n=4000",
                      "gates.preflight=warn"]),
        ("update", ["update.steps.first=100000", "update.updater={type: sft}"]),
        ("update", [f"update.updater={{type: command, command: {SLEEPER}}}"]),
    ],
    ids=["base model", "evaluate", "generate", "update", "child process"],
)  # fmt: skip
def test_ctrl_c_in_mid_stage_gives_the_terminal_back_and_says_how_to_go_on(
    tiny_folder: Path, tmp_path: Path, stage: str, overrides: list[str]
) -> None:
    store = tmp_path / "store.duckdb"
    given = [*small(tiny_folder, *overrides), "--store", str(store)]
    with terminal(*given, PREFECT_API_URL=server()) as on:
        wait_for_stage(tmp_path / "try", stage, on.process)
        time.sleep(1.0)
        assert on.process.poll() is None, on.text
        on.interrupt()
        assert on.end(60) == 130, on.text
        assert on.is_restored
        assert "interrupted: the same command goes on from here" in on.text
        assert "Traceback" not in on.text
    left = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True).stdout
    assert str(tmp_path) not in left, "a child outlived its run"
    status = starloop("status", "--store", store)
    assert "try: interrupted" in status.out
    assert re.search(rf"^  next: \S*starloop {re.escape(shlex.join(given))}$", status.out, re.M)


@pytest.mark.slow
def test_a_run_is_watched_from_a_second_process_to_its_end(
    tiny_folder: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store.duckdb"
    run = subprocess.Popen(
        [Path(sys.executable).with_name("starloop"), *small(tiny_folder), "--json",
         "--store", str(store)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env=clean_environment(PREFECT_API_URL=server()),
    )  # fmt: skip
    wait_for_stage(tmp_path / "try", "problems", run)  # type: ignore[arg-type]
    with terminal("watch", "--store", store) as on:
        status = starloop("status", "--store", store)
        watched = starloop("watch", "try", "--json", "--store", store)
        out, err = run.communicate(timeout=120)
        assert (run.returncode, err) == (0, "")
        assert on.end() == 0
        assert "run try · round" in on.text and "run try ended as asked (exit 0)" in on.text
        assert on.is_restored
    assert f"process {run.pid}" in status.out and "  next: starloop watch try" in status.out
    told, seen = events_of(out), events_of(watched.out)
    begun = next(n for n, event in enumerate(told) if event["event"] == "begun")
    assert seen == told[begun:]
    assert told[-1]["outcome"] == "done" and {event["v"] for event in told} == {1}
    assert [event["round"] for event in told if event["event"] == "row"] == [0, 1, 2]
    steps = [event["step"] for event in told if event["event"] == "step" and event["round"] == 2]
    assert steps == ["generate", "verify", "rationalize", "mix", "update", "watch", "evaluate"]


def test_a_killed_run_is_said_to_be_so(tiny_folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "store.duckdb"
    given = [*small(tiny_folder, f"update.updater={{type: command, command: {SLEEPER}}}"),
             "--store", str(store)]  # fmt: skip
    run = subprocess.Popen(
        [Path(sys.executable).with_name("starloop"), *given], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, cwd=ROOT, env=clean_environment(PREFECT_API_URL=server()),
    )  # fmt: skip
    wait_for_stage(tmp_path / "try", "update", run)
    with (tmp_path / "try" / FILE).open("ab") as torn:
        torn.write(b'{"v":1,"n":9999,"at":"2026-')
    with terminal("watch", "try", "--store", store) as on:
        time.sleep(0.5)
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        assert on.end() == 1
        assert (
            f"was killed in round 1 of 2 · update · 0 of 30: process {run.pid} is gone" in on.text
        )
        assert on.is_restored
    status = starloop("status", "--store", store, cwd=tmp_path)
    assert f"try: killed: round 1 of 2 · update · 0 of 30 · process {run.pid} is gone" in status.out
    said = rf"^  next: cd {ROOT} && \S*starloop {re.escape(shlex.join(given))}$"
    assert re.search(said, status.out, re.M)


@pytest.mark.slow
def test_a_failed_and_a_held_run_are_told_as_such_with_why(
    tiny_folder: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store.duckdb"
    trainer = f"update.updater={{type: command, command: ['false', {PLACES}]}}"
    failed = starloop(*small(tiny_folder, trainer), "--name", "fails", "--store", store)
    assert failed.code == 1
    held = starloop(*small(tiny_folder, "sampler={type: transformers}", "evaluate.n=4", "seed=7"),
                    "--name", "holds", "--store", store)  # fmt: skip
    assert held.code == 3
    shown = starloop("status", "--store", store).out
    assert "fails: failed: update.updater.command ended with status 1" in shown
    assert "holds: held: run holds is held before round 1" in shown
    assert shown.count("  next: ") == 2 and "--name holds" in shown
    rows = events_of(starloop("status", "--json", "--store", store).out)
    assert [(row["run"], row["state"]) for row in rows] == [("fails", "failed"), ("holds", "held")]
    watched = starloop("watch", "holds", "--store", store)
    assert watched.code == 3 and "run holds is held (exit 3): run holds is held" in watched.out
