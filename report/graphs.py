# SPDX-License-Identifier: Apache-2.0
"""A lineage as a tree of text, as Mermaid, and as Graphviz's DOT."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from report.text import visible


@dataclass(frozen=True, slots=True)
class Edge:
    """`source` led to `target`, by labels; `how` says in what way."""

    source: str
    target: str
    how: str = ""


def as_tree(root: str, edges: Sequence[Edge], backwards: bool) -> str:
    """The root and what hangs on it; a node that was drawn already is not opened again."""
    below: dict[str, list[tuple[str, str]]] = {}
    for edge in edges:
        parent, child = (edge.target, edge.source) if backwards else (edge.source, edge.target)
        below.setdefault(parent, []).append((child, edge.how))
    lines, drawn = [visible(root)], {root}
    waiting = [(child, how, "") for child, how in reversed(below.get(root, []))]
    left = {"": len(waiting)}  # children still to be drawn, by indent
    while waiting:
        node, how, indent = waiting.pop()
        left[indent] -= 1
        last = left[indent] == 0
        note = f"  ({visible(how)})" if how else ""
        again = " …" if node in drawn and node in below else ""
        lines.append(f"{indent}{'└── ' if last else '├── '}{visible(node)}{note}{again}")
        if node not in drawn:
            drawn.add(node)
            deeper = indent + ("    " if last else "│   ")
            children = below.get(node, [])
            left[deeper] = len(children)
            waiting += [(child, how, deeper) for child, how in reversed(children)]
    return "\n".join(lines)


def as_mermaid(edges: Sequence[Edge]) -> str:
    """A `flowchart` with numbered nodes; labels hold no character that Mermaid reads."""
    names = _numbered(edges)
    nodes = [f'  {key}["{_mermaid_text(label)}"]' for label, key in names.items()]
    arrows = [
        f"  {names[e.source]} -->"
        + (f'|"{_mermaid_text(e.how)}"| ' if e.how else " ")
        + names[e.target]
        for e in edges
    ]
    return "\n".join(["flowchart LR", *nodes, *arrows])


def as_graphviz(edges: Sequence[Edge]) -> str:
    """A `digraph` with numbered nodes."""
    names = _numbered(edges)
    nodes = [f"  {key} [label={_quoted(label)}];" for label, key in names.items()]
    arrows = [
        f"  {names[e.source]} -> {names[e.target]}"
        + (f" [label={_quoted(e.how)}]" if e.how else "")
        + ";"
        for e in edges
    ]
    return "\n".join(["digraph lineage {", "  rankdir=LR;", *nodes, *arrows, "}"])


def _numbered(edges: Sequence[Edge]) -> dict[str, str]:
    labels = dict.fromkeys(label for e in edges for label in (e.source, e.target))
    return {label: f"n{number}" for number, label in enumerate(labels)}


def _mermaid_text(text: str) -> str:
    return re.sub(r"[^\w .,:@×→–-]", lambda m: f"#{ord(m[0])};", visible(text))


def _quoted(text: str) -> str:
    escaped = visible(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


GRAPHS: dict[str, Callable[[Sequence[Edge]], str]] = {
    "mermaid": as_mermaid,
    "graphviz": as_graphviz,
}
