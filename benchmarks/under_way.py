# SPDX-License-Identifier: Apache-2.0
"""Runs under way: two in one store, and one that is killed while it samples.

    python -m benchmarks.under_way STORE NAME CONFIG LOG [key=value …]    a child of the benchmark

The child runs as `starloop run` does, at the pace of a model that samples; it logs how many slots
it asks for, and prints what it waited.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.figures import Figure
from store.db import Store
from store.transaction import read

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "configs" / "tiny" / "try.yaml"
LARGE = ["generate.problems.per_round=500", "task.train=2000", "generate.n=4"]
RATE = 250  # slots a second: what the tiny policy of configs/star.yaml samples on two cores
SHARD = 64
KILLS = 5


def child(store: Path, name: str, config: Path, log: Path, overrides: list[str]) -> None:
    """Run, and print {"waited_s": …} at the end."""
    from rich.console import Console

    from configs.load import load
    from flows.environment import settle

    settle(store)
    from flows.loop import run_rounds
    from flows.screen import Screen
    from stages.samplers.scripted import Scripted

    real = Scripted.sample

    def logged(self, requests, sampling):  # type: ignore[no-untyped-def]
        with log.open("a") as file:
            file.write(f"{len(requests)}\n")
        time.sleep(len(requests) / RATE)
        return real(self, requests, sampling)

    Scripted.sample = logged  # type: ignore[method-assign]
    place = Store(store, patience_s=600.0)
    run_rounds(name, load(config, overrides), place, Screen(Console(quiet=True)))
    print(json.dumps({"waited_s": place.waited_s}))


def start(store: Path, name: str, *overrides: str) -> "subprocess.Popen[str]":
    """A child in a process group of its own."""
    log = store.parent / f"{name}.asked"
    given = [str(part) for part in (store, name, CONFIG, log, *overrides)]
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.under_way", *given],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def two_at_once(folder: Path) -> Figure:
    """Share of their loops that two runs of other seeds in one store wait for each other."""
    store = folder / "two" / "store.duckdb"
    store.parent.mkdir()
    runs = {name: start(store, name, f"seed={n}", *LARGE) for n, name in enumerate(("one", "two"))}
    waited = {name: json.loads(run.communicate()[0])["waited_s"] for name, run in runs.items()}
    if any(run.returncode for run in runs.values()):
        raise SystemExit("a run of two at once failed")
    with Store(store).reader() as connection:
        loops = {name: read(connection, "loop_time", run=name)[0]["loop_s"] for name in runs}
    worst = max(waited[name] / loops[name] for name in runs)
    value = f"{worst:.1%} ({max(waited.values()):.1f} of {max(loops.values()):.0f} s)"
    return Figure(value, "of the loop", "≤ 5 %", worst <= 0.05)


def killed(folder: Path) -> Figure:
    """Slots asked for again after a kill while sampling, the most of five kills."""
    store = folder / "killed" / "store.duckdb"
    store.parent.mkdir()
    log, rng, worst = store.parent / "run.asked", random.Random(0), 0
    shards = store.parent / "run" / "work"
    for _ in range(KILLS):
        run = start(store, "run", f"sampler.shard_size={SHARD}", *LARGE)
        seen = set(shards.glob("*/shards/*.parquet"))
        while run.poll() is None and set(shards.glob("*/shards/*.parquet")) <= seen:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.3))
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
    last = start(store, "run", f"sampler.shard_size={SHARD}", *LARGE)
    last.communicate()
    asked = sum(map(int, log.read_text().split()))
    with Store(store).reader() as connection:
        sql = "select count(*) from trajectory where model_id is not null"
        ((filled,),) = connection.execute(sql).fetchall()
    worst = (asked - filled) / KILLS
    return Figure(
        f"{worst:.0f}", "slots a kill, mean of five", f"≤ {SHARD} (a shard)", worst <= SHARD
    )


if __name__ == "__main__":
    place, name, config, log, *rest = sys.argv[1:]
    child(Path(place), name, Path(config), Path(log), rest)
