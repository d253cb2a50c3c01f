# SPDX-License-Identifier: Apache-2.0
"""The round table as it grows: head and rows are printed once, each as it comes.

The last column, what the round trained on, is left to `starloop report`: a row fits 120 columns.
"""

from collections.abc import Callable

from report.rounds import cells, columns, round_lines, slices_of
from store.db import Store

WIDTHS = {"95 %": 11}


class LiveTable:
    """Prints the rows of a run that it has not printed yet."""

    def __init__(self, store: Store, run: str, say: Callable[[str], None]) -> None:
        self._store, self._run, self._say = store, run, say
        self._shown = 0
        self._head: list[str] = []
        self._slices: list[str] = []

    def show(self) -> None:
        """Print what is new in the readers' copy of the store."""
        lines = round_lines(self._store, self._run)
        if not self._head and lines:
            self._head, self._slices = columns(lines), slices_of(lines)
            self._say(self._line(self._head))
        for line in lines[self._shown :]:
            self._say(self._line(cells(line, self._slices)))
        self._shown = len(lines)

    def _line(self, row: list[str]) -> str:
        return "  ".join(
            cell.rjust(max(len(name), WIDTHS.get(name, 4)))
            for cell, name in zip(row[:-1], self._head[:-1], strict=True)
        )
