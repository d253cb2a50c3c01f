# SPDX-License-Identifier: Apache-2.0
"""Where a run stands, from the events it tells: in a line, and as a table that fits a width."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from report.text import duration, visible

ALARMS = 3  # newest that are shown
WIDTHS = {"95 %": 11}
# Columns in the order in which a narrow terminal keeps them; those not named come last.
FIRST = (
    "round",
    "pass@1",
    "95 %",
    "kept",
    "time",
    "pass@",
    "maj@",
    "rationalized",
    "leaks",
    "tokens",
)


@dataclass(slots=True)
class Standing:
    """A run as its events tell of it; `take` them in their order."""

    run: str = ""
    rounds: int = 0
    pid: int = 0
    command: str = ""
    folder: str = ""
    began_at: float = 0.0
    told_at: float = 0.0
    round: int | None = None
    refresh: int = 0
    refreshes: int = 1
    step: str = ""
    stage: str = ""
    stage_at: float = 0.0
    done: int = 0
    total: int | None = None
    rate: float | None = None
    left_s: float | None = None
    rows: dict[int, Mapping[str, str]] = field(default_factory=dict)
    alarms: list[str] = field(default_factory=list)
    ended: Mapping[str, Any] | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        """Go on by an event."""
        self.told_at = datetime.fromisoformat(event["at"]).timestamp()
        kind = event["event"]
        if kind == "begun":
            self._begin(event)
        elif kind == "round":
            self.round, self.rounds = event["round"], event["rounds"]
            self.refresh, self.refreshes = 0, 1
        elif kind == "step":
            self.step, self.refreshes = event["step"], event["refreshes"]
            self.round, self.refresh = event["round"], event["refresh"]
        elif kind == "step_done":
            self.step = ""
        elif kind in ("stage", "progress"):
            self._at_stage(kind, event)
        elif kind == "stage_done":
            self.stage = ""
        elif kind == "row":
            self.rows[event["round"]] = event["cells"]
        elif kind == "alarm":
            self.alarms.append(event["text"])
        elif kind == "ended":
            self.ended = event

    def _begin(self, event: Mapping[str, Any]) -> None:
        blank = Standing(told_at=self.told_at, began_at=self.told_at)
        for each in fields(blank):
            setattr(self, each.name, getattr(blank, each.name))
        self.pid, self.command = event["pid"], event["command"] or ""
        self.run, self.rounds, self.folder = event["run"], event["rounds"], event["folder"]

    def _at_stage(self, kind: str, event: Mapping[str, Any]) -> None:
        self.round, self.refresh = event["round"], event["refresh"] or 0
        if kind == "stage" or event["stage"] != self.stage:
            self.stage_at = self.told_at
        self.stage, self.done, self.total = event["stage"], event["done"], event["total"]
        self.rate, self.left_s = event.get("rate"), event.get("left_s")


def place_of(at: Standing) -> str:
    """Round and refresh in words: `round 2 of 5, refresh 1 of 3`."""
    if at.round is None:
        return ""
    where = f"round {at.round} of {at.rounds}" if at.round else "base"
    several = f", refresh {at.refresh + 1} of {at.refreshes}" if at.refreshes > 1 else ""
    return where + several


def count_of(at: Standing) -> str:
    """How much of a stage is done: `412 of 1,000`."""
    return f"{at.done:,} of {at.total:,}" if at.total else f"{at.done:,}" if at.done else ""


def done_of(at: Standing) -> str:
    """How far a stage is, how fast, and until when: `412 of 1,000 · 18.2/s · 0:32 left`."""
    parts = [count_of(at)]
    if at.rate:
        parts.append(f"{at.rate:.1f}/s" if at.rate >= 0.95 else f"{60 * at.rate:.1f}/min")
    if at.left_s is not None:
        parts.append(f"{duration(at.left_s)} left")
    return " · ".join(part for part in parts if part)


def line_of(at: Standing, now: float | None = None) -> str:
    """A run in a line: round, refresh, stage, how much of it; while it goes on, how far `now`."""
    doing = at.stage or at.step or ("" if at.round is not None else "beginning")
    parts = [place_of(at), doing]
    if at.stage:
        parts.append(count_of(at) if now is None else done_of(at))
        parts.append("" if now is None else f"for {duration(max(0.0, now - at.stage_at))}")
    return visible(" · ".join(part for part in parts if part))


Row = Mapping[str, str]


def table_line(cells: Row, head: Sequence[str], rows: Sequence[Row] = ()) -> str:
    """A row of the table, as wide as its head and `rows`; the head itself where cells are empty."""
    texts = ((cells.get(name, "–") if cells else name, name) for name in head)
    return "  ".join(visible(text).rjust(_width(name, rows)) for text, name in texts)


def _width(name: str, rows: Sequence[Row]) -> int:
    return max(len(name), WIDTHS.get(name, 4), *(len(visible(row.get(name, ""))) for row in rows))


def fitting(head: Sequence[str], width: int, rows: Sequence[Row] = ()) -> list[str]:
    """The headings that a terminal of `width` columns has room for, the most telling ones."""
    chosen: set[str] = set()
    room = width
    for name in sorted(head, key=_rank):
        if room >= _width(name, rows):
            chosen.add(name)
            room -= _width(name, rows) + 2
    return [name for name in head if name in chosen]


def _rank(name: str) -> int:
    ranks = [place for place, start in enumerate(FIRST) if name == start or (
        start.endswith("@") and name.startswith(start))]  # fmt: skip
    return ranks[0] if ranks else len(FIRST)


def table_lines(at: Standing, width: int, most: int | None = None) -> list[str]:
    """Head and the newest rows of a run's table, none where it has no row yet."""
    rows = [at.rows[number] for number in sorted(at.rows)]
    if not rows:
        return []
    shown = rows if most is None else rows[-most:]
    head = fitting(list(rows[0]), width, shown)
    return [table_line(row, head, shown) for row in ({}, *shown)]


OUTCOMES = {
    "done": "ended as asked",
    "refused": "was refused",
    "held": "is held",
    "locked": "found a lock",
    "interrupted": "was interrupted",
}


def ended_line(at: Standing) -> str:
    """How a run ended, its exit code, and why."""
    if at.ended is None:
        where = f" in {line_of(at)}" if at.round is not None else ""
        return visible(f"run {at.run} was killed{where}: process {at.pid} is gone")
    how = OUTCOMES.get(at.ended["outcome"], at.ended["outcome"])
    why = f": {at.ended['text']}" if at.ended["text"] else ""
    return visible(f"run {at.run} {how} (exit {at.ended['code']}){why}")


def resuming(at: Standing | None, run: str) -> str:
    """The command that goes on with a run: as it was typed, from where it was typed."""
    if at is None or not at.command:
        return f"starloop run CONFIG --name {run}"
    here = not at.folder or at.folder == str(Path.cwd())
    return visible(at.command if here else f"cd {shlex.quote(at.folder)} && {at.command}")
