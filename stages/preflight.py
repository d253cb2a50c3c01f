# SPDX-License-Identifier: Apache-2.0
"""Can the loop climb from this base? Pass rates of its first answers, and what follows from them.

Self-training learns from problems that the base solves sometimes: where it never solves any, no
right answer comes (a hint helps only a base that can use it); where it nearly always does, there
is little left to learn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stages.measures import pass_at_k

EASY = 0.9
BINS = 10


@dataclass(frozen=True, slots=True)
class Outlook:
    """Means over problems; `histogram` counts problems by pass rate: 0, ten tenths, 1."""

    problems: int
    n: int
    k: int
    pass_at_1: float
    pass_at_k: float
    never: int
    mixed: int
    always: int
    histogram: tuple[int, ...]
    verdict: Literal["go", "warn", "hold"]
    advice: str


def outlook(tallies: Sequence[tuple[int, int]], k: int) -> Outlook:
    """The outlook from (answers, right ones) of each problem; `k` is cut to the least n."""
    counted = [(n, correct) for n, correct in tallies if n]
    if not counted:
        nothing = "no answer could be judged: mend the verifier or the references"
        return Outlook(0, 0, k, 0.0, 0.0, 0, 0, 0, (0,) * (BINS + 2), "hold", nothing)
    least = min(n for n, _ in counted)
    k = min(k, least)
    never = sum(correct == 0 for _, correct in counted)
    always = sum(correct == n for n, correct in counted)
    first = sum(correct / n for n, correct in counted) / len(counted)
    found = [pass_at_k(n, correct, k) or 0.0 for n, correct in counted]
    verdict, advice = _advice(never, len(counted), first)
    return Outlook(
        problems=len(counted),
        n=least,
        k=k,
        pass_at_1=first,
        pass_at_k=sum(found) / len(found),
        never=never,
        mixed=len(counted) - never - always,
        always=always,
        histogram=_histogram(counted),
        verdict=verdict,
        advice=advice,
    )


def _histogram(counted: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    bins = [0] * (BINS + 2)
    for n, correct in counted:
        bins[0 if correct == 0 else BINS + 1 if correct == n else 1 + correct * BINS // n] += 1
    return tuple(bins)


def _advice(
    never: int, problems: int, pass_at_1: float
) -> tuple[Literal["go", "warn", "hold"], str]:
    if never == problems:
        return "hold", (
            "the base solves no problem, so there is nothing to learn from: take easier problems "
            "or a stronger base, show worked examples (prompts.examples), sample more "
            "(evaluate.n), or train it on demonstrations first; gates.preflight: warn goes on"
        )
    if pass_at_1 > EASY:
        return "warn", (
            f"the base solves {pass_at_1:.0%} already and little is left to learn: take harder "
            "problems (generate.problems.band leaves the solved ones out)"
        )
    return "go", ""
