# SPDX-License-Identifier: Apache-2.0
"""The scalar macros give the numbers of stages.measures, and those worked by hand."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.measures import pass_at_k, wilson_interval

N_AND_C = st.integers(0, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


def value(schema: duckdb.DuckDBPyConnection, sql: str, *values: float) -> float | None:
    found = schema.execute(f"select {sql}", values).fetchone()
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (4, 1, 2, 0.5),  # 1 - C(3,2)/C(4,2) = 1 - 3/6
        (10, 3, 5, 11 / 12),  # 1 - C(7,5)/C(10,5) = 1 - 21/252
        (5, 0, 3, 0.0),
        (5, 3, 3, 1.0),  # two wrong samples fill no subset of three
        (3, 3, 4, None),  # fewer samples than k
        (0, 0, 1, None),
    ],
)
def test_pass_at_k_by_hand(
    schema: duckdb.DuckDBPyConnection, n: int, c: int, k: int, expected: float | None
) -> None:
    assert value(schema, "pass_at_k(?, ?, ?)", n, c, k) == (
        None if expected is None else pytest.approx(expected, abs=1e-12)
    )


@given(counts=N_AND_C, k=st.integers(1, 310))
def test_pass_at_k_is_that_of_the_measures(
    schema: duckdb.DuckDBPyConnection, counts: tuple[int, int], k: int
) -> None:
    n, c = counts
    expected = pass_at_k(n, c, k)
    found = value(schema, "pass_at_k(?, ?, ?)", n, c, k)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))


def test_wilson_interval_by_hand(schema: duckdb.DuckDBPyConnection) -> None:
    # c = 8, n = 10, z² = 3.8415: (8 + 1.9207 ∓ 1.95996 √(8·2/10 + 0.9604)) / 13.8415
    assert value(schema, "wilson_low(8, 10)") == pytest.approx(0.49016, abs=5e-6)
    assert value(schema, "wilson_high(8, 10)") == pytest.approx(0.94332, abs=5e-6)
    assert value(schema, "wilson_low(0, 0)") is None
    assert value(schema, "wilson_high(0, 0)") is None


@given(counts=N_AND_C)
def test_wilson_interval_is_that_of_the_measures(
    schema: duckdb.DuckDBPyConnection, counts: tuple[int, int]
) -> None:
    n, c = counts
    found = [value(schema, f"wilson_{end}(?, ?)", c, n) for end in ("low", "high")]
    expected = wilson_interval(c, n)
    assert found == ([None, None] if expected is None else pytest.approx(expected, abs=1e-12))
