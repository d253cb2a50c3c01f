# SPDX-License-Identifier: Apache-2.0
"""Problems and answers: what was solved, lost and never solved, what the hint brought, verdicts."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt

from report.evidence import Evidence, Fate, Moves
from report.figures.base import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    Figure,
    Panel,
    coloured,
    counted,
    data,
    panel,
    round_bands,
    share,
)

STATES = {"kept": BLUE, "new": GREEN, "lost": RED, "never": GREY}
STATUSES = {"correct": BLUE, "wrong": RED, "unjudged": ORANGE, "not judged": GREY}
SHOWN = 8  # reasons that a picture names


def journey(told: Evidence) -> Figure | None:
    """Problems by state and round: the held-out ones, and those asked for training."""
    if not told.moves:
        return None
    panels: list[Panel] = []
    for held_out, says in ((True, "Held-out problems"), (False, "Problems asked for training")):
        found = [moves for moves in told.moves if moves.held_out is held_out]
        cells = [
            {
                "round": moves.round,
                "state": state,
                "problems": getattr(moves, state),
                "order": order,
            }
            for moves in found
            for order, state in enumerate(STATES)
        ]
        chart = (
            alt.Chart(data(cells))
            .mark_bar()
            .encode(
                x=round_bands(),
                y=alt.Y("problems:Q", title="problems"),
                color=coloured("state", STATES),
                order="order:Q",
                tooltip=["round:O", "state:N", "problems:Q"],
            )
        )
        panels += [panel(chart, says)] if found else []
    note = (
        "kept: solved before and again; new: solved for the first time; lost: solved before, not "
        "now; never: not solved yet. One right answer of a round's tries solves a problem."
    )
    head = ("problems", "round", *STATES)
    table = [
        [
            "held out" if moves.held_out else "training",
            "base" if moves.round == 0 else str(moves.round),
            *(f"{getattr(moves, state):,}" for state in STATES),
        ]
        for moves in told.moves
    ]
    return Figure("journey", _solved(told.moves), note, panels, head, table)


def _solved(moves: Sequence[Moves]) -> str:
    """What became of the held-out problems, else of those asked for training."""
    found = [m for m in moves if m.held_out] or list(moves)
    what = "held-out" if found[0].held_out else "training"
    first, last = found[0], found[-1]
    solved = [m.new + m.kept for m in (first, last)]
    asked = [m.new + m.kept + m.lost + m.never for m in (first, last)]
    if first.round == last.round:
        return f"{solved[0]:,} of {counted(asked[0], f'{what} problem')} were solved"
    where = "at the base" if first.round == 0 else f"in round {first.round}"
    return (
        f"{solved[0]:,} of {asked[0]:,} {what} problems were solved {where}, {solved[1]:,} of "
        f"{asked[1]:,} in round {last.round}, {last.lost:,} that were solved before were lost"
    )


HINTED = {"failed, tried": GREY, "right": BLUE, "kept": GREEN, "hint showed": RED}


def hints(told: Evidence) -> Figure | None:
    """Failures tried with the hint: how many came out right, were kept, or gave the hint away."""
    sums: dict[float | None, Counter[str]] = {}
    for row in told.hints:
        counts = (row.tried, row.correct, row.kept, row.leaks)
        sums.setdefault(row.difficulty, Counter()).update(dict(zip(HINTED, counts, strict=True)))
    if not sums:
        return None
    levels = sorted(sums, key=lambda level: (level is None, level or 0.0))
    cells = [
        {"difficulty": _level(level), "what": what, "count": sums[level][what]}
        for level in levels
        for what in HINTED
    ]
    chart = (
        alt.Chart(data(cells))
        .mark_bar()
        .encode(
            x=alt.X("difficulty:N", sort=[_level(level) for level in levels],
                    axis=alt.Axis(labelAngle=0), title=_unit(told)),
            xOffset=alt.XOffset("what:N", sort=list(HINTED)),
            y=alt.Y("count:Q", title="answers, all rounds"),
            color=coloured("what", HINTED),
            tooltip=["difficulty:N", "what:N", "count:Q"],
        )
    )  # fmt: skip
    total = sum(sums.values(), Counter[str]())
    leaked = total["hint showed"]
    showed = (
        f"the hint showed in {counted(leaked, 'answer')}, left out"
        if leaked
        else "no answer gave the hint away"
    )
    title = (
        f"The hint turned {total['kept']:,} of {counted(total['failed, tried'], 'failure')} into "
        f"training rows ({share(total['kept'], total['failed, tried'])}); {showed}"
    )
    note = (
        "Each failed problem is tried once more with its answer in the prompt; the hint is then "
        "taken away."
    )
    head = ("round", _unit(told), *HINTED)
    table = [
        [
            str(r.round),
            _level(r.difficulty),
            *(f"{n:,}" for n in (r.tried, r.correct, r.kept, r.leaks)),
        ]
        for r in told.hints
    ]
    return Figure("hints", title, note, [panel(chart)], head, table)


def _level(level: float | None) -> str:
    return "none" if level is None else f"{level:g}"


def _unit(told: Evidence) -> str:
    return str(getattr(told.config.task, "unit", "difficulty"))


def verdicts(told: Evidence) -> Figure | None:
    """How training answers were judged, why not right, and why they did not train."""
    found = [fate for fate in told.fates if fate.purpose in ("train", "rationalize")]
    judged = _counts(found, lambda fate: (fate.round, fate.status))
    if not judged:
        return None
    cells = [
        {"round": number, "verdict": status, "answers": count}
        for (number, status), count in sorted(judged.items())
    ]
    colours = {name: shade for name, shade in STATUSES.items() if any(s == name for _, s in judged)}
    by_round = (
        alt.Chart(data(cells))
        .mark_bar()
        .encode(
            x=round_bands("round"),
            y=alt.Y("answers:Q", title="answers sampled for training"),
            color=coloured("verdict", colours),
            tooltip=["round:O", "verdict:N", "answers:Q"],
        )
    )
    failed = [fate for fate in found if fate.status in ("wrong", "unjudged")]
    reasons = _counts(failed, lambda fate: f"{fate.status}: {fate.reason}")
    left = _counts([fate for fate in found if not fate.kept], lambda fate: fate.why)
    panels = [panel(by_round, "Verdicts by round")]
    panels += [_bars(reasons, "Why answers were not right", RED)] if reasons else []
    panels += [_bars(left, "Why answers did not train", GREY)] if left else []
    total, right = sum(judged.values()), sum(n for (_, s), n in judged.items() if s == "correct")
    most = left.most_common(1)
    why = f"; most of those left out: {most[0][0]} ({most[0][1]:,})" if most else ""
    title = f"{share(right, total)} of {counted(total, 'answer')} for training are right{why}"
    note = (
        "Every answer that did not train has a reason; wrong is the model's doing, unjudged ours."
    )
    head = ("round", "origin", "verdict", "reason", "decision", "answers")
    table = [
        [str(f.round), f.origin, f.status, f.reason, f.why, f"{f.trajectories:,}"] for f in found
    ]
    return Figure("verdicts", title, note, panels, head, table)


def _counts(fates: Sequence[Fate], key: Callable[[Fate], Any]) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for fate in fates:
        counts[key(fate)] += fate.trajectories
    return counts


def _bars(counts: Mapping[str, int], says: str, colour: str) -> Panel:
    """The reasons that are most frequent, the rest as one."""
    order = sorted(counts, key=lambda name: (-counts[name], name))
    rows: list[dict[str, Any]] = [
        {"reason": name, "answers": counts[name]} for name in order[:SHOWN]
    ]
    rest = sum(counts[name] for name in order[SHOWN:])
    rows += [{"reason": f"{len(order) - SHOWN} others", "answers": rest}] if rest else []
    room = 1.25 * max(row["answers"] for row in rows)  # for the numbers
    base = alt.Chart(data(rows)).encode(
        x=alt.X("answers:Q", title="answers, all rounds", scale=alt.Scale(domainMax=room)),
        y=alt.Y("reason:N", title=None, sort=None, axis=alt.Axis(labelLimit=150)),
        tooltip=["reason:N", "answers:Q"],
    )
    bars = base.mark_bar(color=colour)
    numbers = base.mark_text(align="left", dx=3).encode(text=alt.Text("answers:Q", format=","))
    return panel(bars + numbers, says, height=40 + 26 * len(rows))
