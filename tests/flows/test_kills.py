# SPDX-License-Identifier: Apache-2.0
"""A run whose whole process group is killed, again and again, ends as one that was not."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from running import TRY, contents, facts, starloop, start

KILLS = 10
SEED = 20240229


def at_work(folder: Path) -> set[tuple[str, int]]:
    """What a step has on disk while it works, checkpoints included."""
    found = set()
    for path in [*folder.glob("try/work/**/*"), *folder.glob("models/*")]:
        try:
            found.add((str(path), path.stat().st_mtime_ns))
        except FileNotFoundError:
            continue
    return found


def wait_for_work(process: "subprocess.Popen[bytes]", store: Path) -> None:
    """Until a step has something on disk that was not there, or the process has ended."""
    before = at_work(store.parent)
    deadline = time.monotonic() + 120
    while at_work(store.parent) <= before and process.poll() is None:
        assert time.monotonic() < deadline, "the run shows no sign of work"
        time.sleep(0.005)


def children(pid: int) -> set[int]:
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True)
    pairs = [line.split() for line in listing.stdout.splitlines()]
    return {int(child) for child, parent in pairs if int(parent) == pid}


def alive(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return state.stdout.strip()[:1] not in ("", "Z")


def wait_until_gone(pids: set[int]) -> set[int]:
    """Those of the processes that are still there after ten seconds."""
    deadline = time.monotonic() + 10
    while (left := {pid for pid in pids if alive(pid)}) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def kill_at_work(store: Path, after_s: float) -> int:
    """Start the run, kill its group so long after its first sign of work; its exit code."""
    process = start(store, TRY)
    wait_for_work(process, store)
    time.sleep(after_s)
    helpers = children(process.pid)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    assert wait_until_gone(helpers) == set(), "a helper outlived its run"
    return code


@pytest.mark.slow
def test_a_run_killed_ten_times_has_the_rows_of_one_that_was_not(
    finished: Path, tmp_path: Path
) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    rng = random.Random(SEED)
    ends = [kill_at_work(store, rng.uniform(0.02, 0.5)) for _ in range(KILLS)]
    assert ends == [-signal.SIGKILL] * KILLS, "a run ended before it was killed: shorten the waits"
    last = starloop("run", TRY, "--store", store)
    assert (last.code, last.err) == (0, "")
    mine, undisturbed = facts(store), facts(finished)
    assert mine.keys() == undisturbed.keys()
    assert {name for name in mine if mine[name] != undisturbed[name]} == set()
    left = [path for path in store.parent.rglob("*.tmp") if ".prefect" not in path.parts]
    assert left == []
    assert list(store.parent.glob("try/work/*")) == []
    assert contents(store.with_name("store.snapshot.duckdb")) == contents(store)


@pytest.mark.slow
def test_an_interrupted_run_says_so_in_one_line_and_exits_with_130(tmp_path: Path) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    process = start(store, TRY)
    while not list(store.parent.glob("try/work/*/shards")) and process.poll() is None:
        time.sleep(0.005)
    helpers = children(process.pid)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) == 130
    said = (tmp_path / "errors").read_text()
    assert said == "starloop: interrupted: the same command goes on from here\n"
    assert wait_until_gone(helpers) == set()
