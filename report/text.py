# SPDX-License-Identifier: Apache-2.0
"""Tables as plain text and as Markdown."""

from collections.abc import Sequence


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An aligned table: the first column to the left, the rest to the right."""
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(_aligned(line, widths) for line in lines)


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    first = line[0].ljust(widths[0])
    return "  ".join([first, *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))])


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as a Markdown table."""
    safe = [[_in_markdown(cell) for cell in row] for row in rows]
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *safe])


def _in_markdown(cell: str) -> str:
    return " ".join(cell.splitlines()).replace("\\", "\\\\").replace("|", "\\|")
