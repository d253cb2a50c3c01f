# SPDX-License-Identifier: Apache-2.0
"""What figures share: their form, colours that colour-blind readers tell apart, axes, words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

HEIGHT = 240  # pixels of a chart where it sets none
MOST_TICKS = 12

# After Okabe and Ito (2008), at a lightness that stands out on white and on black.
BLUE, ORANGE, GREEN, RED = "#2b83c6", "#d98200", "#0f9d73", "#d55e00"
PINK, SKY, GREY, YELLOW = "#c0649c", "#62b5e5", "#868c95", "#b8a800"
ORIGINS = {
    "self": BLUE,
    "rationalized": ORANGE,
    "seed": GREY,
    "human": GREEN,
    "teacher": PINK,
    "outside": RED,
}

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Panel:
    """A Vega-Lite chart as wide as its place; `says` is its heading, if it needs one."""

    spec: Mapping[str, Any]
    says: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels under one title, a sentence that says what to look for, with their numbers.

    `name` is a word for links and files; `note` says how the picture is read; one that is not
    `wide` has its neighbour beside it where there is room.
    """

    name: str
    title: str
    note: str
    panels: Sequence[Panel]
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    wide: bool = True


def panel(chart: Any, says: str = "", height: int = HEIGHT) -> Panel:
    """A panel of a chart."""
    return Panel(chart.properties(width="container", height=height).to_dict(), says)


def data(rows: Sequence[Row]) -> alt.InlineData:
    """Rows inside the chart itself."""
    return alt.InlineData(values=[dict(row) for row in rows])


def round_axis(rounds: Sequence[int], title: str = "round (0 is the base)") -> alt.X:
    """Rounds from left to right as numbers, the axis marked at whole ones."""
    ticks = sorted(set(rounds))
    ticks = ticks[:: -(-len(ticks) // MOST_TICKS)]
    axis = alt.Axis(values=ticks, format="d", grid=False)
    return alt.X("round:Q", title=title, axis=axis, scale=alt.Scale(nice=False, zero=False))


def round_bands(title: str = "round (0 is the base)") -> alt.X:
    """Rounds from left to right as bands, for bars and cells."""
    return alt.X("round:O", title=title, axis=alt.Axis(labelAngle=0, labelOverlap=True))


def coloured(field: str, colours: Mapping[str, str], title: str | None = None) -> alt.Color:
    """Names in fixed colours, with a legend above the chart."""
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{field}:N", title=title, scale=scale, sort=list(colours), legend=legend())


def legend() -> alt.Legend:
    """A legend above the chart, in as many columns as a phone shows."""
    return alt.Legend(
        orient="top", direction="horizontal", columns=3, labelLimit=140, symbolOpacity=1
    )


WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
         "eleven", "twelve")  # fmt: skip


def counted(count: int, thing: str, things: str = "") -> str:
    """`one round`, `five rounds`, `1,300 rows`."""
    number = WORDS[count] if count < len(WORDS) else f"{count:,}"
    return f"{number} {thing if count == 1 else things or thing + 's'}"


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def share(part: float, whole: float) -> str:
    """A part of a whole in percent; 0% is none of it and 100% is all of it."""
    if not part or part == whole:
        return f"{100 if part else 0}%"
    percent = round(100 * part / whole)
    return "under 1%" if percent < 1 else "over 99%" if percent > 99 else f"{percent}%"


def went(first: float, last: float, form: str = ".2f") -> str:
    """`rose from 0.25 to 0.50`, `fell …`, or `stayed at 0.25`, as far as `form` shows it."""
    old, new = format(first, form), format(last, form)
    return (
        f"stayed at {new}"
        if old == new
        else f"{'rose' if last > first else 'fell'} from {old} to {new}"
    )
