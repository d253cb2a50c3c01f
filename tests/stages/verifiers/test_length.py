# SPDX-License-Identifier: Apache-2.0
"""`length`: DAPO's numbers, Kimi's numbers, bounds and order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stages.verifiers import Answer, length
from stages.verifiers.length import among, soft_overlong

COUNTS = st.integers(0, 10**6)


@pytest.mark.parametrize(
    ("tokens", "reward"),
    [
        (0, 0.0),
        (16383, 0.0),
        (16384, 0.0),
        (16385, -1 / 4096),
        (17408, -0.25),
        (20480, -1.0),
        (20481, -1.0),
        (10**9, -1.0),
    ],
)
def test_soft_overlong_is_that_of_dapo(tokens: int, reward: float) -> None:
    part = length.Config(type="length", l_max=20480, l_cache=4096).build()
    for cut in (False, True):
        (found,) = part.judge([Answer("12", "#12", tokens, truncated=cut)])
        assert found.score == soft_overlong(tokens, 20480, 4096) == reward
        assert (found.status, found.reason) == (
            ("wrong", "too_long") if reward < 0 else ("correct", "length_kept")
        )


@given(first=COUNTS, more=COUNTS, l_max=st.integers(2, 10**6), data=st.data())
def test_soft_overlong_lies_between_minus_one_and_0_and_never_rises(
    first: int, more: int, l_max: int, data: st.DataObject
) -> None:
    l_cache = data.draw(st.integers(1, l_max - 1))
    reward = soft_overlong(first, l_max, l_cache)
    assert -1.0 <= soft_overlong(first + more, l_max, l_cache) <= reward <= 0.0
    assert soft_overlong(l_max - l_cache, l_max, l_cache) == 0.0
    assert soft_overlong(l_max, l_max, l_cache) == -1.0


def test_a_group_by_hand_is_that_of_kimi() -> None:
    lengths = [100, 150, 200, 300, 100]
    assert among(lengths, [True] * 5) == [0.5, 0.25, 0.0, -0.5, 0.5]
    assert among(lengths, [False] * 5) == [0.0, 0.0, 0.0, -0.5, 0.0]
    assert among([7, 7, 7], [True, False, True]) == [0.0, 0.0, 0.0]
    assert among([7], [True]) == [0.0]
    assert among([], []) == []


def test_an_answer_of_a_group_is_right_where_it_was_found_right() -> None:
    part = length.Config(type="length", rule="among(3)").build()
    answers = [
        Answer("12", "#12", 10, status="correct"),
        Answer("12", "#13", 10, status="wrong"),
        Answer("12", "#12", 30, status="unjudged"),
    ]
    assert [one.score for one in part.judge(answers)] == [0.5, 0.0, -0.5]
    assert (part.group, part.decides) == (3, False)


GROUPS = st.lists(st.tuples(COUNTS, st.booleans()), min_size=1, max_size=16)


@given(GROUPS, st.randoms())
def test_a_group_has_bounds_favours_the_short_and_does_not_depend_on_order(
    group: list[tuple[int, bool]], random: object
) -> None:
    rewards = among(*zip(*group, strict=True))
    order = list(range(len(group)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert among(*zip(*(group[n] for n in order), strict=True)) == [rewards[n] for n in order]
    for (tokens, right), reward in zip(group, rewards, strict=True):
        assert -0.5 <= reward <= (0.5 if right else 0.0)
        for (other, also), rival in zip(group, rewards, strict=True):
            if tokens <= other and right >= also:
                assert reward >= rival


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "l_max is missing: soft_overlong takes l_max and l_cache in tokens"),
        ({"l_max": 100}, "l_cache is missing"),
        ({"l_max": 100, "l_cache": 100}, "l_cache is 100, l_max is 100: the penalty begins at"),
        ({"l_max": 100, "l_cache": 101}, "l_cache is 101, l_max is 100"),
        ({"rule": "among(8)", "l_max": 100}, "l_max is 100, and among.8. has no such limit"),
        ({"rule": "among(1)"}, "'among.1.' is not allowed: use soft_overlong, or among.n."),
        ({"rule": "short"}, "'short' is not allowed"),
    ],
)
def test_limits_that_do_not_fit_are_refused_with_the_fix(
    settings: dict[str, object], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        length.Config(type="length", **settings)  # type: ignore[arg-type]
