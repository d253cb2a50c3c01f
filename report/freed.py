# SPDX-License-Identifier: Apache-2.0
"""What `starloop gc` found and what became of it."""

from collections.abc import Sequence

from report.text import size, text_table, visible


def freed_page(found: Sequence[tuple[str, str, str, int]], done: bool) -> str:
    """Rows of (what, runs, name, bytes) with their sum; `done` where they are deleted."""
    if not found:
        return "nothing to free: what lies there is kept by a run's `keep`, or needed"
    rows = [
        [what, visible(runs), visible(name), size(bytes_)] for what, runs, name, bytes_ in found
    ]
    total = size(sum(row[3] for row in found))
    last = f"freed {total}" if done else f"nothing was deleted: --yes frees {total}"
    return f"{text_table(['what', 'run', 'name', 'size'], rows)}\n{last}"
