# SPDX-License-Identifier: Apache-2.0
"""Intervals against hand-worked numbers, and what any interval over questions has to keep."""

from dataclasses import astuple
from math import nan, sqrt

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stages.measures import Estimate, mean_over_problems, paired_difference, wilson_interval
from stages.measures.intervals import Z

shares = st.integers(0, 8).map(lambda c: c / 8)  # c of 8 samples of a question are correct
strata_lists = st.lists(st.lists(shares, max_size=8), min_size=1, max_size=4)
evaluations = st.lists(st.dictionaries(st.integers(0, 9), shares), min_size=1, max_size=3)


def width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


@pytest.mark.parametrize(
    ("c", "n", "low", "high"),
    [
        (0, 30, 0.0, 0.1135),  # z²/(n + z²) = 3.8415/33.8415
        (30, 30, 0.8865, 1.0),  # n/(n + z²) = 30/33.8415
        (5, 10, 0.2366, 0.7634),  # 1/2 ± z/(2 √(n + z²)) = 1/2 ± 1.95996/(2 · 3.72041)
        (0.5, 1, 0.0546, 0.9454),  # effective: 1/2 ± 1.95996/(2 · 2.20034)
    ],
)
def test_wilson_by_hand(c: float, n: float, low: float, high: float) -> None:
    assert wilson_interval(c, n) == pytest.approx((low, high), abs=5e-5)


def test_wilson_of_nothing() -> None:
    assert wilson_interval(0, 0) is None


@pytest.mark.parametrize(("c", "n"), [(-1, 3), (4, 3), (0, -1), (nan, 3), (1, float("inf"))])
def test_wilson_refuses_what_cannot_be(c: float, n: float) -> None:
    with pytest.raises(ValueError, match=f"c is {c}, n is {n}; allowed: 0 <= c <= n"):
        wilson_interval(c, n)


@given(st.floats(0, 1), st.floats(0.1, 1e12))
def test_wilson_holds_the_share(share: float, n: float) -> None:
    bounds = wilson_interval(share * n, n)
    mirrored = wilson_interval(n - share * n, n)
    assert bounds is not None and mirrored is not None
    assert 0 <= bounds[0] <= share * n / n <= bounds[1] <= 1
    assert mirrored == pytest.approx((1 - bounds[1], 1 - bounds[0]), abs=1e-9)


def test_mean_of_strata_by_hand() -> None:
    # means 1/2 and 1/4, value 3/8; s² = 1/2 and 1/8; SE² = (1/4)(1/4 + 1/16) = 5/64
    # n_eff = (3/8)(5/8) / (5/64) = 3; centre (1.125 + z²/2)/(3 + z²) = 3.04573/6.84146 = .44519
    # half = z √(1.125 · .625 + z²/4)/(3 + z²) = 1.95996 · √1.66349/6.84146 = .36950
    estimate = mean_over_problems([[0.0, 1.0], [0.5, 0.0]])
    assert estimate is not None
    assert astuple(estimate) == pytest.approx((0.375, 0.07569, 0.81469, 4), abs=1e-5)


def test_strata_count_alike_whatever_their_size() -> None:
    estimate = mean_over_problems([[1.0, 0.0], [], [0.25] * 10])
    assert estimate is not None
    assert (estimate.value, estimate.n) == (0.375, 12)  # (1/2 + 1/4) / 2


@pytest.mark.parametrize(
    ("strata", "c", "n"),
    [
        ([[0.0] * 30], 0, 30),  # value 0: the number of questions
        ([[1.0] * 10, [1.0] * 20], 30, 30),  # value 1
        ([[0.1] * 3, [0.1] * 7], 1, 10),  # no spread
        ([[0.3, 0.1 + 0.2]], 0.6, 2),  # no spread but rounding
        ([[0.25]], 0.25, 1),  # one question: s² = value (1 - value), n_eff = 1
        ([[1.0, 1.0, 0.0, 0.0, 0.0]], 1.6, 4),  # s² = p(1-p) Q/(Q-1): n_eff = Q - 1
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 4 / 3, 4),  # and adds up over like strata
    ],
)
def test_mean_interval_is_wilson(strata: list[list[float]], c: float, n: float) -> None:
    estimate = mean_over_problems(strata)
    assert estimate is not None
    assert (estimate.low, estimate.high) == pytest.approx(wilson_interval(c, n), abs=1e-12)


def test_mean_of_many_single_samples_is_nearly_wilson() -> None:
    estimate = mean_over_problems([[1.0] * 300 + [0.0] * 700])
    assert estimate is not None
    assert (estimate.low, estimate.high) == pytest.approx(wilson_interval(300, 1000), abs=1e-4)


def test_mean_of_nothing() -> None:
    assert mean_over_problems([]) is None
    assert mean_over_problems([[], []]) is None


