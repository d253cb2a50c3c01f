# SPDX-License-Identifier: Apache-2.0
"""Held-out accuracy by round: pass@1, pass@k and maj@k, and where the gain lies."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from report.evidence import Evidence, Measured
from report.figures.base import (
    BLUE,
    GREEN,
    ORANGE,
    Figure,
    Row,
    coloured,
    counted,
    data,
    panel,
    round_axis,
    round_bands,
    went,
)

HALF = 0.5
CELL = 30  # pixels of a row of cells
MOST_NUMBERS = 13  # columns of cells that have their numbers written in
LEAST_ANSWERS = 10


def accuracy(told: Evidence) -> Figure | None:
    """Pass@1, pass@k and maj@k with their 95 % intervals."""
    k = next((m.k for m in told.measured("pass_at_k")), None)
    names = {"pass_at_1": "pass@1", "pass_at_k": f"pass@{k}", "maj_at_k": f"maj@{k}"}
    found = [m for name in names for m in told.measured(name)]
    first = told.measured("pass_at_1")
    if not first:
        return None
    rows = [
        {"round": m.round, "measure": names[m.name], "value": m.value, "low": m.low, "high": m.high}
        for m in reversed(found)  # pass@1 on top
    ]
    colours = dict(zip(names.values(), (BLUE, GREEN, ORANGE), strict=True))
    base = alt.Chart(data(rows)).encode(
        x=round_axis([m.round for m in found]), color=coloured("measure", colours)
    )
    y = alt.Scale(domain=[0, 1])
    title = "held-out problems solved (share)"
    band = base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q", title=title, scale=y), y2="high:Q")
    line = base.mark_line(point=alt.OverlayMarkDef(size=50), strokeWidth=2).encode(
        y=alt.Y("value:Q", title=title, scale=y),
        strokeDash=alt.StrokeDash("measure:N", legend=None, sort=list(colours)),
        tooltip=["measure:N", "round:Q", *(alt.Tooltip(f"{v}:Q", format=".3f") for v in NUMBERS)],
    )
    note = (
        f"Up is better. Bands are 95 % intervals over {counted(first[-1].problems, 'problem')}; "
        f"one try for pass@1, the best of {k} tries for pass@{k}, their majority for maj@{k}."
    )
    table = [
        [_round(m.round), names[m.name], *(_number(getattr(m, v)) for v in NUMBERS)] for m in found
    ]
    head = ("round", "measure", "value", "95 % low", "95 % high")
    return Figure("accuracy", _rose(told, first), note, [panel(band + line)], head, table)


NUMBERS = ("value", "low", "high")


def _rose(told: Evidence, first: Sequence[Measured]) -> str:
    """What pass@1 did from its first round to its last, and whether that is beyond its noise."""
    old, new = first[0], first[-1]
    if len(first) == 1:
        return f"pass@1 of {_named(old.round)} is {old.value:.2f} so far"
    said = f"pass@1 {went(old.value, new.value)} in {counted(new.round - old.round, 'round')}"
    if told.gain is None:
        return said
    gain = told.gain
    paired = f"{gain.value:+.2f} on the same {counted(gain.questions, 'question')}"
    interval = f"95 % {gain.low:+.2f} to {gain.high:+.2f}"
    noise = "" if gain.low > 0 or gain.high < 0 else ", within its noise"
    return f"{said}{noise} ({paired}, {interval})"


def difficulty(told: Evidence) -> Figure | None:
    """Pass@1 of each difficulty and round."""
    found = {
        float(match[1]): values
        for slice_, values in _slices(told).items()
        if (match := re.fullmatch(r"difficulty=([-+.e\d]+)", slice_))
    }
    if not found:
        return None
    unit = getattr(told.config.task, "unit", "difficulty")
    names = {level: _level(level, unit) for level in found}
    levels = sorted(found)
    rows = [(names[level], m) for level in levels for m in found[level]]
    note = "Each row is a difficulty, each column a round; dark cells are solved."
    return _cells("difficulty", _frontier(found, names), note, unit, rows, "difficulty")


def _level(level: float, unit: str) -> str:
    if unit == "difficulty":
        return f"difficulty {level:g}"
    return f"{level:g} {unit[:-1] if level == 1 else unit}"


def _frontier(found: Mapping[float, Sequence[Measured]], names: Mapping[float, str]) -> str:
    """How far up pass@1 holds one half, at first and at last, else the level that gained most."""
    first, last = (
        next(
            (level for level in sorted(found, reverse=True) if found[level][end].value >= HALF),
            None,
        )
        for end in (0, -1)
    )
    gained = max(found, key=lambda level: found[level][-1].value - found[level][0].value)
    most = f"{names[gained]} {went(found[gained][0].value, found[gained][-1].value)}"
    if last is not None and (first is None or last > first):
        began = "nothing" if first is None else names[first]
        return f"Solved at least half of the time: {began} at first, {names[last]} at last; {most}"
    return f"pass@1 by difficulty: {most}"


def domains(told: Evidence) -> Figure | None:
    """Pass@1 of each domain and round."""
    found = {
        slice_.partition("=")[2]: values
        for slice_, values in _slices(told).items()
        if slice_.startswith("domain=")
    }
    if not found:
        return None
    gains = {name: values[-1].value - values[0].value for name, values in found.items()}
    most, least = max(gains, key=gains.__getitem__), min(gains, key=gains.__getitem__)
    title = (
        f"By domain: {most} gained most ({gains[most]:+.2f}), {least} least ({gains[least]:+.2f})"
    )
    rows = [(name, m) for name in sorted(found) for m in found[name]]
    note = "Each row is a domain, each column a round; dark cells are solved."
    return _cells("domains", title, note, "domain", rows, "domain")


def _slices(told: Evidence) -> dict[str, list[Measured]]:
    """Pass@1 by slice, each in the order of rounds."""
    found: dict[str, list[Measured]] = {}
    for m in told.metrics:
        if m.name == "pass_at_1":
            found.setdefault(m.slice, []).append(m)
    return found


def _cells(
    name: str, title: str, note: str, axis: str, rows: Sequence[tuple[str, Measured]], head: str
) -> Figure:
    cells = [
        {axis: label, "round": m.round, "value": m.value, "low": m.low, "high": m.high}
        for label, m in rows
    ]
    table = [
        [label, _round(m.round), *(_number(getattr(m, v)) for v in NUMBERS), str(m.problems)]
        for label, m in rows
    ]
    heads = (head, "round", "pass@1", "95 % low", "95 % high", "problems")
    return Figure(name, title, note, [heat(cells, axis, "pass@1")], heads, table)


def heat(cells: Sequence[Row], axis: str, what: str) -> Any:
    """Cells of rounds by `axis`, dark where `value` is near 1, with the number in each."""
    order = list(dict.fromkeys(cell[axis] for cell in cells))
    rounds = {cell["round"] for cell in cells}
    named = [dict(cell, row=cell[axis]) for cell in cells]
    base = alt.Chart(data(named)).encode(
        x=round_bands(),
        y=alt.Y("row:N", title=axis, sort=order[::-1], axis=alt.Axis(labelLimit=110)),
    )
    scale = alt.Scale(domain=[0, 1], scheme="blues")
    squares = base.mark_rect().encode(
        color=alt.Color("value:Q", scale=scale, title=what, legend=None),
        tooltip=["row:N", "round:O", alt.Tooltip("value:Q", format=".3f", title=what)],
    )
    numbers = base.mark_text(fontSize=11).encode(
        text=alt.Text("value:Q", format=".2f"),
        color=alt.condition("datum.value > 0.55", alt.value("white"), alt.value("#111")),
    )
    chart = squares + numbers if len(rounds) <= MOST_NUMBERS else squares
    return panel(chart, height=60 + CELL * len(order))


def lengths(told: Evidence) -> Figure | None:
    """Right answers by their length and round."""
    found = [row for row in told.lengths if row.answers >= LEAST_ANSWERS]
    last = max((row.round for row in found), default=0)
    shown = [row for row in found if row.round == last]
    if len({row.tokens for row in found}) < 2 or not shown:
        return None
    rows = [
        {"tokens": _bin(row.tokens), "round": row.round, "value": row.correct / row.answers}
        for row in sorted(found, key=lambda row: (row.tokens, row.round))
    ]
    longest = shown[-1]
    title = (
        f"Answers of {_bin(longest.tokens)} tokens, the longest of round {last}, are right in "
        f"{longest.correct / longest.answers:.2f} of the cases"
    )
    note = (
        "Held-out answers by their own length; dark cells are right. Harder problems often take "
        f"longer answers. Cells of fewer than {LEAST_ANSWERS} answers are left out."
    )
    head = ("tokens", "round", "answers", "right")
    table = [
        [_bin(row.tokens), _round(row.round), str(row.answers), str(row.correct)] for row in found
    ]
    return Figure("lengths", title, note, [heat(rows, "tokens", "right")], head, table)


def _bin(tokens: int) -> str:
    return f"{tokens}–{2 * tokens - 1}" if tokens > 1 else "1"


def _round(number: int) -> str:
    return "base" if number == 0 else str(number)


def _named(number: int) -> str:
    return "the base" if number == 0 else f"round {number}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
