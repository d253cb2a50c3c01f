# SPDX-License-Identifier: Apache-2.0
"""What a run shows while it works: a bar per stage, a table row per round, plain sentences."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Stage:
    """A running stage: its bar, where there is a terminal to draw one."""

    def __init__(self, progress: Progress | None, task: TaskID, done: int) -> None:
        self._progress, self._task = progress, task
        self.done = done

    def advance(self, count: int) -> None:
        """So many more are done."""
        self.progress(self.done + count, None)

    def progress(self, done: int, total: int | None) -> None:
        """So many of a total are done."""
        self.done = done
        if self._progress is not None:
            self._progress.update(self._task, completed=done)
            if total is not None:
                self._progress.update(self._task, total=total)


class Screen:
    """Bars live at the bottom while they run; lines go above them and stay."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False, soft_wrap=True)
        self._prefix = ""

    def say(self, line: str) -> None:
        """A line that stays."""
        self.console.print(line, markup=False)

    def in_round(self, number: int, target: int) -> None:
        """Name the round that the next bars belong to."""
        self._prefix = f"round {number}/{target}  " if number else "base  "

    @contextmanager
    def stage(self, label: str, total: int | None = None, done: int = 0) -> Iterator[Stage]:
        """A bar for as long as the block runs; a line at its end where no terminal is."""
        if not self.console.is_terminal:
            begun, stage = time.monotonic(), Stage(None, TaskID(0), done)
            yield stage
            seconds = time.monotonic() - begun
            count = f"{stage.done:,} " if stage.done else ""
            self.say(f"{self._prefix}{label}: {count}done in {seconds:.1f} s")
            return
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
        ) as progress:
            task = progress.add_task(self._prefix + label, total=total, completed=done)
            yield Stage(progress, task, done)
