# SPDX-License-Identifier: Apache-2.0
"""When a run resets its reference and its optimizer (ProRL, arXiv 2505.24864, section 3).

`every(n)`: after n rounds. `on_plateau(n)`: where the newest held-out pass@1 is of n rounds or more
after the best. A value is a new best where it is above the best by more than its standard error:
what stays within it, or falls, is a plateau. Both count from the last reset; the best is then that
of the model which the reset began with.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

RULE = re.compile(r"(every|on_plateau)\(([1-9][0-9]{0,5})\)")


@dataclass(frozen=True, slots=True)
class Held:
    """Held-out pass@1 of the model that a round came to, and its standard error."""

    round: int
    value: float
    error: float


@dataclass(frozen=True, slots=True)
class Reset:
    """Why a round begins with a reset: the best value and the newest, if they are why."""

    why: str
    best: Held | None = None
    last: Held | None = None


def due(rule: str, round_: int, since: int, values: Sequence[Held]) -> Reset | None:
    """Whether a round is to begin with a reset.

    `since` is the round that the last one began, 1 where there was none; `values` are those of all
    rounds before this one that were measured, oldest first.
    """
    found = RULE.fullmatch(rule)
    if found is None or round_ <= since:
        return None
    n = int(found[2])
    if found[1] == "every":
        return Reset(f"{round_ - since} rounds are done since") if round_ - since >= n else None
    before = [held for held in values if held.round < since][-1:]
    seen = before + [held for held in values if held.round >= since]
    if not seen:
        return None
    best = best_of(seen)
    if seen[-1].round - best.round < n:
        return None
    return Reset(
        f"held-out pass@1 has no new best since round {best.round} ({best.value:.3f}; "
        f"{seen[-1].value:.3f} in round {seen[-1].round})",
        best,
        seen[-1],
    )


def best_of(values: Sequence[Held]) -> Held:
    """The newest of those that were above the best before them by more than their error."""
    best = values[0]
    for held in values[1:]:
        best = held if held.value > best.value + held.error else best
    return best
