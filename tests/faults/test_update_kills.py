# SPDX-License-Identifier: Apache-2.0
"""A training that is killed goes on from its last whole checkpoint, with the same data."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fault_trainer import SAVE_EVERY
from running import ROOT, clean_environment

from stages.policies.checkpoint import is_complete

PROGRAM = Path(__file__).with_name("fault_trainer.py")
STEPS = 30  # many after the last kill; the last checkpoint is not a multiple of the steps
SEED = 20240302


def train(start: Path, work: Path, kill_at: int | None = None, after_s: float = 0.0) -> list[str]:
    """What the program tells until it ends, or until it is killed soon after a step."""
    told = []
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(start), str(work), str(STEPS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment(PYTHONPATH=str(ROOT)),
        text=True,
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            told.append(line.strip())
            if kill_at is not None and line.startswith(f"step {kill_at} "):
                time.sleep(after_s)
                child.send_signal(signal.SIGKILL)
    assert child.returncode == (0 if kill_at is None else -signal.SIGKILL)
    return told


def steps(told: list[str]) -> dict[int, str]:
    """Loss by step."""
    words = [line.split() for line in told]
    return {int(word[1]): word[2] for word in words if word[0] == "step"}


def newest_complete(work: Path) -> int:
    found = [int(path.name.split("-")[1]) for path in work.iterdir() if is_complete(path)]
    return max(found, default=0)


@pytest.mark.slow
def test_a_killed_training_goes_on_from_its_last_whole_checkpoint_to_the_same_weights(
    tiny_folder: Path, tmp_path: Path
) -> None:
    whole = train(tiny_folder, tmp_path / "whole" / "training")
    losses = steps(whole)
    assert list(losses) == list(range(1, STEPS + 1))
    work, rng, reached = tmp_path / "killed" / "training", random.Random(SEED), 0
    for kill_at in (SAVE_EVERY + 2, 2 * SAVE_EVERY, 4 * SAVE_EVERY + 1):
        told = steps(train(tiny_folder, work, kill_at, rng.uniform(0, 0.05)))
        assert min(told) == reached + 1, "it did not go on from its checkpoint"
        assert all(losses[step] == loss for step, loss in told.items()), "the data order changed"
        reached = newest_complete(work)
        assert reached >= SAVE_EVERY
    torn = work / f"checkpoint-{reached}"
    (weights,) = torn.glob("*.safetensors")
    os.truncate(weights, weights.stat().st_size // 2)
    before = newest_complete(work)
    assert before == reached - SAVE_EVERY
    last = train(tiny_folder, work)
    assert min(steps(last)) == before + 1, "a torn checkpoint was taken"
    assert last[-2:] == whole[-2:], "other weights or visits"
