# SPDX-License-Identifier: Apache-2.0
"""Monitors of a refresh, each formula by hand."""

from math import exp, log, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage_rows import a_problem, a_prompt, a_trajectory

from stages.measures.divergence import Gap, apart, entropy, k1, k3
from stages.measures.groups import Sides, equal_share, rewards, sides, top_share
from stages.measures.monitors import (
    NAMES,
    Answer,
    against_held_out,
    between,
    divergences,
    readings,
    weighed,
)
from stages.measures.texts import parts, repetition

# ── texts ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "mark", "found"),
    [
        ("<think>two and two</think>4", None, ("two and two", "4")),
        ("two and two</think>4", None, ("two and two", "4")),  # begun in the prompt
        ("<think>two and", "#", ("two and", "")),  # never ended
        ("<think>a # b</think>c # d", "#", ("a # b", "c # d")),  # the block goes before the mark
        ("1 + 1 = 2; # 2", "#", ("1 + 1 = 2; ", " 2")),
        ("# 3 or # 4", "#", ("# 3 or ", " 4")),  # the last mark counts
        ("no mark", "#", None),
        ("no mark", None, None),
    ],
)
def test_a_text_is_divided_at_its_thinking_or_at_its_last_mark(
    text: str, mark: str | None, found: Any
) -> None:
    assert parts(text, mark) == found


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("a b c", None),  # no four words
        ("a b c d", 0.0),
        ("a a a a a", 1 / 2),  # two grams, the second as the first
        ("a b c d a b c d", 1 / 5),  # abcd bcda cdab dabc abcd
        ("a  b\nc d   a b c d", 1 / 5),
    ],
)
def test_repetition_is_the_share_of_four_words_said_before(text: str, share: float | None) -> None:
    found = repetition(text)
    assert found == (None if share is None else pytest.approx(share))


# ── divergences ─────────────────────────────────────────────────────────────────────────────


def test_entropy_is_the_mean_surprise_of_all_tokens() -> None:
    # two answers of two and one tokens: a mean over tokens, not over answers
    assert entropy([(-1.0, -2.0), (-6.0,)]) == pytest.approx(3.0)
    assert entropy([(), ()]) is None


def test_divergences_by_hand() -> None:
    policy, reference = (log(0.5), log(0.25)), (log(0.25), log(0.5))
    # log π − log π_ref is ln 2 and −ln 2
    assert k1(policy, reference) == pytest.approx(0.0)
    # r is 1/2 and 2: (1/2 − 1 + ln 2 + 2 − 1 − ln 2) / 2
    assert k3(policy, reference) == pytest.approx(0.25)
    assert k1((), ()) is None


@given(st.lists(st.tuples(st.floats(-50, 0), st.floats(-50, 0)), min_size=1))
def test_k3_is_never_below_0_and_both_are_0_for_equal_models(pairs: Any) -> None:
    ours, theirs = zip(*pairs, strict=True)
    assert (k3(ours, theirs) or 0.0) >= 0
    assert (k1(ours, ours), k3(ours, ours)) == (0.0, 0.0)


def test_both_estimators_come_to_the_divergence_of_two_coins() -> None:
    """Weighted by how often each side is drawn, which sampling from the policy does."""
    heads, other = 0.75, 0.5
    policy = [log(heads)] * 3 + [log(1 - heads)]
    reference = [log(other)] * 4
    exact = heads * log(heads / other) + (1 - heads) * log((1 - heads) / (1 - other))
    assert k1(policy, reference) == pytest.approx(exact)
    assert k3(policy, reference) == pytest.approx(exact)


def test_a_token_that_a_policy_never_says_does_not_break_the_mean() -> None:
    assert (k3((-2000.0,), (0.0,)) or 0.0) > exp(600)


# ── groups ──────────────────────────────────────────────────────────────────────────────────


def test_sides_count_groups_of_two_and_more() -> None:
    groups = [[True, True], [False, False, False], [True, False], [False, True], [True], []]
    assert sides(groups) == Sides(all_right=0.25, all_wrong=0.25, mixed=0.5)
    assert sides([[True], [False]]) is None


def test_rewards_by_hand() -> None:
    found = rewards([[1.0, 0.0], [1.0, 1.0], []])
    assert found is not None
    # means 1/2 and 1; variances 1/4 and 0
    assert (found.mean, found.between) == (0.75, 0.25)
    assert found.within == pytest.approx(sqrt(0.125))
    assert rewards([[]]) is None


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1))
def test_the_variance_of_all_rewards_is_that_between_and_within(groups: Any) -> None:
    found = rewards(groups)
    assert found is not None
    every = [reward for group in groups for reward in group]
    mean = sum(every) / len(every)
    whole = sum((reward - mean) ** 2 for reward in every) / len(every)
    assert found.between**2 + found.within**2 == pytest.approx(whole, abs=1e-12)


# ── all of a refresh ────────────────────────────────────────────────────────────────────────


def answer(number: int, slot: int, text: str, status: Any, **changes: Any) -> Answer:
    kept = changes.pop("kept", False)
    score = {"correct": 1.0, "wrong": 0.0}.get(status)
    trajectory = a_trajectory(a_prompt(a_problem(number)), text, slot, **changes)
    return Answer(trajectory, status, score, kept)


