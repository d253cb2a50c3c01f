# SPDX-License-Identifier: Apache-2.0
"""What trained each checkpoint: rows from rounds and origins through training sets, by width."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from report.evidence import Evidence, Flow
from report.figures.base import (
    ORIGINS,
    Figure,
    Panel,
    coloured,
    counted,
    data,
    listed,
    panel,
    round_bands,
    share,
)
from report.figures.sankey import Link, Node, Ribbon, layout
from stages.rows import SELF_MADE

MOST_ROUNDS = 12
ROW = 26  # pixels that a label and its node take
LABEL = 15
UNVISITED = "not trained on"
NODES = "#5b626c"
HEAD = 0.08  # what the heads of the columns take of the height
NODE = 0.016  # a node's width
STEPS = 12  # straight pieces of a ribbon's edge
MADE = {
    "self": "the model's own answers",
    "rationalized": "answers found with a hint",
    "seed": "seed rows",
    "human": "rows by people",
    "teacher": "rows of a teacher",
    "outside": "rows from outside",
}


def lineage(told: Evidence) -> Figure | None:
    """Rounds and origins on the left, training sets, and the checkpoints that they trained."""
    if not told.flows:
        return None
    rounds = sorted({flow.round for flow in told.flows})[-MOST_ROUNDS:]
    flows = [flow for flow in told.flows if flow.round in rounds]
    columns, links = _graph(told, flows)
    longest = max(map(len, columns))
    height = max(260, ROW * longest + LABEL)
    nodes, ribbons = layout(columns, links, LABEL / height)
    cut = f" The newest {len(rounds)} rounds are drawn." if len(rounds) == MOST_ROUNDS else ""
    note = (
        "Read from left to right: who made the rows and in which round, the training set of each "
        "round, the checkpoint that it trained. Width is rows; a row in several sets counts in "
        f"each. Point at a ribbon to follow one training set.{cut}"
    )
    head = ("training set of round", "origin", "made in round", "rows", "trained on")
    table = [
        [str(f.round), f.origin, _made_in(f.origin_round), f"{f.rows:,}", f"{f.visited:,}"]
        for f in told.flows
    ]
    picture = panel(_picture(nodes, ribbons), height=height)
    return Figure("lineage", _learned(told.flows), note, [picture], head, table)


def _learned(flows: Sequence[Flow]) -> str:
    """What the last checkpoint was trained on."""
    last = max((flow.round for flow in flows if flow.visited), default=None)
    if last is None:
        return "No training set has trained a checkpoint yet"
    found = [flow for flow in flows if flow.round == last and flow.visited]
    total = sum(flow.visited for flow in found)
    parts = []
    for origin in MADE:
        rows = sum(flow.visited for flow in found if flow.origin == origin)
        rounds = sorted({flow.origin_round for flow in found if flow.origin == origin} - {0})
        if rows:
            since = f" of {_span(rounds)}" if rounds else ""
            parts.append(f"{share(rows, total)} {MADE[origin]}{since}")
    return f"Checkpoint {last} learned from {counted(total, 'row')}: {listed(parts)}"


def _span(rounds: Sequence[int]) -> str:
    """`round 3`, `rounds 1 to 5`, `rounds 1, 2 and 5`."""
    if len(rounds) == 1:
        return f"round {rounds[0]}"
    if len(rounds) > 2 and rounds[-1] - rounds[0] == len(rounds) - 1:
        return f"rounds {rounds[0]} to {rounds[-1]}"
    return f"rounds {listed([str(number) for number in rounds])}"


def _made_in(number: int) -> str:
    return "before round 1" if number == 0 else str(number)


def _graph(told: Evidence, flows: Sequence[Flow]) -> tuple[list[list[str]], list[Link]]:
    """Three columns of nodes in the order of rounds, and the links between them."""
    order = list(ORIGINS)
    oldest = min(flow.round for flow in flows)
    scores = {m.round: f" · {m.value:.2f}" for m in told.measured("pass_at_1")}
    sources: dict[tuple[int, int], str] = {}
    rows: Counter[tuple[str, str, str]] = Counter()
    visited: Counter[tuple[str, str, str]] = Counter()
    for flow in flows:
        first = 1 if 0 < flow.origin_round < oldest else flow.origin_round
        made = _source(first, oldest)
        source = f"{made} · {flow.origin}" if made else flow.origin
        sources[first, order.index(flow.origin)] = source
        held = f"set {flow.round}"
        rows[source, held, flow.origin] += flow.rows
        model = f"checkpoint {flow.round}{scores.get(flow.round, '')}"
        visited[held, model, flow.origin] += flow.visited
        visited[held, UNVISITED, UNVISITED] += flow.rows - flow.visited
    links = [
        Link(source, target, value, kind)
        for (source, target, kind), value in [*rows.items(), *visited.items()]
        if value
    ]
    names = list(dict.fromkeys(link.target for link in links))
    columns = [
        [source for _, source in sorted(sources.items())],
        [name for name in names if name.startswith("set ")],
        [name for name in names if name.startswith("checkpoint ")],
    ]
    columns[2] += [UNVISITED] if UNVISITED in names else []
    return columns, links


def _source(number: int, oldest: int) -> str:
    """Where rows were made: those of rounds before the oldest set stand together."""
    if number >= oldest or number == 0:
        return f"round {number}" if number else ""
    return "round 1" if oldest == 2 else f"rounds 1 to {oldest - 1}"


def _picture(nodes: Sequence[Node], ribbons: Sequence[Ribbon]) -> Any:
    place = {node.name: node for node in nodes}
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, 1], nice=False))
    y = alt.Scale(domain=[-HEAD, 1 + HEAD / 3], reverse=True, nice=False)
    kinds = {ribbon.link.kind for ribbon in ribbons}
    colours = {
        name: shade for name, shade in {**ORIGINS, UNVISITED: "#b9bdc4"}.items() if name in kinds
    }
    pointed = alt.selection_point(name="pointed", fields=["set"], on="pointerover", empty=True)
    bands = (
        alt.Chart(data(list(_edges(ribbons, place))))
        .mark_area(interpolate="monotone")
        .encode(
            x=x,
            y=alt.Y("top:Q", axis=None, scale=y),
            y2="bottom:Q",
            detail="ribbon:N",
            color=coloured("origin", colours),
            opacity=alt.condition(pointed, alt.value(0.55), alt.value(0.08)),
            tooltip=["from:N", "to:N", "rows:Q", "origin:N"],
        )
        .add_params(pointed)
    )
    boxes = [
        {
            "left": _left(node), "right": _left(node) + NODE, "top": node.top,
            "bottom": node.bottom, "name": node.name, "middle": (node.top + node.bottom) / 2,
        }
        for node in nodes
    ]  # fmt: skip
    bars = alt.Chart(data(boxes)).mark_rect(color=NODES, stroke=NODES, strokeWidth=1).encode(
        x=alt.X("left:Q", axis=None), x2="right:Q", y=alt.Y("top:Q", axis=None, scale=y),
        y2="bottom:Q", tooltip=["name:N"],
    )  # fmt: skip
    heads = [
        {"left": edge, "right": edge, "middle": -HEAD / 1.5, "name": name}
        for edge, name in ((0, "rows of"), (0.5, "sets"), (1, "models · pass@1"))
    ]
    names = [_names(heads[:2], False, dx=0), _names(heads[2:], True, dx=0)]
    names += [
        _names(
            [box for box, node in zip(boxes, nodes, strict=True) if (node.column == 2) == last],
            last,
        )
        for last in (False, True)
    ]
    return alt.layer(bands, bars, *names)


def _left(node: Node) -> float:
    """Where a node begins from left to right."""
    return node.column / 2 * (1 - NODE)


def _names(boxes: Sequence[Mapping[str, Any]], last: bool, dx: int = 4) -> Any:
    """Labels beside their nodes: to the right, in the last column to the left."""
    mark = alt.MarkDef(
        "text",
        align="right" if last else "left",
        dx=-dx if last else dx,
        baseline="middle",
        fontSize=11,
        fontWeight="normal" if dx else "bold",
    )
    return alt.Chart(data(boxes), mark=mark).encode(
        x=alt.X("left:Q" if last else "right:Q", axis=None),
        y=alt.Y("middle:Q", axis=None),
        text="name:N",
    )


def _edges(ribbons: Sequence[Ribbon], place: Mapping[str, Node]) -> Any:
    """Points along the upper and lower edge of each ribbon, which is level at both ends."""
    for number, ribbon in enumerate(ribbons):
        link = ribbon.link
        begin = _left(place[link.source]) + NODE
        end = _left(place[link.target])
        held = link.target if link.target.startswith("set ") else link.source
        for step in range(STEPS + 1):
            part = step / STEPS
            bend = part * part * (3 - 2 * part)
            top = ribbon.source_top + (ribbon.target_top - ribbon.source_top) * bend
            yield {
                "ribbon": number, "x": round(begin + (end - begin) * part, 4),
                "top": round(top, 5), "bottom": round(top + ribbon.height, 5),
                "origin": link.kind, "set": held, "from": link.source, "to": link.target,
                "rows": link.value,
            }  # fmt: skip


def mix(told: Evidence) -> Figure | None:
    """The training sets' rows by origin, as shares and as counts."""
    rows: Counter[tuple[int, str]] = Counter()
    for flow in told.flows:
        rows[flow.round, flow.origin] += flow.rows
    if not rows:
        return None
    totals: Counter[int] = Counter()
    for (number, _), count in rows.items():
        totals[number] += count
    first, last = min(totals), max(totals)
    own = [
        share(sum(rows[number, origin] for origin in SELF_MADE), totals[number])
        for number in (first, last)
    ]
    more = f", {own[1]} of round {last}" if last > first else ""
    title = f"Rows that the run's own policies made: {own[0]} of the set of round {first}{more}"
    cells = [
        {"round": number, "origin": origin, "rows": count, "share": count / totals[number]}
        for (number, origin), count in sorted(rows.items())
    ]
    colours = {name: shade for name, shade in ORIGINS.items() if any(o == name for _, o in rows)}
    panels: list[Panel] = [
        panel(
            alt.Chart(data(cells))
            .mark_bar()
            .encode(
                x=round_bands("round that trained on the set"),
                y=alt.Y(f"{field}:Q", title=axis, stack="zero", scale=scale),
                color=coloured("origin", colours),
                order=alt.Order("origin:N", sort="descending"),
                tooltip=["round:O", "origin:N", "rows:Q", alt.Tooltip("share:Q", format=".1%")],
            ),
            says,
        )
        for field, axis, says, scale in (
            ("share", "share of the set's rows", "By share", alt.Scale(domain=[0, 1])),
            ("rows", "rows in the set", "By rows", alt.Scale()),
        )
        if field == "rows" or len(colours) > 1
    ]
    note = "Self and rationalized rows are the run's own work; all others came from elsewhere."
    head = ("round", "origin", "rows", "share")
    table = [
        [str(number), origin, f"{count:,}", share(count, totals[number])]
        for (number, origin), count in sorted(rows.items())
    ]
    return Figure("mix", title, note, panels, head, table)
