# SPDX-License-Identifier: Apache-2.0
"""When reference and optimizer are reset, on sequences worked by hand."""

import pytest

from stages.resets import Held, best_of, due


def held(*values: float, every: int = 1, error: float = 0.0) -> list[Held]:
    """Values of round 0, `every`, twice that …"""
    return [Held(place * every, value, error) for place, value in enumerate(values)]


def rounds(rule: str, values: list[Held], until: int) -> list[int]:
    """The rounds that begin with a reset, each decided from what was measured before it."""
    found: list[int] = []
    for number in range(1, until + 1):
        before = [one for one in values if one.round < number]
        if due(rule, number, found[-1] if found else 1, before):
            found.append(number)
    return found


@pytest.mark.parametrize(
    ("rule", "values", "error", "expected"),
    [
        ("never", (0.5, 0.4, 0.3, 0.2, 0.1), 0.0, []),
        ("every(2)", (), 0.0, [3, 5]),
        ("every(1)", (), 0.0, [2, 3, 4, 5, 6]),
        # it rises all the time
        ("on_plateau(2)", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), 0.0, []),
        # best in round 1, nothing new in 2 and 3; then from 0.28 on it rises
        ("on_plateau(2)", (0.1, 0.3, 0.29, 0.28, 0.4, 0.5), 0.0, [4]),
        # it falls from the base on: after the reset the best is that of round 2, not the base's
        ("on_plateau(2)", (0.5, 0.4, 0.3, 0.35, 0.3, 0.3), 0.0, [3, 6]),
        # a rise within the error is none; slow rises add up to one
        ("on_plateau(2)", (0.50, 0.52, 0.54, 0.56, 0.58, 0.60), 0.05, [3, 5]),
        ("on_plateau(3)", (0.50, 0.52, 0.54, 0.56, 0.58, 0.60), 0.05, []),
        ("on_plateau(1)", (0.5, 0.5, 0.5, 0.6, 0.5), 0.0, [2, 3, 5]),
    ],
)
def test_a_run_resets_in_these_rounds(
    rule: str, values: tuple[float, ...], error: float, expected: list[int]
) -> None:
    assert rounds(rule, held(*values, error=error), 6) == expected


def test_rounds_that_are_not_measured_decide_nothing() -> None:
    """Measured every second round: what is known in round 4 was known in round 3."""
    values = held(0.5, 0.4, 0.4, 0.4, every=2)
    # round 2 is two rounds after the best, so is 4 after the first reset, and 6 after the next
    assert rounds("on_plateau(2)", values, 8) == [3, 5, 7]
    assert rounds("on_plateau(3)", values, 8) == [5]
    assert due("on_plateau(2)", 2, 1, []) is None


def test_a_new_best_is_above_the_best_by_more_than_its_own_error() -> None:
    values = [Held(0, 0.5, 0.2), Held(1, 0.55, 0.06), Held(2, 0.57, 0.06), Held(3, 0.6, 0.2)]
    assert best_of(values).round == 2
    found = due("on_plateau(1)", 4, 1, values)
    assert found is not None
    assert (found.best, found.last) == (values[2], values[3])
    assert found.why == ("held-out pass@1 has no new best since round 2 (0.570; 0.600 in round 3)")
