# SPDX-License-Identifier: Apache-2.0
"""The outlook of a run: pass rates by hand, the edges of the histogram, go, warn and hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.preflight import outlook

ANSWERED = st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(lambda t: t[1] <= t[0])


def test_an_outlook_by_hand() -> None:
    found = outlook([(4, 0), (4, 1), (4, 4), (2, 1), (0, 0)], k=4)
    # the last problem was never judged; the fewest answers are 2, so k is 2
    assert (found.problems, found.n, found.k) == (4, 2, 2)
    assert (found.never, found.mixed, found.always) == (1, 2, 1)
    # (0 + 1/4 + 1 + 1/2) / 4
    assert found.pass_at_1 == pytest.approx(7 / 16)
    # 1 of 4: 1 − C(3,2)/C(4,2) = 1/2; 1 of 2: 1; (0 + 1/2 + 1 + 1) / 4
    assert found.pass_at_k == pytest.approx(5 / 8)
    # never, 1/4 in the third tenth, 1/2 in the sixth, always
    assert found.histogram == (1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1)
    assert (found.verdict, found.advice) == ("go", "")


@pytest.mark.parametrize(
    ("n", "correct", "place"),
    [
        (10, 0, 0),
        (1000, 1, 1),
        (1000, 99, 1),
        (10, 1, 2),
        (10, 3, 4),
        (10, 5, 6),
        (10, 9, 10),
        (1000, 999, 10),
        (10, 10, 11),
        (1, 1, 11),
    ],
)
def test_a_pass_rate_stands_in_its_tenth_and_never_and_always_apart(
    n: int, correct: int, place: int
) -> None:
    histogram = outlook([(n, correct)], 1).histogram
    assert [i for i, count in enumerate(histogram) if count] == [place]


def test_a_base_that_solves_nothing_is_held_with_what_to_do() -> None:
    found = outlook([(8, 0), (8, 0)], 4)
    assert (found.verdict, found.pass_at_1, found.pass_at_k, found.never) == ("hold", 0.0, 0.0, 2)
    for word in ("solves no problem", "prompts.examples", "evaluate.n", "gates.preflight: warn"):
        assert word in found.advice


def test_one_right_answer_is_enough_to_go() -> None:
    assert outlook([(8, 0), (8, 1)], 4).verdict == "go"


@pytest.mark.parametrize(("correct", "verdict"), [(89, "go"), (90, "go"), (91, "warn")])
def test_a_base_that_solves_more_than_nine_tenths_is_warned_of(correct: int, verdict: str) -> None:
    found = outlook([(100, correct)], 4)
    assert found.verdict == verdict
    assert ("91% already" in found.advice) == (verdict == "warn")


@pytest.mark.parametrize("tallies", [[], [(0, 0)], [(0, 0), (0, 0)]])
def test_answers_that_nobody_could_judge_are_held(tallies: list[tuple[int, int]]) -> None:
    found = outlook(tallies, 4)
    assert (found.verdict, found.problems, sum(found.histogram)) == ("hold", 0, 0)
    assert "mend the verifier" in found.advice


@given(st.lists(ANSWERED, max_size=20), st.integers(1, 12))
def test_every_judged_problem_is_counted_once_and_more_tries_never_lower_the_rate(
    tallies: list[tuple[int, int]], k: int
) -> None:
    found = outlook(tallies, k)
    judged = sum(n > 0 for n, _ in tallies)
    assert found.problems == judged == sum(found.histogram)
    assert found.never + found.mixed + found.always == judged
    assert (found.histogram[0], found.histogram[-1]) == (found.never, found.always)
    assert found.k <= k
    assert 0 <= found.pass_at_1 <= found.pass_at_k + 1e-12 <= 1 + 2e-12
    assert found == outlook(tallies[::-1], k) or judged > 1  # sums of floats may differ
