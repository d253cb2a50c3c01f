# SPDX-License-Identifier: Apache-2.0
"""How events are shown: a live screen on a terminal, plain lines elsewhere, JSON for programs."""

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from flows.progress import Event
from report.progress import (
    ALARMS,
    Standing,
    done_of,
    place_of,
    table_line,
    table_lines,
)
from report.text import duration, json_line, visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

LINE_S = 30.0  # between two lines of a stage that advances
SHORT_S = 1.0  # a stage that took less is not told of
FRAMES = 4  # a second
ROWS = 8  # newest rounds that a live screen shows
BAR, LEAST = 30, 8  # columns of a bar, at most and at least


class View(Protocol):
    """Shows events as they come; `at` has taken the event already."""

    def take(self, event: Event, at: Standing) -> None: ...

    def close(self) -> None: ...


def view_on(console: "Console | None" = None, *, stderr: bool = False) -> View:
    """A live screen where the console is a terminal that can draw one, else plain lines."""
    from rich.console import Console

    on = console or Console(highlight=False, soft_wrap=True, stderr=stderr)
    if on.is_terminal and not on.is_dumb_terminal:
        return Live(on)
    return Plain(lambda line: on.print(line, markup=False, highlight=False))


def shown(text: str) -> str:
    """Text of several lines with its control characters made visible."""
    return "\n".join(map(visible, text.split("\n")))


class Plain:
    """A line for each sentence, round and stage, and now and then one of a long stage."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write: Callable[[str], None] = lambda text: write(shown(text))
        self._told_at = 0.0
        self._head: list[str] = []

    def take(self, event: Event, at: Standing) -> None:
        """Write the event's line, if it has one."""
        kind = event["event"]
        if kind == "said":
            self._write(event["text"])
        elif kind == "alarm":
            self._write(f"alarm: {event['text']}")
        elif kind == "row":
            self._row(event)
        elif kind == "stage":
            self._told_at = time.monotonic()
        elif kind == "progress" and time.monotonic() - self._told_at >= LINE_S - 0.5:
            self._told_at = time.monotonic()
            far = done_of(at) or f"for {duration(at.told_at - at.stage_at)}"
            self._write(f"{_prefix(at)}{at.stage}: {far}")
        elif kind == "stage_done" and event["seconds"] >= SHORT_S:
            count = f"{event['done']:,} " if event["done"] else ""
            self._write(f"{_prefix(at)}{event['stage']}: {count}done in {event['seconds']:.1f} s")

    def close(self) -> None:
        """Nothing is left to show."""

    def _row(self, event: Event) -> None:
        if not self._head:
            self._head = list(event["cells"])
            self._write(table_line({}, self._head))
        self._write(table_line(event["cells"], self._head))


def _prefix(at: Standing) -> str:
    where = place_of(at)
    return f"{where}  " if where else ""


class Live:
    """One calm screen at the bottom while a run or a stage goes on; sentences go above it."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._live: Any = None
        self._at = Standing()

    def take(self, event: Event, at: Standing) -> None:
        """Show what the event changes."""
        kind, self._at = event["event"], at
        if kind in ("begun", "stage"):
            self._start()
        elif kind == "said":
            self._print(shown(event["text"]))
        elif kind == "alarm":
            self._print(shown(f"alarm: {event['text']}"))
        elif kind == "ended" or (kind == "stage_done" and not at.run):
            self.close()

    def close(self) -> None:
        """Take the screen down and give the terminal back as it was; the table stays."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()
            for line in table_lines(self._at, self._console.width):
                self._print(line)

    def _start(self) -> None:
        from rich.live import Live as Screen

        if self._live is None:
            self._live = Screen(
                get_renderable=self._drawn,
                console=self._console,
                refresh_per_second=FRAMES,
                transient=True,
            )
            self._live.start()

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    def _drawn(self) -> "RenderableType":
        from rich.console import Group
        from rich.text import Text

        at, width = self._at, self._console.width
        parts: list[RenderableType] = []
        if at.run:
            ago = duration(max(0.0, time.time() - at.began_at))
            where = " · ".join(part for part in (place_of(at), ago) if part)
            parts.append(Text(visible(f"run {at.run} · {where}"), style="bold"))
        parts += [Text(line) for line in table_lines(at, width, self._rows())]
        parts += [Text(visible(f"alarm: {line}"), "yellow") for line in at.alarms[-ALARMS:]]
        parts.append(self._bar(at))
        for part in parts:
            if isinstance(part, Text):
                part.no_wrap, part.overflow = True, "ellipsis"
        return Group(*parts)

    def _rows(self) -> int:
        return max(1, min(ROWS, self._console.height - ALARMS - 5))

    def _bar(self, at: Standing) -> "RenderableType":
        """What is being done, how far it is, and a bar where there is room for one."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        begins = "beginning" if at.round is None else "…"
        doing = Text(visible(at.stage or at.step or begins))
        since = duration(max(0.0, time.time() - at.stage_at)) if at.stage else ""
        far = Text(done_of(at) if at.stage and at.total else since, overflow="ellipsis")
        room = self._console.width - len(doing) - len(far) - 4
        row = Table.grid(padding=(0, 2, 0, 0))
        row.add_column(no_wrap=True, min_width=min(len(doing), self._console.width // 2))
        row.add_column(no_wrap=True)
        row.add_column(no_wrap=True)
        if at.stage and at.total and room >= LEAST:
            row.add_row(doing, ProgressBar(at.total, at.done, min(BAR, room)), far)
        else:
            row.add_row(doing, far)
        return row


class Json:
    """A line of JSON for each event, and nothing else on standard output.

    What other code prints there goes to standard error, children's output too. `gone`: whoever
    read it reads no more.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        self._out: int | None = os.dup(1)
        os.dup2(2, 1)
        self.gone = False

    def take(self, event: Event, at: Standing) -> None:
        """Write the event."""
        if self._out is None or self.gone:
            return
        line = f"{json_line(event)}\n".encode()
        try:
            while line:
                line = line[os.write(self._out, line) :]
        except BrokenPipeError:
            self.gone = True

    def close(self) -> None:
        """Give standard output back."""
        sys.stdout.flush()
        out, self._out = self._out, None
        if out is not None:
            os.dup2(out, 1)
            os.close(out)
