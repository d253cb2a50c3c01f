# SPDX-License-Identifier: Apache-2.0
"""Advantages: worked by hand, and what holds for whatever the rewards are."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages import advantages as of

HALF = [1.0, 0.0, 1.0, 0.0]
ONE_OF_EIGHT = [1.0, *[0.0] * 7]

rewards = st.floats(-1e6, 1e6, allow_nan=False)
groups = st.lists(rewards, min_size=2, max_size=12)
COMPARING = [of.grpo, of.dr_grpo, of.rloo]


@pytest.mark.parametrize(
    ("advantage", "group", "expected"),
    [
        (of.grpo, HALF, [1, -1, 1, -1]),
        (of.dr_grpo, HALF, [0.5, -0.5, 0.5, -0.5]),
        (of.rloo, HALF, [2 / 3, -2 / 3, 2 / 3, -2 / 3]),
        (of.grpo, ONE_OF_EIGHT, [2.6458, *[-0.3780] * 7]),
        (of.rloo, ONE_OF_EIGHT, [1.0, *[-1 / 7] * 7]),
        (of.dr_grpo, ONE_OF_EIGHT, [7 / 8, *[-1 / 8] * 7]),
    ],
)
def test_advantages_worked_by_hand(advantage, group, expected) -> None:  # type: ignore[no-untyped-def]
    assert advantage(group) == pytest.approx(expected, abs=5e-5)


def test_the_deviation_is_the_populations() -> None:
    assert 1 / of.group_scaled([1.0] * 8, ONE_OF_EIGHT)[0] == pytest.approx(0.3307, abs=5e-5)


@pytest.mark.parametrize("advantage", COMPARING)
@given(group=groups)
def test_advantages_within_a_group_sum_to_zero(advantage, group) -> None:  # type: ignore[no-untyped-def]
    assert math.fsum(advantage(group)) == pytest.approx(0, abs=1e-6 * max(map(abs, group)) + 1e-9)


@pytest.mark.parametrize("advantage", COMPARING)
@given(reward=st.floats(allow_nan=False, allow_infinity=False), size=st.integers(2, 9))
def test_equal_rewards_give_exactly_zero(advantage, reward, size) -> None:  # type: ignore[no-untyped-def]
    assert advantage([reward] * size) == [0.0] * size


def test_rewards_that_rounding_would_part_are_equal() -> None:
    """Three times 0.1 has a mean that is not 0.1, and a deviation above 0."""
    assert of.grpo([0.1, 0.1, 0.1]) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("advantage", COMPARING)
@given(group=groups, random=st.randoms(use_true_random=False))
def test_the_order_of_a_group_means_nothing(advantage, group, random: Random) -> None:  # type: ignore[no-untyped-def]
    places = random.sample(range(len(group)), len(group))
    found, shuffled = advantage(group), advantage([group[place] for place in places])
    assert shuffled == [found[place] for place in places]


@given(st.lists(groups, min_size=1, max_size=5))
def test_nothing_is_divided_by_zero(found: list[list[float]]) -> None:
    centred = [of.dr_grpo(group) for group in found]
    every = [*of.batch_scaled(centred, found), *(of.grpo(group) for group in found)]
    assert all(math.isfinite(value) for group in every for value in group)


@given(groups)
def test_grpo_has_deviation_one_where_rewards_differ(group: list[float]) -> None:
    found = of.grpo(group)
    if not of.all_equal(group) and max(group) - min(group) > 1e-3:
        assert math.fsum(a * a for a in found) / len(found) == pytest.approx(1)


@given(groups)
def test_rloo_is_the_reward_less_the_mean_of_the_others(group: list[float]) -> None:
    expected = [r - (math.fsum(group) - r) / (len(group) - 1) for r in group]
    assert of.rloo(group) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@given(groups, st.floats(0.1, 10), st.floats(-100, 100))
def test_grpo_is_blind_to_scale_and_shift_of_the_rewards(
    group: list[float], scale: float, shift: float
) -> None:
    rounded = [float(round(reward)) for reward in group]
    moved = [scale * reward + shift for reward in rounded]
    if not of.all_equal(rounded):
        assert of.grpo(moved) == pytest.approx(of.grpo(rounded), abs=1e-5)


def test_one_answer_has_no_others() -> None:
    with pytest.raises(ValueError, match="no others to compare"):
        of.rloo([1.0])


def test_a_batch_is_scaled_by_the_deviation_of_all_its_rewards() -> None:
    found = [HALF, [1.0, 1.0]]
    centred = [of.dr_grpo(group) for group in found]
    spread = math.sqrt(2 / 9)  # rewards of 4 in 6 ones: 4/6 · 2/6
    scaled = of.batch_scaled(centred, found)
    assert scaled[0] == pytest.approx([0.5 / spread, -0.5 / spread] * 2)
    assert scaled[1] == [0.0, 0.0]


def test_reinforce_takes_its_baseline_from_elsewhere() -> None:
    assert of.reinforce([1.0, 0.0], 0.25) == [0.75, -0.25]
    assert of.reinforce([1.0, 1.0], 0.0) == [1.0, 1.0]


def test_a_running_mean_forgets_by_its_decay() -> None:
    assert of.running_mean([], 0.9) is None
    assert of.running_mean([0.5], 0.9) == 0.5
    assert of.running_mean([0.5, 1.0], 0.9) == pytest.approx(0.55)
    assert of.running_mean([0.5, 1.0, 0.0], 0.5) == pytest.approx(0.375)


def test_a_reward_is_lowered_by_the_divergence_of_the_whole_answer() -> None:
    assert of.less_kl(1.0, (-1.0, -2.0), -5.0, 0.1) == pytest.approx(1.0 - 0.1 * 2.0)
    assert of.less_kl(1.0, (-1.0, -2.0), -2.0, 0.1) == pytest.approx(1.0 + 0.1 * 1.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("advantage", [*COMPARING, lambda group: of.reinforce(group, 0.0)])
def test_a_reward_that_is_no_finite_number_is_refused(advantage, bad) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=f"a reward is {bad}"):
        advantage([0.0, bad, 1.0])
