# SPDX-License-Identifier: Apache-2.0
"""Tables as plain text and as Markdown, sizes, text that is safe on a terminal."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def visible(text: str) -> str:
    """Text on one line with control characters made visible: no model text moves the cursor."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def json_line(values: Mapping[str, Any]) -> str:
    """Values as a line of JSON in ASCII, ids as their text."""
    return json.dumps(values, ensure_ascii=True, separators=(",", ":"), default=str)


def size(bytes_: float) -> str:
    """Bytes as people read them: 12.3 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if bytes_ < 1000:
            return f"{bytes_:.0f} B" if unit == "B" else f"{bytes_:.1f} {unit}"
        bytes_ /= 1000
    return f"{bytes_:.1f} TB"


def duration(seconds: float) -> str:
    """Seconds as `m:ss`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An aligned table: columns of numbers to the right, columns with words to the left."""
    columns = list(zip(head, ["-"] * len(head), *rows, strict=True))
    return "\n".join(
        "  ".join(cells).rstrip() for cells in zip(*map(_aligned, columns), strict=True)
    )


def narrowed(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, drop: Sequence[str]
) -> str:
    """The same within `width` columns (None: any), without the columns of `drop` that it takes."""
    table = text_table(head, rows)
    for name in drop:
        if width is None or max(map(len, table.splitlines())) <= width:
            break
        place = list(head).index(name)
        head = [*head[:place], *head[place + 1 :]]
        rows = [[*row[:place], *row[place + 1 :]] for row in rows]
        table = text_table(head, rows)
    return table


def _aligned(column: Sequence[str]) -> list[str]:
    """A column's cells at one width; its second cell is the rule below the head."""
    head, _, *cells = column
    width = max(map(len, [head, *cells]))
    numbers = not any(c.isalpha() for cell in cells for c in cell)
    padded = [c.rjust(width) if numbers else c.ljust(width) for c in [head, *cells]]
    return [padded[0], "-" * width, *padded[1:]]


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as a Markdown table."""
    safe = [[_in_markdown(cell) for cell in row] for row in rows]
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *safe])


def _in_markdown(cell: str) -> str:
    return " ".join(cell.splitlines()).replace("\\", "\\\\").replace("|", "\\|")
