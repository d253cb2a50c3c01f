# SPDX-License-Identifier: Apache-2.0
"""Runs in children that are told from here when to begin, and shot when the moment comes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from running import ROOT, clean_environment, facts

WORKER = Path(__file__).with_name("fault_worker.py")
ROUNDS = 2
STEPS = ("generate", "verify", "rationalize", "mix", "update", "watch", "evaluate")
PLACES = ["0 setup", "0 admit", "0 evaluate"] + [
    f"{number} {step}" for number in range(1, ROUNDS + 1) for step in STEPS
]
SMALL = [
    *("generate.problems.per_round=20", "sampler.shard_size=16", "task.train=40"),
    *("task.held_out=4", "evaluate.n=4", "evaluate.k=2", "evaluate.problems=2"),
]


@dataclass(slots=True)
class Shot:
    """A child's run as it was told: lines with the time they came, how it ended."""

    lines: list[tuple[float, list[str]]] = field(default_factory=list)
    pid: int = 0
    code: int | None = None

    @property
    def errors(self) -> list[str]:
        return [" ".join(words[1:]) for _, words in self.lines if words[0] == "error"]

    @property
    def said(self) -> list[str]:
        return [" ".join(words[1:]) for _, words in self.lines if words[0] == "say"]

    def last(self) -> tuple[str, ...]:
        """Where the child was at its end: `begin` or `commit` (within) or `end` (after) a step."""
        told = [words for _, words in self.lines if words[0] in ("begin", "commit", "end")]
        return tuple(told[-1]) if told else ("start",)

    def seconds(self, word: str, place: str) -> float:
        """From `begin` or `commit` of a step to its end."""
        times = {words[0]: at for at, words in self.lines if " ".join(words[1:]) == place}
        return times["end"] - times[word]


class Range:
    """The program `fault_worker.py`: it has imported everything and forks a child for each run."""

    def __init__(self, policy: Path, environment: Mapping[str, str] | None = None) -> None:
        self._policy = f"policy={{type: folder, path: {policy}}}"
        self._environment = clean_environment(PYTHONPATH=str(ROOT), **(environment or {}))
        self._shot = Shot()

    def __enter__(self) -> "Range":
        self._program = subprocess.Popen(
            [sys.executable, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment,
        )
        assert self._next()[0] == "ready"
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        assert self._program.stdin is not None and self._program.stdout is not None
        if kind is not None and self._shot.pid and self._shot.code is None:
            os.kill(self._shot.pid, signal.SIGKILL)
        self._program.stdin.close()
        self._program.wait()
        self._program.stdout.close()

    def _next(self) -> list[str]:
        assert self._program.stdout is not None
        words = self._program.stdout.readline().decode().split()
        assert words, "the program ended"
        self._shot.lines.append((time.monotonic(), words))
        return words

    def start(self, store: Path, *config: str, name: str = "try", **order: Any) -> Shot:
        """Begin or go on with a run in a new child."""
        assert self._program.stdin is not None
        overrides = [self._policy, *SMALL, *config]
        told = {"store": str(store), "name": name, "config": overrides, **order}
        self._shot = Shot()
        self._program.stdin.write(json.dumps(told).encode() + b"\n")
        self._program.stdin.flush()
        self._shot.pid = int(self._next()[1])
        return self._shot

    def wait_for(self, *beginnings: str) -> bool:
        """Until the child tells a line that begins with one of these; False if it ended first."""
        while (told := self._next())[0] != "ended":
            if " ".join(told).startswith(beginnings):
                return True
        self._shot.code = int(told[1])
        return False

    def wait(self) -> Shot:
        """The child's end."""
        if self._shot.code is None:
            assert not self.wait_for()
        return self._shot

    def kill(self) -> Shot:
        """The child's end, now."""
        if self._shot.code is None:
            os.kill(self._shot.pid, signal.SIGKILL)
        return self.wait()

    def run(self, store: Path, *config: str, **order: Any) -> Shot:
        """A run to its end."""
        self.start(store, *config, **order)
        return self.wait()


def check_equal(store: Path, undisturbed: Path, *runs: str) -> None:
    """The store has the other's rows, and nothing of a try is left over."""
    mine, expected = facts(store), facts(undisturbed)
    assert mine.keys() == expected.keys()
    assert {name for name in mine if mine[name] != expected[name]} == set()
    check_clean(store, *runs)


def check_clean(store: Path, *runs: str) -> None:
    """No shard, draft or partial file is left; models are those that the store knows."""
    assert [path for path in store.parent.rglob("*.tmp*") if ".prefect" not in path.parts] == []
    for name in runs or ("try",):
        assert list(store.parent.glob(f"{name}/work/*")) == []


@contextmanager
def held(store: Path, read_only: bool = False) -> Iterator[int]:
    """Another process has the store open; its id."""
    code = (
        "import duckdb, sys\n"
        "with duckdb.connect(sys.argv[1], read_only=bool(int(sys.argv[2]))):\n"
        "    print('holding', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(store), str(int(read_only))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == b"holding\n"
        yield holder.pid
        holder.stdin.close()
