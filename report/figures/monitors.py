# SPDX-License-Identifier: Apache-2.0
"""What the answers of each refresh look like: length, entropy, groups, reward, KL, with alarms."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from report.evidence import Alarm, Evidence, Reading
from report.figures.base import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    RED,
    Figure,
    coloured,
    counted,
    data,
    panel,
    round_axis,
    round_bands,
    share,
    went,
)

MOST_POINTS = 400  # refreshes of a picture

Series = Mapping[str, tuple[str, str]]  # what a line is called: monitor and slice

LENGTH: Series = {
    "all": ("length", "all"),
    "right": ("length", "correct"),
    "wrong": ("length", "wrong"),
}
ENTROPY: Series = {"entropy": ("entropy", "all")}
GROUPS: Series = {
    "all right": ("all_right", "all"),
    "mixed": ("mixed", "all"),
    "all wrong": ("all_wrong", "all"),
}
REWARD: Series = {"reward": ("reward_mean", "all"), "held-out pass@1": ("held_out", "all")}
KL: Series = {"to base": ("kl_base_k3", "all"), "to reference": ("kl_reference_k3", "all")}
FAULTS: Series = {"cut off": ("truncated", "all"), "repetition": ("repetition", "all")}

COLOURS = {
    "all": BLUE, "right": GREEN, "wrong": RED, "entropy": BLUE, "all right": GREEN, "mixed": BLUE,
    "all wrong": RED, "reward": BLUE, "held-out pass@1": GREEN, "to base": BLUE,
    "to reference": ORANGE, "cut off": RED, "repetition": PINK,
}  # fmt: skip


def length(told: Evidence) -> Figure | None:
    """Mean tokens of an answer, of right and of wrong ones."""
    return _lines(told, "length", LENGTH, "tokens of an answer (mean)",
                  "Length that grows without accuracy is talk that was paid for.")  # fmt: skip


def entropy(told: Evidence) -> Figure | None:
    """−log p of a sampled token."""
    return _lines(told, "entropy", ENTROPY, "−log p of a sampled token (nats)",
                  "Near 0 the policy has settled on one answer and explores no more.")  # fmt: skip


def groups(told: Evidence) -> Figure | None:
    """Problems whose answers are all right, mixed, or all wrong."""
    return _lines(told, "groups", GROUPS, "share of problems",
                  "Only problems with right and wrong answers (mixed) teach by comparison.",
                  leads="mixed", name="Share of mixed problems", top=1.0)  # fmt: skip


def reward(told: Evidence) -> Figure | None:
    """Mean reward in training beside held-out pass@1."""
    return _lines(told, "reward", REWARD, "mean reward; pass@1",
                  "A reward that rises while held-out pass@1 falls is learned for its own sake.",
                  name="Mean reward in training")  # fmt: skip


def kl(told: Evidence) -> Figure | None:
    """KL of the policy to base and reference, estimator k3."""
    return _lines(told, "kl", KL, "KL, estimator k3 (nats a token)",
                  "How far the policy is from where it began, and from its reference.",
                  name="KL to base")  # fmt: skip


def faults(told: Evidence) -> Figure | None:
    """Answers cut off, and words that repeat."""
    return _lines(told, "faults", FAULTS, "share of answers; of four-word runs",
                  "Answers that are cut off never train; repetition is a loop in the text.",
                  name="Share of answers cut off", top=0.1)  # fmt: skip


def _lines(
    told: Evidence,
    what: str,
    series: Series,
    axis: str,
    note: str,
    leads: str = "",
    name: str = "",
    top: float = 0.0,
) -> Figure | None:
    """Lines by refresh, up to `top` at the least; the title speaks of `leads`, else the first."""
    spots = _places(told.readings)
    if len(spots) < 2:
        return None
    thinned = _thinned(spots, told.alarms)
    found = {
        label: points
        for label, (monitor, slice_) in series.items()
        if (
            points := [
                r
                for r in told.readings
                if (r.name, r.slice) == (monitor, slice_) and (r.round, r.refresh) in thinned
            ]
        )
    }
    if not found:
        return None
    alarms = [a for a in told.alarms if a.watch in {monitor for monitor, _ in series.values()}]
    rows = [
        {"x": spots[r.round, r.refresh], "line": label, "value": r.value, "round": r.round,
         "refresh": r.refresh}
        for label, points in found.items()
        for r in points
    ]  # fmt: skip
    highest = max(top, *(r.value for points in found.values() for r in points))
    scale = alt.Scale(domainMax=highest) if top else alt.Scale()
    chart = (
        alt.Chart(data(rows))
        .mark_line(point=alt.OverlayMarkDef(size=30), strokeWidth=2)
        .encode(
            x=_axis(told.readings),
            y=alt.Y("value:Q", title=axis, scale=scale),
            color=coloured("line", {label: COLOURS[label] for label in found}),
            tooltip=["line:N", "round:Q", "refresh:Q", alt.Tooltip("value:Q", format=".4g")],
        )
    )
    if alarms:
        chart = chart + _marks(alarms, spots)
    leading = found.get(leads) or next(iter(found.values()))
    title = _said(name or what.capitalize(), leading, alarms)
    head = ("round", "refresh", "series", "value")
    table = [
        [str(r.round), str(r.refresh), label, f"{r.value:.4g}"]
        for label, points in found.items()
        for r in points
    ]
    few = (
        f"{len(thinned)} of {len(spots)} refreshes are drawn." if len(thinned) < len(spots) else ""
    )
    notes = [note, *([few] if few else []), *(f"Alarm: {alarm.message}." for alarm in alarms)]
    return Figure(what, title, " ".join(notes), [panel(chart)], head, table, wide=False)


def _said(name: str, points: Sequence[Reading], alarms: Sequence[Alarm]) -> str:
    said = f"{name} {went(points[0].value, points[-1].value, '.3g')}"
    return f"{said}: {counted(len(alarms), 'alarm')} sounded" if alarms else said


def _places(readings: Sequence[Reading]) -> dict[tuple[int, int], float]:
    """Where a refresh stands: a round's last at the round's number, its others before it."""
    last: dict[int, int] = {}
    for r in readings:
        last[r.round] = max(last.get(r.round, 0), r.refresh)
    return {
        (r.round, r.refresh): r.round - 1 + (r.refresh + 1) / (last[r.round] + 1) for r in readings
    }


def _thinned(
    spots: Mapping[tuple[int, int], float], alarms: Sequence[Alarm]
) -> set[tuple[int, int]]:
    """The refreshes that are drawn: all of them, or every nth with the last and those of alarms."""
    order = sorted(spots)
    kept = {*order[:: -(-len(order) // MOST_POINTS)], *order[-1:]}
    return kept | {(alarm.round, alarm.refresh) for alarm in alarms}


def _axis(readings: Sequence[Reading]) -> alt.X:
    axis = round_axis([r.round for r in readings], "round, its last refresh at the number")
    axis["shorthand"] = "x:Q"
    return axis


def _marks(alarms: Sequence[Alarm], spots: Mapping[tuple[int, int], float]) -> Any:
    """A dashed rule where an alarm sounded."""
    rows = [
        {
            "x": spots.get((a.round, a.refresh), float(a.round)),
            "alarm": a.message,
            "mark": "▲ alarm",
        }
        for a in alarms
    ]
    base = alt.Chart(data(rows)).encode(x="x:Q", tooltip=["alarm:N"])
    rule = base.mark_rule(color=RED, strokeDash=[4, 3], strokeWidth=2)
    text = base.mark_text(color=RED, align="right", dx=-4, baseline="top", fontWeight="bold")
    return rule + text.encode(y=alt.value(2), text="mark:N")


STAGES = {
    "generate": BLUE, "verify": PINK, "rationalize": ORANGE, "update": GREEN, "evaluate": "#62b5e5",
    "everything else": GREY,
}  # fmt: skip


def costs(told: Evidence) -> Figure | None:
    """Tokens, seconds and GPU-seconds by round and stage."""
    if not told.costs:
        return None
    rows = [
        {"round": c.round, "stage": c.stage if c.stage in STAGES else "everything else",
         "wall_s": c.wall_s, "gpu_s": c.gpu_s, "tokens": c.tokens}
        for c in told.costs
    ]  # fmt: skip
    measures = {
        "wall_s": ("Wall-clock", "seconds"),
        "tokens": ("Tokens sampled, or trained on in updates", "tokens"),
        "gpu_s": ("GPU-seconds: work times the accelerators", "GPU-seconds"),
    }
    shown = {name: said for name, said in measures.items() if any(row[name] for row in rows)}
    panels = [panel(_stacked(rows, name, axis), says) for name, (says, axis) in shown.items()]
    seconds: dict[str, float] = {}
    for c in told.costs:
        seconds[c.stage] = seconds.get(c.stage, 0.0) + c.wall_s
    longest, total = max(seconds, key=seconds.__getitem__), sum(seconds.values())
    sampled = sum(c.tokens for c in told.costs if c.stage != "update")
    title = (
        f"{total / 60:,.1f} minutes in all, {share(seconds[longest], total)} of them in "
        f"{longest}; {sampled:,} tokens were sampled"
    )
    note = "Steps that another run had done count with what they took there, and sample nothing."
    head = ("round", "stage", "seconds", "tokens", "GPU-seconds")
    table = [
        ["base" if c.round == 0 else str(c.round), c.stage, f"{c.wall_s:.1f}", f"{c.tokens:,}",
         f"{c.gpu_s:.1f}"]
        for c in told.costs
    ]  # fmt: skip
    return Figure("costs", title, note, panels, head, table)


def _stacked(rows: Sequence[Mapping[str, Any]], field: str, axis: str) -> Any:
    found = {row["stage"] for row in rows if row[field]}
    colours = {name: shade for name, shade in STAGES.items() if name in found}
    return (
        alt.Chart(data(rows))
        .mark_bar()
        .encode(
            x=round_bands(),
            y=alt.Y(f"sum({field}):Q", title=axis),
            color=coloured("stage", colours),
            tooltip=[
                "round:O",
                "stage:N",
                alt.Tooltip(f"sum({field}):Q", format=",.1f", title=axis),
            ],
        )
    )
