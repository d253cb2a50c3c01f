# SPDX-License-Identifier: Apache-2.0
"""What a run tells while it works: every event goes to a view, and to the run's file.

A view shows events to whoever looks: a live screen, plain lines, JSON (flows/views.py). Several
threads may tell.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from flows.progress import FILE, Log, made
from flows.views import View, view_on
from report.progress import Standing
from stages.errors import Interrupted, LoopError

EVERY_S = 0.5  # between two events of a stage that advances
BEAT_S = 30.0  # after which a stage that does not advance shows life
WINDOW_S = 60.0  # over which a rate is a mean
UNTOLD = (
    f"warning: {FILE} cannot be written ({{}}): `starloop watch` and `status` see no more of this "
    "run; make room, the run itself goes on"
)
CODES = {0: "done", 2: "refused", 3: "held", 4: "locked", 130: "interrupted"}


class Stage:
    """A running stage: how much of it is done."""

    def __init__(self, screen: "Screen", label: str, total: int | None, done: int) -> None:
        self._screen, self._label = screen, label
        self.done, self.total = done, total
        self._points = deque([(time.monotonic(), done)])  # when how much was done
        self.told_at = time.monotonic()

    def advance(self, count: int) -> None:
        """So many more are done."""
        self.progress(self.done + count, None)

    def progress(self, done: int, total: int | None) -> None:
        """So many of a total are done."""
        now = time.monotonic()
        self.done, self.total = done, self.total if total is None else total
        self._points.append((now, done))
        while len(self._points) > 2 and self._points[1][0] < now - WINDOW_S:
            self._points.popleft()
        if now - self.told_at >= EVERY_S:
            self.tell()

    def tell(self) -> None:
        """Tell how much is done, how fast, and the seconds that are left at that rate."""
        self.told_at = time.monotonic()
        (began, first), (ended, last) = self._points[0], self._points[-1]
        rate = (last - first) / (ended - began) if ended > began and last > first else None
        left_s = (self.total - self.done) / rate if rate and self.total else None
        self._screen.tell(
            "progress",
            **self._screen.place,
            stage=self._label,
            done=self.done,
            total=self.total,
            rate=rate and round(rate, 3),
            left_s=left_s and round(left_s, 1),
        )


class Screen:
    """Where a run's events go. `command` is what goes on with the run, where that is known."""

    def __init__(
        self,
        console: Console | None = None,
        view: View | None = None,
        command: str | None = None,
    ) -> None:
        self._view = view or view_on(console)
        self._command = command
        self._log: Log | None = None
        self._number = 0
        self._turn = threading.RLock()
        self._ended = False
        self.at = Standing()

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not self._ended:
            self._end(error)
        self._view.close()

    @property
    def place(self) -> dict[str, Any]:
        """Round and refresh that the next events belong to; None outside of a run."""
        return {"round": self.at.round, "refresh": self.at.refresh}

    def tell(self, kind: str, **fields: Any) -> None:
        """Pass an event on to the run's file and to the view."""
        with self._turn:
            self._number += 1
            event = made(kind, self._number, fields)
            self.at.take(event)
            if self._log is not None:
                try:
                    self._log.write(event)
                except OSError as error:
                    self._log.close()
                    self._log = None
                    self.say(UNTOLD.format(error.strerror))
            self._view.take(event, self.at)

    @contextmanager
    def recording(self, folder: Path, run: str, recipe: str, rounds: int) -> Iterator[None]:
        """Have the events of a run that is held in its file; the last says how it ended."""
        with suppress(OSError):
            self._log = Log(folder / FILE)
            self._number = max(self._number, self._log.number)
        self.tell(
            "begun",
            run=run,
            recipe=recipe,
            rounds=rounds,
            pid=os.getpid(),
            command=self._command,
            folder=str(Path.cwd()),
        )
        try:
            yield
        except BaseException as error:
            self._end(error)
            raise
        else:
            self._end(None)
        finally:
            if self._log is not None:
                self._log.close()
            self._log = None

    def _end(self, error: BaseException | None) -> None:
        stopped = isinstance(error, KeyboardInterrupt)
        code = 0 if error is None else getattr(error, "exit_code", 1)
        code = Interrupted.exit_code if stopped else code
        text = "" if error is None or stopped else str(error) or type(error).__name__
        if text and not isinstance(error, LoopError):
            text = f"{type(error).__name__}: {' '.join(text.split())}"
        self.tell("ended", outcome=CODES.get(code, "failed"), code=code, text=text)
        self._ended = True

    def say(self, line: str) -> None:
        """A sentence that stays."""
        self.tell("said", text=line)

    def in_round(self, number: int, target: int) -> None:
        """Name the round that the next events belong to."""
        self.tell("round", round=number, rounds=target)

    def row(self, number: int, cells: Mapping[str, str], values: Mapping[str, Any]) -> None:
        """A round's row of the table, as text by heading and as plain numbers."""
        self.tell("row", round=number, cells=cells, values=values)

    def alarm(self, number: int, refresh: int, then: str, text: str) -> None:
        """An alarm that a refresh sounds."""
        self.tell("alarm", round=number, refresh=refresh, then=then, text=text)

    @contextmanager
    def stage(self, label: str, total: int | None = None, done: int = 0) -> Iterator[Stage]:
        """A stage for as long as the block runs, which shows life where it does not advance."""
        begun, over = time.monotonic(), threading.Event()
        stage = Stage(self, label, total, done)
        self.tell("stage", **self.place, stage=label, done=done, total=total)

        def beat() -> None:
            while not over.wait(max(0.1, stage.told_at + BEAT_S - time.monotonic())):
                if time.monotonic() - stage.told_at >= BEAT_S:
                    stage.tell()

        beating = threading.Thread(target=beat, daemon=True)
        beating.start()
        try:
            yield stage
        finally:
            over.set()
            beating.join()
        seconds = round(time.monotonic() - begun, 3)
        self.tell("stage_done", **self.place, stage=label, done=stage.done, seconds=seconds)
