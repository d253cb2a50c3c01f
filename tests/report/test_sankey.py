# SPDX-License-Identifier: Apache-2.0
"""The layout of the lineage picture: flows are conserved, nothing overlaps, equal in, equal out."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.figures.sankey import Link, layout

GAP = 0.04
NAMES = [[f"{column}{number}" for number in range(6)] for column in "abc"]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[list[str]], list[Link]]:
    """Three columns of up to six nodes each, with links between neighbours."""
    columns = [names[: draw(st.integers(1, 6))] for names in NAMES]
    links = [
        Link(source, target, value, kind)
        for left, right in pairwise(columns)
        for source in left
        for target in right
        for kind in ("self", "seed")
        if (value := draw(st.integers(0, 500)))
    ]
    return columns, links or [Link("a0", "b0", 1, "self")]


@given(graphs())
def test_what_flows_into_a_node_is_as_high_as_its_ribbons(
    graph: tuple[list[list[str]], list[Link]],
) -> None:
    columns, links = graph
    nodes, ribbons = layout(columns, links, GAP)
    assert [ribbon.link for ribbon in ribbons] == links
    scale = ribbons[0].height / links[0].value
    for node in nodes:
        into = sum(link.value for link in links if link.target == node.name)
        out = sum(link.value for link in links if link.source == node.name)
        assert node.bottom - node.top == pytest.approx(scale * max(into, out), abs=1e-9)


@given(graphs())
def test_nodes_and_the_ends_of_ribbons_do_not_overlap(
    graph: tuple[list[list[str]], list[Link]],
) -> None:
    columns, links = graph
    nodes, ribbons = layout(columns, links, GAP)
    for number, column in enumerate(columns):
        placed = [node for node in nodes if node.column == number]
        assert [node.name for node in placed] == column
        assert placed[0].top >= -1e-9
        assert placed[-1].bottom <= 1 + 1e-9
        for above, below in pairwise(placed):
            assert below.top - above.bottom >= GAP - 1e-9
    for node in nodes:
        for end in ("source", "target"):
            ends = sorted(
                (getattr(r, f"{end}_top"), r.height)
                for r in ribbons
                if getattr(r.link, end) == node.name
            )
            for (top, height), (later, _) in pairwise(ends):
                assert later >= top + height - 1e-9
            for top, height in ends:
                assert top >= node.top - 1e-9
                assert top + height <= node.bottom + 1e-9


@given(graphs())
def test_equal_graphs_have_equal_layouts(graph: tuple[list[list[str]], list[Link]]) -> None:
    columns, links = graph
    again = [Link(link.source, link.target, link.value, link.kind) for link in links]
    assert layout(columns, links, GAP) == layout([list(column) for column in columns], again, GAP)


def test_a_layout_by_hand() -> None:
    # Two sources of 30 and 10 rows into one set of 40: the gap of 0.2 leaves 0.8 for 40 rows.
    links = [Link("a", "set", 30, "self"), Link("b", "set", 10, "seed")]
    nodes, ribbons = layout([["a", "b"], ["set"]], links, 0.2)
    assert [(n.name, n.column, n.top, n.bottom) for n in nodes] == [
        ("a", 0, 0.0, pytest.approx(0.6)),
        ("b", 0, pytest.approx(0.8), pytest.approx(1.0)),
        ("set", 1, pytest.approx(0.1), pytest.approx(0.9)),
    ]
    assert [(r.source_top, r.target_top, r.height) for r in ribbons] == [
        (0.0, pytest.approx(0.1), pytest.approx(0.6)),
        (pytest.approx(0.8), pytest.approx(0.7), pytest.approx(0.2)),
    ]
