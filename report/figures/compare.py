# SPDX-License-Identifier: Apache-2.0
"""Several runs in one picture."""

from collections.abc import Sequence

import altair as alt

from report.evidence import Evidence
from report.figures.base import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    RED,
    SKY,
    YELLOW,
    Figure,
    coloured,
    data,
    listed,
    panel,
    round_axis,
)

COLOURS = (BLUE, RED, GREEN, PINK, ORANGE, SKY, GREY, YELLOW)


def compared(told: Sequence[Evidence]) -> Figure | None:
    """Held-out pass@1 of each run by round, with its 95 % interval."""
    found = {each.name: each.measured("pass_at_1") for each in told}
    shown = {name: measured for name, measured in found.items() if measured}
    if len(shown) < 2:
        return None
    rows = [
        {"run": name, "round": m.round, "value": m.value, "low": m.low, "high": m.high}
        for name, measured in shown.items()
        for m in measured
    ]
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(shown)}
    base = alt.Chart(data(rows)).encode(
        x=round_axis([m.round for measured in shown.values() for m in measured]),
        color=coloured("run", colours),
    )
    scale, title = alt.Scale(domain=[0, 1]), "held-out pass@1"
    band = base.mark_area(opacity=0.12).encode(
        y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q"
    )
    line = base.mark_line(point=True, strokeWidth=2).encode(
        y=alt.Y("value:Q", title=title, scale=scale),
        strokeDash=alt.StrokeDash("run:N", legend=None, sort=list(colours)),
        tooltip=["run:N", "round:Q", alt.Tooltip("value:Q", format=".3f")],
    )
    ends = [f"{name} {m[-1].value:.2f} (round {m[-1].round})" for name, m in shown.items()]
    head = ("run", "round", "pass@1", "95 % low", "95 % high")
    table = [
        [name, "base" if m.round == 0 else str(m.round),
         *("–" if v is None else f"{v:.3f}" for v in (m.value, m.low, m.high))]
        for name, measured in shown.items()
        for m in measured
    ]  # fmt: skip
    note = "Bands are 95 % intervals over problems; the paired differences are in the tables below."
    return Figure(
        "compared", f"pass@1 at last: {listed(ends)}", note, [panel(band + line)], head, table
    )
