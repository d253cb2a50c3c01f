# SPDX-License-Identifier: Apache-2.0
"""What a question may take: time, memory, threads; a guard that stops one that takes more."""

import os
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from stages.errors import ConfigError, Interrupted, LoopError
from store.db import DuckDBError

Answered = TypeVar("Answered")
Stuck = Callable[[LoopError], None]

_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_LEAST = 100_000_000
_BESIDE = 1_000_000_000  # for the process itself and for what DuckDB does not count
_TICK_S, _GRACE_S = 0.05, 1.0


def default_memory() -> int:
    """4 GB, or half of the machine where that is less."""
    return min(4 * 10**9, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)


def memory_of(text: str) -> int:
    """Bytes of a size such as `2GB` or `512 MiB`; ConfigError for anything else."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*([kmgt]i?b)", text.strip().lower())
    if not found:
        raise ConfigError(f"--memory: {text!r} is not a size: write for example 2GB or 512MB")
    size = int(float(found[1]) * _UNITS[found[2]])
    if size < _LEAST:
        raise ConfigError(f"--memory: {text} is too little for any query: give 100MB or more")
    return size


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds (None: no end), bytes, and threads (None: every core) that a question may take."""

    timeout_s: float | None = 60.0
    memory: int = field(default_factory=default_memory)
    threads: int | None = None


class Guard:
    """Lets DuckDB work in a thread of its own and interrupts it at its limits, or at Ctrl-C.

    DuckDB does not look up during some long work on one value; where an interrupt does not reach
    it, `stuck` is called with the error: it may end the process.
    """

    def __init__(self, interrupt: Callable[[], None], limits: Limits, stuck: Stuck | None) -> None:
        self._interrupt, self._limits, self._stuck = interrupt, limits, stuck
        self._begun, self._at_start = time.monotonic(), _peak()
        self._worker = ThreadPoolExecutor(1)

    def __enter__(self) -> "Guard":
        return self

    def __exit__(self, *error: object) -> None:
        self._worker.shutdown()

    @contextmanager
    def untimed(self) -> Iterator[None]:
        """Time that is not the query's: somebody reads its answer page by page."""
        begun = time.monotonic()
        yield
        self._begun += time.monotonic() - begun

    def call(self, work: Callable[[], Answered]) -> Answered:
        """Let DuckDB work. Raises ConfigError at a limit and for DuckDB's errors, Interrupted."""
        task = self._worker.submit(work)
        try:
            while not task.done() and not self._over():
                wait([task], _TICK_S)
        except KeyboardInterrupt as stop:
            error: LoopError = Interrupted("interrupted")
            self._stop(task, error)
            raise error from stop
        if over := self._over():
            error = ConfigError(over)
            self._stop(task, error)
            raise error
        try:
            return task.result()
        except (DuckDBError, OSError, ValueError, RuntimeError, MemoryError) as failed:
            text = " ".join(str(failed).split())
            if isinstance(failed, MemoryError) or "Out of Memory Error" in text:
                raise ConfigError(self._too_much()) from failed
            raise ConfigError(f"sql: {text}") from failed

    def _stop(self, task: "Future[Answered]", error: LoopError) -> None:
        """Interrupt the work, over and over: it may be between two statements."""
        begun = time.monotonic()
        while not task.done():
            self._interrupt()
            wait([task], _TICK_S)
            if self._stuck and time.monotonic() - begun > _GRACE_S:
                self._stuck(error)
                self._stuck = None

    def _too_much(self) -> str:
        return (
            f"sql: the query needs more than {self._limits.memory / 1e9:g} GB of memory: "
            "give it more with --memory, or ask for less"
        )

    def _over(self) -> str:
        """Which limit is passed; empty for none."""
        longest = self._limits.timeout_s
        if longest is not None and time.monotonic() - self._begun > longest:
            return (
                f"sql: the query was stopped after {longest:g} s: give it more with "
                "--timeout SECONDS (0: no end), or ask for less"
            )
        grown = _peak() - self._at_start
        return self._too_much() if grown > self._limits.memory + _BESIDE else ""


def _peak() -> int:
    """The most bytes of memory that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