ANSWERS = [  # one token a letter, each at −0.5 nats
    answer(1, 0, "abc#1", "correct", kept=True),
    answer(1, 1, "abcdefg#22", "wrong", kept=True),
    answer(2, 0, "a b c d a b c d", "wrong", finish_reason="length"),
    answer(2, 1, "z#", "unjudged"),
]


def test_readings_by_hand() -> None:
    found = {(name, part): value for name, part, value in readings(ANSWERS, "#", plain=True)}
    assert found == pytest.approx(
        {
            ("answers", "all"): 4,
            ("tokens", "all"): 5 + 10 + 15 + 2,
            ("length", "all"): 8,
            ("length", "correct"): 5,
            ("length", "wrong"): 12.5,
            ("reasoning_length", "all"): (3 + 7 + 1) / 3,
            ("reasoning_length", "correct"): 3,
            ("reasoning_length", "wrong"): 7,
            ("answer_length", "all"): (1 + 2 + 0) / 3,
            ("answer_length", "correct"): 1,
            ("answer_length", "wrong"): 2,
            ("entropy", "all"): 0.5,
            ("all_right", "all"): 0,  # of problem 2 one answer alone was judged
            ("all_wrong", "all"): 0,
            ("mixed", "all"): 1,
            ("effective", "all"): 0.5,
            ("reward_mean", "all"): 0.25,
            ("reward_std_between", "all"): 0.25,
            ("reward_std_within", "all"): sqrt(0.125),
            ("equal_rewards", "all"): 0,  # of the one problem with two rewards
            ("reward_at_top", "all"): 1 / 3,  # 1, of 1, 0 and 0
            ("truncated", "all"): 0.25,
            ("repetition", "all"): 0.2,  # the others have no four words
        }
    )
    assert {name for name, _ in found} <= set(NAMES)


def test_an_answer_of_advantage_0_trains_to_no_effect() -> None:
    """Groups of equal rewards that are kept for their share in the batch have no gradient."""
    some = [
        Answer(a.trajectory, a.status, a.score, True, advantage)
        for a, advantage in zip(ANSWERS, (1.0, -1.0, 0.0, None), strict=True)
    ]
    found = {name: value for name, part, value in readings(some, None, plain=False)}
    assert found["effective"] == 0.75


def test_a_reward_that_is_saturated_has_equal_groups_and_is_at_its_top() -> None:
    groups = [[1.0, 1.0], [0.5, 0.5, 0.5], [1.0, 0.0], [1.0], []]
    assert equal_share(groups) == pytest.approx(2 / 3)  # a group of one counts in none
    assert top_share(groups) == pytest.approx(4 / 8)
    assert (equal_share([[1.0]]), top_share([[]])) == (None, None)


def test_the_variance_of_advantages_is_the_populations() -> None:
    # mean 0.5, squared distances 0.25, 2.25, 0.25, 6.25: the sample's would be 3
    assert weighed([1.0, -1.0, 1.0, 3.0]) == [("advantage_variance", "all", 2.0)]
    assert weighed([]) == []


def test_the_training_reward_stands_beside_the_newest_held_out_measure() -> None:
    found = against_held_out([("reward_mean", "all", 0.75), ("length", "all", 4.0)], 0.5)
    assert found == [("held_out", "all", 0.5), ("reward_gap", "all", 0.25)]
    assert against_held_out([], 0.5) == [("held_out", "all", 0.5)]
    assert {name for name, _, _ in found} <= set(NAMES)


def test_sampler_and_trainer_are_as_far_apart_as_their_tokens() -> None:
    sampler, trainer = [(-1.0, -2.0), (-3.0,)], [(-1.25, -2.0), (-2.0,)]
    assert apart(sampler, trainer) == Gap(3, pytest.approx(1.25 / 3), 1.0)
    assert between(sampler, trainer) == [
        ("sampler_gap", "all", pytest.approx(1.25 / 3)),
        ("sampler_gap_max", "all", 1.0),
    ]
    assert between([()], [()]) == []


def test_parts_are_counted_in_tokens_by_their_share_of_the_letters() -> None:
    one = answer(1, 0, "<think>abcde</think>fg", "correct", token_ids=(1, 2, 3, 4))
    found = {name: value for name, part, value in readings([one], None, plain=False)}
    letters = len("<think>abcde</think>fg")
    assert found["reasoning_length"] == pytest.approx(4 * 5 / letters)
    assert found["answer_length"] == pytest.approx(4 * 2 / letters)


def test_what_cannot_be_had_is_left_out() -> None:
    assert readings([], "#", plain=True) == []
    unsaid = [answer(1, 0, "a", "unjudged", logprobs=None)]
    names = {name for name, _, _ in readings(unsaid, None, plain=True)}
    assert names == {"answers", "tokens", "length", "effective", "truncated"}
    scaled = {name for name, _, _ in readings(ANSWERS, "#", plain=False)}
    assert "entropy" not in scaled


def test_divergences_are_named_by_model_and_estimator() -> None:
    found = divergences((-1.0, -2.0), {"base": (-1.0, -2.0), "reference": (-2.0, -2.0)})
    assert found == [
        ("kl_base_k1", "all", 0.0),
        ("kl_base_k3", "all", 0.0),
        ("kl_reference_k1", "all", 0.5),
        ("kl_reference_k3", "all", pytest.approx((exp(-1) - 1 + 1) / 2)),
    ]
    assert {name for name, _, _ in found} <= set(NAMES)
