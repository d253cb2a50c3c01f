# SPDX-License-Identifier: Apache-2.0
"""`distance`: what is counted, how far it is, and what does not count."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.verifiers import Answer, Judgement, distance, judge_text


def judged(completion: str, reference: str = "", **settings: Any) -> Judgement:
    part = distance.Config(type="distance", **{"wanted": 5, **settings}).build()
    return judge_text(part, reference, completion)


@pytest.mark.parametrize(
    ("lines", "score", "reason"),
    [
        (5, 0.0, "match"),
        (4, -1.0, "too_few"),
        (7, -2.0, "too_many"),
        (0, -5.0, "too_few"),
        (10, -5.0, "too_many"),
        (100_000, -5.0, "too_many"),
    ],
)
def test_five_lines_by_hand(lines: int, score: float, reason: str) -> None:
    found = judged("\n".join("line" for _ in range(lines)))
    assert (found.score, found.reason, found.extracted) == (score, reason, str(lines))
    assert (found.status == "correct") == (score == 0)


def test_a_bound_of_ones_own_takes_the_place_of_the_wanted_number() -> None:
    assert judged("a\n" * 100, most=30).score == -30.0
    assert judged("a\n" * 100, most=99).score == -95.0
    assert judged("", most=2).score == -2.0


@pytest.mark.parametrize(
    ("of", "text", "count"),
    [
        ("lines", "one\n\n  \ntwo\n", 2),
        ("lines", "\n" * 99_999, 0),
        ("lines", "\u200b\n\0\n\u2060", 0),
        ("lines", "one\r\ntwo\r\n", 2),
        ("words", "  one  two\nthree \u200b ", 3),
        ("paragraphs", "one\ntwo\n\nthree\n \t\n\n\nfour\n", 3),
        ("paragraphs", "\n\n" * 50_000, 0),
        ("characters", " a b\n\u200bc ", 3),
    ],
)
def test_only_what_can_be_seen_is_counted(of: str, text: str, count: int) -> None:
    assert judged(text, of=of, most=10**6).score == -float(abs(count - 5))
    assert judged(text, of=of, wanted="reference", reference="77").extracted == str(count)


def test_only_what_follows_the_last_mark_counts() -> None:
    text = "<think>one\ntwo\nthree</think>\nfour\nfive"
    assert judged(text, wanted=2, after="</think>").status == "correct"
    assert judged("a</think>b</think>c\nd", wanted=2, after="</think>").status == "correct"
    found = judged("one\ntwo", wanted=2, after="</think>")
    assert (found.status, found.score, found.reason) == ("wrong", -2.0, "no_answer")


@pytest.mark.parametrize("reference", ["five", "5.0", "-5", "0", "٥", "9" * 10, "5 lines"])
def test_a_reference_that_is_no_count_is_our_fault(reference: str) -> None:
    found = judged("line", wanted="reference", reference=reference)
    assert (found.status, found.score, found.reason) == ("unjudged", None, "reference_no_count")


def test_an_answer_that_was_cut_off_is_as_far_off_as_can_be() -> None:
    part = distance.Config(type="distance", wanted=5).build()
    (found,) = part.judge([Answer("", "a\nb\nc\nd\ne", truncated=True)])
    assert (found.status, found.score, found.reason) == ("wrong", -5.0, "truncated")


@given(wanted=st.integers(1, 30), count=st.integers(0, 60), most=st.none() | st.integers(1, 50))
def test_the_score_is_bounded_and_grows_no_better_with_distance(
    wanted: int, count: int, most: int | None
) -> None:
    def score(words: int) -> float:
        found = judged("a " * words, of="words", wanted=wanted, most=most).score
        assert found is not None
        return found

    farther = count + 1 if count >= wanted else max(count - 1, 0)
    assert -(most or wanted) <= score(farther) <= score(count) <= 0
    assert (score(count) == 0) == (count == wanted)
