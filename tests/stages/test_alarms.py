# SPDX-License-Identifier: Apache-2.0
"""Which alarms hold on a history, and what they say."""

from typing import Any

import pytest
from pydantic import ValidationError

from stages.alarms import DEFAULTS, AlarmConfig, Bounds, Point, Series, fired


def rule(**given: Any) -> AlarmConfig:
    return AlarmConfig.model_validate({"watch": "length", **given})


def history(*values: float, name: str = "length", part: str = "all") -> Series:
    """One refresh a round, from round 1."""
    points = [
        Point(place, 0, value, values[0], max(values[:place]))
        for place, value in enumerate(values, 1)
    ]
    return {(name, part): points}


def holds(one: AlarmConfig, series: Series, round_: int) -> bool:
    return bool(fired([one], series, round_, 0))


@pytest.mark.parametrize(
    ("given", "values", "expected"),
    [
        ({"above": 400.0}, (500, 401), True),
        ({"above": 400.0}, (500, 400), False),
        ({"below": 3.0}, (5, 2.9), True),
        ({"below": 3.0}, (2, 3), False),
        ({"rises_by": 2.0}, (1, 9, 3.1), True),  # from the first, not from the one before
        ({"rises_by": 2.0}, (1, 9, 3), False),
        ({"falls_by": 2.0}, (5, 9, 2.9), True),
        ({"falls_by": 2.0}, (5, 9, 3), False),
        ({"above": 2.0, "rises_by": 0.0}, (1, 3), True),  # both
        ({"above": 2.0, "rises_by": 0.0}, (3, 3), False),
        ({"above": 2.0, "for": 2}, (1, 3, 3), True),
        ({"above": 2.0, "for": 2}, (3, 1, 3), False),
        ({"above": 2.0, "for": 2}, (3,), False),  # not so many yet
        ({"drops_by": 2.0}, (1, 9, 6.9), True),  # from the highest, which is not the first
        ({"drops_by": 2.0}, (1, 9, 7), False),
        ({"above_times": 3.0}, (2, 6.1), True),
        ({"above_times": 3.0}, (2, 6), False),
        ({"below_times": 0.1}, (2, 0.19), True),
        ({"below_times": 0.1}, (2, 0.2), False),
        ({"below_times": 0.1}, (0, -1), False),  # a multiple of nothing says nothing
    ],
)
def test_a_rule_holds(given: Any, values: tuple[float, ...], expected: bool) -> None:
    assert holds(rule(**given), history(*values), len(values)) is expected


def test_a_rule_is_silent_where_its_series_has_no_value_now() -> None:
    assert not holds(rule(above=1.0), history(5.0), 2)
    assert not holds(rule(above=1.0), history(5.0, part="wrong"), 1)
    assert holds(rule(above=1.0, slice="wrong"), history(5.0, part="wrong"), 1)


def test_an_alarm_says_what_is_seen_and_keeps_rule_and_values() -> None:
    one = rule(above=2.0, rises_by=1.0, then="hold", **{"for": 2})
    (alarm,) = fired([one], history(1.0, 3.0, 4.5), 3, 0)
    assert alarm.sentence == (
        "round 3, refresh 0: length is 4.5, above 2, +3.5 from 1 (rises_by 1), 2 refreshes in a row"
    )
    assert alarm.detail == {
        "rule": {
            "watch": "length", "slice": "all", "above": 2.0, "rises_by": 1.0, "for": 2,
            "then": "hold",
        },
        "round": 3,
        "refresh": 0,
        "values": [3.0, 4.5],
        "began": 1.0,
    }  # fmt: skip
    assert AlarmConfig.model_validate(alarm.detail["rule"]) == one


