# SPDX-License-Identifier: Apache-2.0
"""What a run tells of itself while it works: events, and the file beside the store that has them.

An event is a flat JSON object. `v` is the format's version, `n` rises by one from event to event of
a run, `at` is when (UTC), `event` its kind; `FIELDS` names the others. Screen, `--json` and
`starloop watch` read the same events; docs/terminal.md says what each field means.

`runs/RUN/progress.jsonl` has the events of the process that works on the run, or did last. A line
is written whole or, by a kill, torn at the end of the file: readers leave a torn line out. A file
that grows past `LIMIT` is written anew with the newest events of each kind.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from report.text import json_line

VERSION = 1
FILE = "progress.jsonl"
LIMIT = 256 * 1024  # bytes that the file grows to, or twice those of the events that are kept
TAIL = 16 * 1024  # bytes of its end that say where a run stands
KEPT = {"row": 100, "alarm": 20, "said": 20}  # newest events that outlive a rewrite, else one

Event = Mapping[str, Any]

FIELDS: dict[str, tuple[str, ...]] = {
    "begun": ("run", "recipe", "rounds", "pid", "command", "folder"),
    "said": ("text",),
    "round": ("round", "rounds"),
    "step": ("round", "refresh", "refreshes", "step"),
    "step_done": ("round", "refresh", "step", "seconds", "reused"),
    "stage": ("round", "refresh", "stage", "done", "total"),
    "progress": ("round", "refresh", "stage", "done", "total", "rate", "left_s"),
    "stage_done": ("round", "refresh", "stage", "done", "seconds"),
    "row": ("round", "cells", "values"),
    "alarm": ("round", "refresh", "then", "text"),
    "ended": ("outcome", "code", "text"),
}


def made(kind: str, number: int, fields: Mapping[str, Any]) -> dict[str, Any]:
    """An event of now; ValueError where its fields are not those of its kind."""
    if tuple(fields) != FIELDS[kind]:
        raise ValueError(f"event {kind} has fields {tuple(fields)}, not {FIELDS[kind]}")
    at = datetime.now(UTC).isoformat(timespec="microseconds")
    return {"v": VERSION, "n": number, "at": at, "event": kind, **fields}


def parsed(lines: bytes) -> list[Event]:
    """The events of whole lines; what is torn, of another version or unknown is left out."""
    whole = lines[: lines.rfind(b"\n") + 1]
    return [event for line in whole.splitlines() if (event := _event(line)) is not None]


def _event(line: bytes) -> Event | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get("v") != VERSION:
        return None
    fields = FIELDS.get(str(found.get("event")), ("?",))
    return found if {"n", "at", *fields} <= found.keys() else None


def newest(events: Iterable[Event]) -> list[Event]:
    """The newest events of each kind, in their order."""
    counts: Counter[str] = Counter()
    kept = []
    for event in reversed(list(events)):
        kind = event["event"]
        counts[kind] += 1
        if counts[kind] <= KEPT.get(kind, 1):
            kept.append(event)
    return kept[::-1]


class Log:
    """The file as the one process that holds the run writes it, begun anew."""

    def __init__(self, path: Path) -> None:
        self._path, self._draft = path, path.with_suffix(".tmp")
        self.number = max((event["n"] for event in Tail(path).read()), default=0)
        self._file = self._anew([])

    def write(self, event: Event) -> None:
        """Append an event in one write."""
        os.write(self._file, f"{json_line(event)}\n".encode())
        if os.fstat(self._file).st_size > self._limit:
            os.close(self._file)
            self._file = self._anew(newest(parsed(self._path.read_bytes())))

    def close(self) -> None:
        """Let go of the file, which stays."""
        with suppress(OSError):
            os.close(self._file)

    def _anew(self, events: Iterable[Event]) -> int:
        """Put a file with these events in the place of what is there, and open it."""
        size = self._draft.write_text("".join(f"{json_line(event)}\n" for event in events))
        self._limit = max(LIMIT, 2 * size)
        self._draft.rename(self._path)
        return os.open(self._path, os.O_WRONLY | os.O_APPEND)


class Tail:
    """The file as a reader follows it: each event once, over rewrites and over new processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file, self._offset = 0, 0  # inode, bytes that were read of it
        self._number, self._began = 0, ""

    def read(self) -> list[Event]:
        """The events that came since the last call; none where there is no file."""
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._file or status.st_size < self._offset:
                    self._file, self._offset = status.st_ino, 0
                file.seek(self._offset)
                lines = file.read()
        except OSError:
            return []
        self._offset += lines.rfind(b"\n") + 1
        return [event for event in parsed(lines) if self._is_new(event)]

    def _is_new(self, event: Event) -> bool:
        begins = event["event"] == "begun" and event["at"] > self._began
        if not begins and event["n"] <= self._number:
            return False
        self._number = event["n"]
        self._began = event["at"] if event["event"] == "begun" else self._began
        return True


def glance(path: Path) -> list[Event]:
    """How the file begins and ends, as far as it takes to say where a run stands."""
    try:
        with path.open("rb") as file:
            head = file.readline()
            file.seek(max(file.tell(), os.fstat(file.fileno()).st_size - TAIL))
            return parsed(head) + parsed(file.read())
    except OSError:
        return []