@pytest.mark.parametrize("value", [-0.1, 1.5, nan])
def test_mean_refuses_values_that_are_no_share(value: float) -> None:
    with pytest.raises(ValueError, match=rf"value is {value}; allowed: 0\.\.1"):
        mean_over_problems([[0.5], [value]])


@given(st.lists(st.lists(st.floats(0, 1), max_size=8), max_size=4))
def test_mean_interval_holds_the_value(strata: list[list[float]]) -> None:
    estimate = mean_over_problems(strata)
    if estimate is None:
        assert not any(strata)
    else:
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


@given(strata_lists)
def test_mean_ignores_order(strata: list[list[float]]) -> None:
    turned = [stratum[::-1] for stratum in reversed(strata)]
    assert mean_over_problems(turned) == mean_over_problems(strata)


@given(strata_lists)
def test_twice_the_questions_narrow_the_mean(strata: list[list[float]]) -> None:
    assume(any(len(set(stratum)) > 1 for stratum in strata))
    once = mean_over_problems(strata)
    twice = mean_over_problems([stratum * 2 for stratum in strata])
    assert once is not None and twice is not None
    assert twice.value == once.value and twice.n == 2 * once.n
    assert width(twice) < width(once)


def test_difference_by_hand() -> None:
    # shared ids 1, 2, 3: d = 1, 0, 1/2: mean 1/2, s² = (1/4 + 0 + 1/4)/2 = 1/4, SE = √(1/12)
    a = [{1: 0.0, 2: 0.5, 3: 0.5, 4: 1.0}]
    b = [{3: 1.0, 2: 0.5, 1: 1.0, 5: 0.0}]
    estimate, half = paired_difference(a, b), Z * sqrt(1 / 12)
    assert estimate is not None
    assert astuple(estimate) == pytest.approx((0.5, 0.5 - half, 0.5 + half, 3))


def test_difference_of_strata_by_hand() -> None:
    # d = 1, 0 | 1/2: means 1/2 and 1/2; s² = 1/2 and, for one question, d² = 1/4
    # SE² = (1/4)((1/2)/2 + 1/4) = 1/8; the stratum without shared questions does not count
    a = [{"x": 0.0, "y": 1.0}, {"x": 0.25}, {"x": 1.0}]
    b = [{"x": 1.0, "y": 1.0}, {"x": 0.75}, {"y": 1.0}]
    estimate, half = paired_difference(a, b), Z * sqrt(1 / 8)
    assert estimate is not None
    assert astuple(estimate) == pytest.approx((0.5, 0.5 - half, 0.5 + half, 3))


@pytest.mark.parametrize("sign", [1, -1])
def test_one_question_alone_decides_nothing(sign: int) -> None:
    estimate = paired_difference([{1: 0.5}], [{1: 0.5 + sign * 0.5}])
    assert estimate is not None
    assert estimate.low < 0 < estimate.high


def test_difference_of_nothing() -> None:
    assert paired_difference([], []) is None
    assert paired_difference([{1: 0.5}], [{2: 0.5}]) is None


def test_difference_refuses_what_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="a has 1 strata, b has 2"):
        paired_difference([{}], [{}, {}])
    with pytest.raises(ValueError, match=r"question 7 has 0\.5 in a and nan in b"):
        paired_difference([{7: 0.5}], [{7: nan}])


@given(evaluations, st.data())
def test_difference_turns_with_its_sides(a: list[dict[int, float]], data: st.DataObject) -> None:
    b = [data.draw(st.dictionaries(st.integers(0, 9), shares)) for _ in a]
    there, back = paired_difference(a, b), paired_difference(b, a)
    if there is None or back is None:
        assert there is back is None
    else:
        assert there.low <= there.value <= there.high
        assert astuple(back) == (-there.value, -there.high, -there.low, there.n)


@given(evaluations)
def test_difference_to_itself_is_zero(a: list[dict[int, float]]) -> None:
    estimate = paired_difference(a, a)
    assert estimate is None or astuple(estimate)[:3] == (0, 0, 0)


@given(evaluations, st.data())
def test_difference_ignores_order(a: list[dict[int, float]], data: st.DataObject) -> None:
    b = [{key: data.draw(shares) for key in stratum} for stratum in a]
    turned_a = [dict(reversed(stratum.items())) for stratum in reversed(a)]
    assert paired_difference(turned_a, b[::-1]) == paired_difference(a, b)


@given(evaluations, st.data())
def test_twice_the_questions_narrow_the_difference(
    a: list[dict[int, float]], data: st.DataObject
) -> None:
    b = [{key: data.draw(shares) for key in stratum} for stratum in a]
    once = paired_difference(a, b)
    assume(once is not None and width(once) > 0)
    twice = paired_difference(*([doubled(stratum) for stratum in side] for side in (a, b)))
    assert once is not None and twice is not None
    assert twice.value == once.value and twice.n == 2 * once.n
    assert width(twice) < width(once)


def doubled(stratum: dict[int, float]) -> dict[int, float]:
    return stratum | {key + 100: value for key, value in stratum.items()}
