# SPDX-License-Identifier: Apache-2.0
"""Lineage drawn: trees, Mermaid and DOT say every edge, whatever text the labels hold."""

import re

from hypothesis import given
from hypothesis import strategies as st

from report.graphs import Edge, as_graphviz, as_mermaid, as_tree

DIAMOND = [Edge("base", "one", "init"), Edge("base", "two"), Edge("one", "end"), Edge("two", "end")]
EDGES = st.lists(st.builds(Edge, st.text(), st.text(), st.text()), min_size=1, max_size=6)


def test_a_tree_by_hand() -> None:
    assert as_tree("end", DIAMOND, backwards=True).splitlines() == [
        "end",
        "├── one",
        "│   └── base  (init)",
        "└── two",
        "    └── base",
    ]


def test_what_was_drawn_is_not_opened_again_and_cycles_end() -> None:
    edges = [Edge("a", "b"), Edge("b", "a"), Edge("a", "c"), Edge("c", "b")]
    assert as_tree("a", edges, backwards=False).splitlines() == [
        "a",
        "├── b",
        "│   └── a …",
        "└── c",
        "    └── b …",
    ]


def test_mermaid_by_hand() -> None:
    assert as_mermaid(DIAMOND[:2]).splitlines() == [
        "flowchart LR",
        '  n0["base"]',
        '  n1["one"]',
        '  n2["two"]',
        '  n0 -->|"init"| n1',
        "  n0 --> n2",
    ]


def test_graphviz_by_hand() -> None:
    assert as_graphviz(DIAMOND[:1]).splitlines() == [
        "digraph lineage {",
        "  rankdir=LR;",
        '  n0 [label="base"];',
        '  n1 [label="one"];',
        '  n0 -> n1 [label="init"];',
        "}",
    ]


@given(edges=EDGES)
def test_mermaid_stays_mermaid_whatever_the_labels(edges: list[Edge]) -> None:
    head, *lines = as_mermaid(edges).splitlines()
    labels = {label for e in edges for label in (e.source, e.target)}
    node = re.compile(r'  n\d+\["[^"\[\]|{}()<>]*"\]')
    arrow = re.compile(r'  n\d+ -->(\|"[^"\[\]|{}()<>]*"\|)? n\d+')
    assert head == "flowchart LR"
    assert sum(node.fullmatch(line) is not None for line in lines) == len(labels)
    assert sum(arrow.fullmatch(line) is not None for line in lines) == len(edges)
    assert len(lines) == len(labels) + len(edges)


@given(edges=EDGES)
def test_dot_stays_dot_whatever_the_labels(edges: list[Edge]) -> None:
    quoted = r'"(?:[^"\\]|\\.)*"'
    lines = as_graphviz(edges).splitlines()
    node, arrow = rf"  n\d+ \[label={quoted}\];", rf"  n\d+ -> n\d+(?: \[label={quoted}\])?;"
    assert all(re.fullmatch(f"{node}|{arrow}", line) for line in lines[2:-1])
    assert sum("->" in line and bool(re.fullmatch(arrow, line)) for line in lines) == len(edges)


@given(edges=EDGES)
def test_a_tree_keeps_to_its_lines(edges: list[Edge]) -> None:
    tree = as_tree(edges[0].source, edges, backwards=False)
    assert all(line.isprintable() for line in tree.split("\n"))
    assert len(tree.split("\n")) <= 1 + len(edges)


def test_a_long_chain_is_drawn() -> None:
    edges = [Edge(str(n), str(n + 1)) for n in range(3000)]
    assert len(as_tree("0", edges, backwards=False).splitlines()) == 3001
