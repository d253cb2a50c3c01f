# SPDX-License-Identifier: Apache-2.0
"""The round table as it grows: each row is told once, when its round is in the readers' copy."""

from collections.abc import Callable, Mapping
from typing import Any

from report.rounds import cells, columns, round_lines, slices_of
from store.db import Store

Tell = Callable[[int, Mapping[str, str], Mapping[str, Any]], None]


class LiveTable:
    """Tells the rows of a run that it has not told yet: round, cells by heading, plain numbers.

    What a round trained on is no cell: a row fits 120 columns, and `starloop report` has it.
    """

    def __init__(self, store: Store, run: str, tell: Tell) -> None:
        self._store, self._run, self._tell = store, run, tell
        self._shown = 0
        self._head: list[str] = []
        self._slices: list[str] = []

    def show(self) -> None:
        """Tell what is new in the readers' copy of the store."""
        lines = round_lines(self._store, self._run)
        if not self._head and lines:
            self._head, self._slices = columns(lines)[:-1], slices_of(lines)
        for line in lines[self._shown :]:
            row = cells(line, self._slices)[:-1]
            values = {**line.summary, "slices": dict(line.slices), "shares": dict(line.shares)}
            self._tell(line.summary["round"], dict(zip(self._head, row, strict=True)), values)
        self._shown = len(lines)
