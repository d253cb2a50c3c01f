# SPDX-License-Identifier: Apache-2.0
"""pass@k against hand-worked numbers, against all subsets, and its order in c and k."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.measures import pass_at_k


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (4, 1, 2, 0.5),  # 1 - C(3,2)/C(4,2) = 1 - 3/6
        (10, 3, 5, 0.916667),  # 1 - C(7,5)/C(10,5) = 1 - 21/252
        (8, 2, 4, 0.785714),  # 1 - C(6,4)/C(8,4) = 1 - 15/70; the plug-in says 1 - .75^4 = .684
        (200, 5, 100, 0.970308),  # 1 - (100·99·98·97·96)/(200·199·198·197·196)
        (5, 0, 3, 0.0),  # no subset holds a correct sample
        (5, 3, 3, 1.0),  # n - c = 2 < 3: every subset holds one
        (5, 5, 5, 1.0),
    ],
)
def test_hand_worked(n: int, c: int, k: int, expected: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(expected, abs=5e-7)


def test_too_few_samples_is_not_a_number() -> None:
    assert pass_at_k(3, 3, 4) is None
    assert pass_at_k(0, 0, 1) is None


@pytest.mark.parametrize(
    ("n", "c", "k", "message"),
    [
        (4, 5, 2, r"c is 5; allowed: 0\.\.4"),
        (4, -1, 2, r"c is -1; allowed: 0\.\.4"),
        (2, 3, 4, r"c is 3; allowed: 0\.\.2"),
        (4, 1, 0, "k is 0; allowed: 1 or more"),
    ],
)
def test_refuses_what_cannot_be(n: int, c: int, k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pass_at_k(n, c, k)


def test_equals_all_subsets() -> None:
    for n in range(1, 9):
        for c in range(n + 1):
            for k in range(1, n + 1):
                hits = [any(i < c for i in subset) for subset in combinations(range(n), k)]
                assert pass_at_k(n, c, k) == sum(hits) / len(hits)


@given(st.integers(2, 300), st.data())
def test_grows_with_c_and_with_k(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n - 1))
    k = data.draw(st.integers(1, n - 1))
    here, more_c, more_k = pass_at_k(n, c, k), pass_at_k(n, c + 1, k), pass_at_k(n, c, k + 1)
    assert here is not None and more_c is not None and more_k is not None
    assert 0 <= here <= min(more_c, more_k) <= 1


@given(st.integers(1, 300), st.data())
def test_at_one_is_the_mean(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    assert pass_at_k(n, c, 1) == c / n
