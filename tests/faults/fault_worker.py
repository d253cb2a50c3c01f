# SPDX-License-Identifier: Apache-2.0
"""A run without Prefect and without torch, in children that can be killed: the program.

It imports once what a run needs, then reads orders (a line of JSON each) and forks a child for
each, which runs `flows.loop.run_rounds` itself: lock, sweep, recipe, steps, snapshots. The steps
are the bare functions of the Prefect tasks. Child and program write on one stream, a line at a
time: `pid`, `begin`, `commit`, `end`, `say`, `error`, `torch`, `ended`.
"""

import json
import os
import resource
import signal
import sys
import time
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from typing import Any

sys.modules["torch"] = None  # type: ignore[assignment]  # importing it fails

from rich.console import Console  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402, F401

from configs.load import load  # noqa: E402
from flows import commit, loop, recipes, steps  # noqa: E402
from flows.context import Round  # noqa: E402
from flows.screen import Screen  # noqa: E402
from stages.errors import LoopError  # noqa: E402
from stages.samplers.scripted import Scripted  # noqa: E402
from store.db import Store  # noqa: E402

TRY = Path(__file__).resolve().parents[2] / "configs" / "tiny" / "try.yaml"
STEPS = steps.__all__
LIMITS: dict[str, int] = {}


def tell(*words: object) -> None:
    """One line, written at once."""
    os.write(1, (" ".join(map(str, words)).replace("\n", " ") + "\n").encode())


class Told:
    """A file that tells each line written to it."""

    def write(self, text: str) -> int:
        for line in filter(None, text.splitlines()):
            tell("say", line)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


def bare(name: str) -> None:
    """Replace a step by the function within its task, which tells begin and end."""
    function: Any = getattr(steps, name).fn

    @wraps(function)
    def step(r: Round, *arguments: Any, **named: Any) -> Any:
        tell("begin", r.number, name)
        limit(f"{r.number} {name}")
        done = function(r, *arguments, **named)
        tell("end", r.number, name)
        return done

    setattr(steps, name, step)


def limit(place: str) -> None:
    """From a step on that an order names, no file may grow past so many bytes."""
    if place in LIMITS:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # EFBIG, as a full disk gives ENOSPC
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMITS[place], LIMITS[place]))


def without_prefect() -> None:
    """Let `flows.loop` run the bare steps, and tell when a commit begins."""
    for name in STEPS:
        bare(name)
    write = commit._commit

    def told(r: Round, step: str, *arguments: Any) -> None:
        tell("commit", r.number, step)
        write(r, step, *arguments)

    vars(commit)["_commit"] = told
    vars(loop)["prefect_server"] = lambda home: nullcontext()
    vars(loop)["quiet_libraries"] = lambda: None
    vars(recipes)["run_round"] = recipes.work  # without a flow around it


def slow_down(seconds: float) -> None:
    """Let each batch of the sampler take so long."""
    sample = Scripted.sample

    def slow(*arguments: Any) -> Any:
        time.sleep(seconds)
        return sample(*arguments)

    setattr(Scripted, "sample", slow)  # noqa: B010


def work(order: dict[str, Any]) -> int:
    """What a child does; its exit code."""
    LIMITS.update(order.get("limits", {}))
    if order.get("pace"):
        slow_down(order["pace"])
    screen = Screen(Console(file=Told(), width=10_000, highlight=False))  # type: ignore[arg-type]
    path = Path(order["store"])
    try:
        store = Store(path, screen.say, order.get("patience", 60.0))
        loop.run_rounds(order["name"], load(TRY, order["config"]), store, screen)
    except Exception as error:
        tell("error", type(error).__name__, str(error))
        return error.exit_code if isinstance(error, LoopError) else 1
    tell("torch", sys.modules.get("torch") is not None)
    return 0


def serve() -> None:
    """Fork a child for each order and wait for it."""
    without_prefect()
    tell("ready")
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            code = 70
            try:
                tell("pid", os.getpid())
                code = work(json.loads(line))
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        tell("ended", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    serve()