def test_the_rules_that_are_built_in_hear_a_policy_that_goes_wrong() -> None:
    series: Series = {
        ("train/logps/chosen", "all"): [Point(1, 0, -17.0, -10.0, -10.0)],
        **history(0.1, 0.3, name="truncated"),
        **history(0.4, 0.0, name="mixed"),
        **history(0.5, 0.04, name="entropy"),
        **history(100.0, 301.0, name="length"),
        **history(0.5, 0.99, name="reward_at_top"),
        **history(0.0, 0.2, name="reward_gap"),
        **history(0.5, 0.4, name="held_out"),
    }
    last = {**series, ("train/logps/chosen", "all"): [Point(2, 0, -17.0, -10.0, -10.0)]}
    alarms = fired(DEFAULTS, last, 2, 0)
    assert [alarm.rule.watch for alarm in alarms] == [
        "train/logps/chosen", "truncated", "mixed", "entropy", "length", "reward_at_top",
        "reward_gap",
    ]  # fmt: skip
    (explodes,) = fired(DEFAULTS, history(0.5, 1.6, name="entropy"), 2, 0)
    assert explodes.rule.above_times == 3.0
    assert {alarm.rule.then for alarm in alarms} == {"warn"}
    calm: Series = {
        ("train/logps/chosen", "all"): [Point(2, 0, -14.0, -10.0, -10.0)],
        **history(0.3, 0.3, name="truncated"),
        **history(0.4, 0.4, name="mixed"),
        **history(0.5, 0.06, name="entropy"),
        **history(100.0, 299.0, name="length"),
        **history(0.5, 0.97, name="reward_at_top"),
        **history(0.0, 0.2, name="reward_gap"),
        **history(0.5, 0.6, name="held_out"),  # it rises too, but slower
    }
    assert fired(DEFAULTS, calm, 2, 0) == []


def test_a_rule_on_two_series_holds_only_where_both_do_and_says_both() -> None:
    """Training reward up while held-out falls from where it was best."""
    one = AlarmConfig(
        watch="reward_mean", rises_by=0.1,
        also=(Bounds(watch="held_out", drops_by=0.05),), **{"for": 2},
    )  # fmt: skip
    rewards = history(0.5, 0.6, 0.7, 0.8, name="reward_mean")
    held = history(0.5, 0.7, 0.6, 0.6, name="held_out")
    (alarm,) = fired([one], {**rewards, **held}, 4, 0)
    assert alarm.sentence == (
        "round 4, refresh 0: reward_mean is 0.8, +0.3 from 0.5 (rises_by 0.1) and held_out is 0.6, "
        "-0.1 from its highest, 0.7 (drops_by 0.05), 2 refreshes in a row"
    )
    assert alarm.detail["beside"] == [[0.6, 0.6]]
    assert AlarmConfig.model_validate(alarm.detail["rule"]) == one
    assert not holds(one, {**rewards, **history(0.5, 0.7, 0.7, 0.6, name="held_out")}, 4)
    assert not holds(one, {**history(0.5, 0.6, 0.55, 0.8, name="reward_mean"), **held}, 4)
    assert not holds(one, rewards, 4)  # the other is not measured
    assert not holds(one, {**rewards, **history(0.5, 0.7, 0.6, name="held_out")}, 4)  # nor now


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"watch": "lenght", "above": 1.0}, "'lenght' is not watched: use answers, tokens"),
        ({}, "there is no bound: give above, below, rises_by, falls_by, drops_by, above_times or"),
        ({"above": 1.0, "also": [{"watch": "held_out"}]}, "there is no bound: give above"),
        ({"above": 1.0, "also": [{"watch": "heldout", "below": 1.0}]}, "'heldout' is not watched"),
        ({"above_times": 0.0}, "greater than 0"),
        (
            {"slice": "wrong", "watch": "mixed", "above": 1.0},
            "slice is 'wrong', and mixed has: all",
        ),
        ({"slice": "long", "above": 1.0}, "slice is 'long', and length has: all, correct, wrong"),
        ({"above": 1.0, "for": 0}, "greater than or equal to 1"),
        ({"above": 1.0, "then": "shout"}, "'warn', 'hold' or 'stop'"),
    ],
)
def test_a_rule_that_can_never_be_heard_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        rule(**given)


def test_seconds_of_a_step_may_be_watched() -> None:
    assert holds(
        rule(watch="work_s", slice="generate", above=60.0),
        history(61.0, name="work_s", part="generate"),
        1,
    )
