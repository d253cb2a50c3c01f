# SPDX-License-Identifier: Apache-2.0
"""maj@k against hand-worked votes, against all subsets, and what it must not depend on."""

import time
from collections import Counter
from collections.abc import Collection, Mapping
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.measures import maj_at_k, pass_at_k

ANSWERS = "abcd"


@pytest.mark.parametrize(
    ("votes", "correct", "unparsed", "k", "expected"),
    [
        # C(3,2) = 3 pairs: aa wins, 2 × ab ties for 1/2: (1 + 1) / 3
        ({"a": 2, "b": 1}, "a", 0, 2, 2 / 3),
        # the same pairs, now a is wrong: aa 0, 2 × ab 1/2: 1 / 3
        ({"a": 2, "b": 1}, "b", 0, 2, 1 / 3),
        # all three samples: a leads 2 to 1
        ({"a": 2, "b": 1}, "a", 0, 3, 1.0),
        # three answers level, one correct
        ({"a": 1, "b": 1, "c": 1}, "a", 0, 3, 1 / 3),
        # three answers level, two correct
        ({"a": 1, "b": 1, "c": 1}, "ab", 0, 3, 2 / 3),
        # 6 pairs of a, b, -, -: ab 1/2, 2 × a- 1, 2 × b- 0, -- 0: 2.5 / 6
        ({"a": 1, "b": 1}, "a", 2, 2, 2.5 / 6),
        # the one voter decides, however many do not vote
        ({"a": 1}, "a", 4, 5, 1.0),
        # a, a, a, b, b, c; C(6,3) = 20: aaa 1; aab 3·2 and aac 3 win; abc 3·2 level for 1/3;
        # abb 3 and bbc 1 lose: (1 + 6 + 3 + 2) / 20
        ({"a": 3, "b": 2, "c": 1}, "a", 0, 3, 12 / 20),
        # nobody votes
        ({}, "a", 3, 2, 0.0),
        # a correct answer that nobody gave, and one with a count of 0
        ({"b": 2, "c": 0}, "ac", 0, 1, 0.0),
    ],
)
def test_hand_worked(
    votes: Mapping[str, int], correct: str, unparsed: int, k: int, expected: float
) -> None:
    assert maj_at_k(votes, set(correct), unparsed, k) == pytest.approx(expected, abs=1e-15)


def test_too_few_samples_is_not_a_number() -> None:
    assert maj_at_k({"a": 2}, {"a"}, 1, 4) is None
    assert maj_at_k({}, {"a"}, 0, 1) is None


@pytest.mark.parametrize(
    ("votes", "unparsed", "k", "message"),
    [
        ({"a": 1}, 0, 0, "k is 0; allowed: 1 or more"),
        ({"a": 1}, -1, 1, "unparsed is -1; allowed: 0 or more"),
        ({"a": 2, "b": -1}, 0, 1, r"votes\['b'\] is -1; allowed: 0 or more"),
    ],
)
def test_refuses_what_cannot_be(
    votes: Mapping[str, int], unparsed: int, k: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        maj_at_k(votes, {"a"}, unparsed, k)


def test_refuses_a_string_for_the_correct_answers() -> None:
    with pytest.raises(TypeError, match="correct is the string '12'; pass a set"):
        maj_at_k({"12": 1}, "12", 0, 1)


def by_all_subsets(
    votes: Mapping[str, int], correct: Collection[str], unparsed: int, k: int
) -> float:
    samples = [answer for answer, size in votes.items() for _ in range(size)] + [""] * unparsed
    credit, subsets = Fraction(0), 0
    for subset in combinations(samples, k):
        subsets += 1
        tally = Counter(answer for answer in subset if answer)
        level = [answer for answer in tally if tally[answer] == max(tally.values())]
        if level:
            credit += Fraction(sum(answer in correct for answer in level), len(level))
    return float(credit / subsets)


polls = st.lists(st.sampled_from([*ANSWERS, ""]), min_size=1, max_size=8)
corrects = st.sets(st.sampled_from(ANSWERS))


def count(poll: list[str]) -> tuple[dict[str, int], int]:
    return dict(Counter(answer for answer in poll if answer)), poll.count("")


@given(polls, corrects, st.data())
def test_equals_all_subsets(poll: list[str], correct: set[str], data: st.DataObject) -> None:
    votes, unparsed = count(poll)
    k = data.draw(st.integers(1, len(poll)))
    assert maj_at_k(votes, correct, unparsed, k) == by_all_subsets(votes, correct, unparsed, k)


@given(polls, corrects, st.permutations(ANSWERS), st.integers(1, 8))
def test_names_and_order_mean_nothing(
    poll: list[str], correct: set[str], names: list[str], k: int
) -> None:
    votes, unparsed = count(poll)
    rename = dict(zip(ANSWERS, names, strict=True))
    renamed = {rename[answer]: size for answer, size in reversed(votes.items())}
    expected = maj_at_k(votes, correct, unparsed, k)
    assert maj_at_k(renamed, {rename[answer] for answer in correct}, unparsed, k) == expected


@given(polls, st.integers(1, 8))
def test_credit_is_shared_out(poll: list[str], k: int) -> None:
    """The answers' credits add up to the chance that anybody votes: pass@k of having an answer."""
    votes, unparsed = count(poll)
    credits = [maj_at_k(votes, {answer}, unparsed, k) for answer in votes]
    somebody = pass_at_k(len(poll), len(poll) - unparsed, k)
    if somebody is None:
        assert credits == [None] * len(votes)
    else:
        assert sum(credit or 0.0 for credit in credits) == pytest.approx(somebody, abs=1e-12)
        assert maj_at_k(votes, set(ANSWERS), unparsed, k) == somebody


@given(polls)
def test_at_one_is_pass_at_one(poll: list[str]) -> None:
    votes, unparsed = count(poll)
    assert maj_at_k(votes, {"a"}, unparsed, 1) == pass_at_k(len(poll), poll.count("a"), 1)


@given(polls, st.integers(1, 8))
def test_never_above_pass_at_k(poll: list[str], k: int) -> None:
    votes, unparsed = count(poll)
    majority, passed = maj_at_k(votes, {"a"}, unparsed, k), pass_at_k(len(poll), poll.count("a"), k)
    if majority is not None and passed is not None:
        assert majority <= passed


@pytest.mark.parametrize(
    "sizes", [[1] * 64, [2] * 32, [4] * 16, [8] * 8, [16] * 4, [32, 32], [20, 20, 8, 8, 4, 2, 1, 1]]
)
def test_is_quick_for_sixty_four_samples(sizes: list[int]) -> None:
    votes = {str(i): size for i, size in enumerate(sizes)}
    start = time.process_time()
    credit = maj_at_k(votes, {"0"}, 0, 32)
    assert time.process_time() - start < 1.0  # about 0.01 s; the room is for a slow machine
    if len(set(sizes)) == 1:
        assert credit == pytest.approx(1 / len(sizes), abs=1e-15)  # all answers are alike
