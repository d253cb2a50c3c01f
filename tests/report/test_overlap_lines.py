# SPDX-License-Identifier: Apache-2.0
"""Overlaps on the screen."""

from uuid import UUID

from report.overlaps import overlap_lines
from stages.decontaminate import Overlap

ONE, TWO, THREE, ITEM = (UUID(int=i) for i in range(1, 5))
TEXTS = {ONE: "How many\x1b[2J apples?", TWO: "x" * 400, THREE: "third", ITEM: "How many apples?"}


def test_overlaps_are_counted_by_problem_and_rule_and_both_texts_are_shown() -> None:
    overlaps = [
        Overlap(ONE, ITEM, "exact", 1.0),
        Overlap(ONE, ITEM, "8-gram", 0.875),
        Overlap(TWO, ITEM, "8-gram", 0.5),
        Overlap(THREE, ITEM, "8-gram", 0.5),
    ]
    head, first, second = overlap_lines(overlaps, TEXTS, 1200, count=2)
    assert head == ("3 of 1,200 training problems overlap evaluation problems: exact 1, 8-gram 3")
    assert first == (
        f"{ONE}  exact (100%), 8-gram (88%)\n"
        "  training    How many\\x1b[2J apples?\n"
        f"  evaluation  How many apples?   ({ITEM})"
    )
    assert f"  training    {'x' * 300} …\n" in second


def test_no_overlap_is_one_line() -> None:
    assert overlap_lines([], {}, 7) == ["0 of 7 training problems overlap evaluation problems"]
