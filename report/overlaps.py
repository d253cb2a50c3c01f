# SPDX-License-Identifier: Apache-2.0
"""Problems that overlap evaluation problems, as people read them: both texts below each other."""

from collections.abc import Mapping, Sequence

from report.text import visible
from stages.decontaminate import Overlap
from stages.ids import Id

WIDTH = 300  # characters of a text that are shown


def overlap_lines(
    overlaps: Sequence[Overlap], texts: Mapping[Id, str], problems: int, count: int = 3
) -> list[str]:
    """How many of `problems` training problems overlap, by rule, and the first `count` of them.

    `texts` has the text of every id that is shown.
    """
    by_problem: dict[Id, list[Overlap]] = {}
    for overlap in overlaps:
        by_problem.setdefault(overlap.problem_id, []).append(overlap)
    head = f"{len(by_problem):,} of {problems:,} training problems overlap evaluation problems"
    if not by_problem:
        return [head]
    rules = dict.fromkeys(overlap.rule for overlap in overlaps)
    shares = [f"{rule} {sum(o.rule == rule for o in overlaps):,}" for rule in rules]
    shown = list(by_problem.values())[:count]
    return [f"{head}: {', '.join(shares)}", *(_lines(found, texts) for found in shown)]


def _lines(found: Sequence[Overlap], texts: Mapping[Id, str]) -> str:
    first = found[0]
    rules = ", ".join(f"{overlap.rule} ({overlap.share:.0%})" for overlap in found)
    return "\n".join(
        [
            f"{first.problem_id}  {rules}",
            f"  training    {_short(texts[first.problem_id])}",
            f"  evaluation  {_short(texts[first.other_id])}   ({first.other_id})",
        ]
    )


def _short(text: str) -> str:
    return visible(text if len(text) <= WIDTH else f"{text[:WIDTH]} …")
