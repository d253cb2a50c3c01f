# SPDX-License-Identifier: Apache-2.0
"""Where the nodes and ribbons of a Sankey picture lie, in a square of side 1, y downwards.

All columns have one scale: a ribbon is as high at both ends, and a node as what flows into it.
Nodes keep the order in which they are given, `gap` apart at the least; ribbons leave and enter a
node in the order of the nodes at their other ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """A flow between two nodes of neighbouring columns; `kind` tells flows of one pair apart."""

    source: str
    target: str
    value: float
    kind: str


@dataclass(frozen=True, slots=True)
class Node:
    """A node's place: its column, and where it begins and ends."""

    name: str
    column: int
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Ribbon:
    """A link's place at both ends."""

    link: Link
    source_top: float
    target_top: float
    height: float


def layout(
    columns: Sequence[Sequence[str]], links: Sequence[Link], gap: float
) -> tuple[list[Node], list[Ribbon]]:
    """Nodes and ribbons; `gap` is less than 1 over the most nodes of a column."""
    heights = {name: 0.0 for column in columns for name in column}
    for ends in ("source", "target"):
        sums = dict.fromkeys(heights, 0.0)
        for link in links:
            sums[getattr(link, ends)] += link.value
        heights = {name: max(heights[name], sums[name]) for name in heights}
    scale = min(
        (1 - gap * (len(column) - 1)) / total
        for column in columns
        if (total := sum(heights[name] for name in column))
    )
    nodes = [
        node
        for number, column in enumerate(columns)
        for node in _stacked(number, column, heights, scale)
    ]
    return nodes, _ribbons({node.name: node for node in nodes}, links, scale)


def _stacked(
    number: int, column: Sequence[str], heights: Mapping[str, float], scale: float
) -> list[Node]:
    """A column's nodes from top to bottom, spread over the whole height."""
    free = 1 - scale * sum(heights[name] for name in column)
    between = free / (len(column) - 1) if len(column) > 1 else 0.0
    nodes, top = [], 0.0 if len(column) > 1 else free / 2
    for name in column:
        bottom = top + scale * heights[name]
        nodes.append(Node(name, number, top, bottom))
        top = bottom + between
    return nodes


def _ribbons(nodes: Mapping[str, Node], links: Sequence[Link], scale: float) -> list[Ribbon]:
    place = {name: number for number, name in enumerate(nodes)}
    tops: dict[tuple[str, Link], float] = {}
    for end, other in (("source", "target"), ("target", "source")):
        used = {name: node.top for name, node in nodes.items()}
        order = sorted(links, key=lambda link: (place[getattr(link, other)], link.kind))
        for link in order:
            name = getattr(link, end)
            tops[end, link] = used[name]
            used[name] += scale * link.value
    return [
        Ribbon(link, tops["source", link], tops["target", link], scale * link.value)
        for link in links
    ]
