# SPDX-License-Identifier: Apache-2.0
"""A run whose whole process group is killed, again and again, ends as one that was not."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from running import TRY, clean_environment, contents, starloop

KILLS = 5
SEED = 20240229
WHEN = {"run", "step_run", "event"}  # what tells when things ran, not what was computed


def facts(store: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of a store but those that tell when; step outputs without run and reuse."""
    tables = {name: rows for name, rows in contents(store).items() if name not in WHEN}
    tables["step_output"] = sorted((row[1:-1] for row in tables["step_output"]), key=repr)
    return tables


def at_work(folder: Path) -> set[tuple[str, int]]:
    """What a step has on disk while it works, checkpoints included."""
    found = set()
    for path in [*folder.glob("try/work/**/*"), *folder.glob("models/*")]:
        try:
            found.add((str(path), path.stat().st_mtime_ns))
        except FileNotFoundError:
            continue
    return found


def start(store: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [Path(sys.executable).with_name("starloop"), "run", TRY, "--store", store],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=clean_environment(),
    )


def kill_while_it_works(store: Path, after_s: float) -> int:
    """Start the run, kill its group so long after its first sign of work; its exit code."""
    before = at_work(store.parent)
    process = start(store)
    deadline = time.monotonic() + 120
    while at_work(store.parent) <= before and process.poll() is None:
        assert time.monotonic() < deadline, "the run shows no sign of work"
        time.sleep(0.005)
    time.sleep(after_s)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


@pytest.mark.slow
def test_a_run_killed_five_times_has_the_rows_of_one_that_was_not(
    finished: Path, tmp_path: Path
) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    rng = random.Random(SEED)
    ends = [kill_while_it_works(store, rng.uniform(0.02, 0.6)) for _ in range(KILLS)]
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
