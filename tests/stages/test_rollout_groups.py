# SPDX-License-Identifier: Apache-2.0
"""Groups of answers to rollouts with advantages: what trains, what does not and why."""

import math
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from stage_candidates import a_candidate
from stage_rows import STEP

from stages import ids
from stages.candidates import Candidate, History, Mix
from stages.errors import VerifierError
from stages.groups import GroupsConfig, mixed_groups, weigh
from stages.ids import Id

POLICIES = [ids.mint("m", "one"), ids.mint("m", "two")]
KEEP = {"baseline": "none", "scale": "none", "equal": "keep"}


def weighed(
    found: list[Candidate],
    seed: int = 0,
    history: str = "accumulate",
    reference: dict[Id, float] | None = None,
    earlier: float | None = None,
    **settings: Any,
) -> Mix:
    config = GroupsConfig(**settings)
    return weigh(found, config, History.parse(history), seed, STEP, reference or {}, earlier)


def answer(slot: int, reward: float, problem: int = 1, **changes: Any) -> Candidate:
    policy = changes.pop("model_id", POLICIES[0])
    status = changes.pop("status", "correct" if reward > 0.5 else "wrong")
    named = ("too_old", "other_sampling", "contaminated", "age")
    flags = {name: changes.pop(name) for name in named
             if name in changes}  # fmt: skip
    text = changes.pop("text", f"{slot}+1;#12")
    found = a_candidate(text, slot, problem, status=status, model_id=policy, **changes)
    return replace(found, score=reward, **flags)


def group(rewards: list[float], problem: int = 1, **changes: Any) -> list[Candidate]:
    return [answer(slot, reward, problem, **changes) for slot, reward in enumerate(rewards)]


def whys(mixed: Mix) -> Counter[str]:
    return Counter(decision.why for decision in mixed.decisions)


def by_slot(found: list[Candidate], mixed: Mix) -> dict[int, tuple[float, float]]:
    """Reward and advantage of each rollout, by slot."""
    slots = {c.trajectory.trajectory_id: c.trajectory.slot for c in found}
    return {
        slots[x.trajectory_id]: (x.reward, x.advantage)  # type: ignore[misc]
        for x in mixed.trajectories
    }


@st.composite
def judged(draw: st.DrawFn) -> list[Candidate]:
    return [
        answer(
            slot,
            draw(st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.0])),
            draw(st.integers(1, 3)),
            source=draw(st.sampled_from(["round", "round", "earlier"])),
            origin="self",
            model_id=draw(st.sampled_from(POLICIES)),
            status=draw(st.sampled_from(["correct", "wrong", "wrong", "unjudged"])),
            finish_reason=draw(st.sampled_from(["stop", "stop", "stop", "length"])),
            too_old=draw(st.integers(0, 9)) == 0,
            other_sampling=draw(st.integers(0, 9)) == 0,
            contaminated=draw(st.integers(0, 9)) == 0,
        )
        for slot in range(draw(st.integers(0, 16)))
    ]


settings = st.builds(
    GroupsConfig,
    baseline=st.sampled_from(["group_mean", "leave_one_out"]),
    scale=st.sampled_from(["group", "batch", "none"]),
    equal=st.just("drop"),
    truncated=st.sampled_from(["mask", "train"]),
    wanted=st.none() | st.integers(1, 3),
)


@given(judged(), settings, st.integers(0, 3))
def test_every_answer_is_decided_once_and_kept_where_it_trains(
    found: list[Candidate], config: GroupsConfig, seed: int
) -> None:
    mixed = weigh(found, config, History.parse("accumulate"), seed, STEP, {}, None)
    assert Counter(d.trajectory_id for d in mixed.decisions) == Counter(
        c.trajectory.trajectory_id for c in found
    )
    kept = {d.trajectory_id for d in mixed.decisions if d.kept}
    assert kept == {link.trajectory_id for link in mixed.trajectories}
    assert {d.why for d in mixed.decisions if d.kept} <= {"kept"}
    assert len({row.training_row_id for row in mixed.rows}) == len(mixed.rows) == len(kept)
    assert mixed.training_set.tokens == sum(row.tokens for row in mixed.rows)
    assert all(math.isfinite(link.advantage or 0.0) for link in mixed.trajectories)


@given(judged(), settings, st.integers(0, 3), st.randoms(use_true_random=False))
def test_the_order_of_the_answers_means_nothing(
    found: list[Candidate], config: GroupsConfig, seed: int, random: Random
) -> None:
    shuffled = random.sample(found, len(found))
    one, other = (
        weigh(each, config, History.parse("accumulate"), seed, STEP, {}, None)
        for each in (found, shuffled)
    )
    assert one.rows == other.rows and one.training_set == other.training_set
    assert one.trajectories == other.trajectories
    assert set(one.decisions) == set(other.decisions)


@given(judged(), settings)
def test_no_answer_trains_that_must_not(found: list[Candidate], config: GroupsConfig) -> None:
    known = {c.trajectory.trajectory_id: c for c in found}
    mixed = weigh(found, config, History.parse("accumulate"), 0, STEP, {}, None)
    for link in mixed.trajectories:
        one = known[link.trajectory_id]
        assert one.status != "unjudged"
        assert not (one.too_old or one.other_sampling or one.contaminated)
        assert one.trajectory.finish_reason == "stop" or config.truncated == "train"


def test_a_group_is_weighed_by_itself_and_both_numbers_are_stored() -> None:
    found = group([1.0, 0.0, 1.0, 0.0])
    mixed = weighed(found)
    assert by_slot(found, mixed) == {0: (1, 1), 1: (0, -1), 2: (1, 1), 3: (0, -1)}
    assert {row.kind for row in mixed.rows} == {"rollout"}
    advantages = {link.training_row_id: link.advantage for link in mixed.trajectories}
    assert {row.training_row_id: row.weight for row in mixed.rows} == advantages


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"baseline": "leave_one_out", "scale": "none"}, [2 / 3, -2 / 3, 2 / 3, -2 / 3]),
        ({"scale": "none"}, [0.5, -0.5, 0.5, -0.5]),
        ({"scale": "batch"}, [1, -1, 1, -1]),
        (KEEP, [1, 0, 1, 0]),
        ({**KEEP, "baseline": "running_mean"}, [0.75, -0.25, 0.75, -0.25]),
    ],
)
def test_baseline_and_scale_are_those_declared(
    settings: dict[str, Any], expected: list[float]
) -> None:
    found = group([1.0, 0.0, 1.0, 0.0])
    said = by_slot(found, weighed(found, earlier=0.25, **settings))
    assert [said[slot][1] for slot in range(4)] == pytest.approx(expected)


def test_a_running_mean_that_has_seen_nothing_begins_with_the_sets_own() -> None:
    found = [*group([1.0, 1.0]), *group([0.0, 1.0], problem=2)]
    said = weighed(found, **{**KEEP, "baseline": "running_mean"})
    assert Counter(x.advantage for x in said.trajectories) == {0.25: 3, -0.75: 1}


def test_one_sided_groups_are_left_out_with_their_reason() -> None:
    found = [
        *group([1.0, 1.0, 1.0]),
        *group([0.0, 0.0], problem=2),
        *group([0.3, 0.3], problem=3),
        *[answer(0, 0.5, 4, status="correct"), answer(1, 0.5, 4, status="wrong")],
        *group([1.0, 0.0], problem=5),
    ]
    mixed = weighed(found)
    assert whys(mixed) == {"all_right": 3, "all_wrong": 4, "equal_rewards": 2, "kept": 2}
    kept = weighed(found, equal="keep")
    assert whys(kept) == {"kept": 11}
    assert Counter(x.advantage for x in kept.trajectories)[0.0] == 9


def test_a_group_is_one_sided_by_all_of_its_answers_not_by_those_that_train() -> None:
    """Two finished answers are right, the third was cut off and is wrong: the group is mixed."""
    found = [*group([1.0, 1.0]), answer(2, 0.0, finish_reason="length")]
    mixed = weighed(found)
    assert whys(mixed) == {"kept": 2, "truncated": 1}
    assert [x.advantage for x in mixed.trajectories] == pytest.approx([math.sqrt(0.5)] * 2)
    trained = weighed(found, truncated="train")
    assert whys(trained) == {"kept": 3}


def test_answers_of_two_policies_are_two_groups() -> None:
    found = [answer(n, float(n % 2), model_id=POLICIES[n // 2]) for n in range(4)]
    found[3] = replace(found[3], score=0.0, status="wrong")
    assert whys(weighed(found)) == {"kept": 2, "all_wrong": 2}


def test_what_may_not_be_weighed_has_its_reason() -> None:
    found = [
        *group([1.0, 0.0]),
        answer(2, 1.0, status="unjudged"),
        answer(3, 1.0, other_sampling=True),
        answer(4, 1.0, too_old=True),
        answer(5, 1.0, source="seed", model_id=None),
        answer(6, 1.0, problem=2),
    ]
    assert whys(weighed(found)) == {
        "kept": 2, "unjudged": 1, "other_sampling": 1, "too_old": 1, "no_policy": 1, "too_few": 1
    }  # fmt: skip


@pytest.mark.parametrize("score", [math.nan, math.inf, None])
def test_a_reward_that_is_no_number_is_refused_by_name(score: float | None) -> None:
    found = group([1.0, 0.0])
    found[1] = replace(found[1], score=score)
    with pytest.raises(VerifierError, match=f"score {score}, which is no reward") as caught:
        weighed(found)
    assert str(found[1].trajectory.trajectory_id) in str(caught.value)


def test_no_more_groups_train_than_are_wanted() -> None:
    found = [c for problem in range(1, 6) for c in group([1.0, 0.0], problem=problem)]
    mixed = weighed(found, wanted=3)
    assert whys(mixed) == {"kept": 6, "over_wanted": 4}
    assert mixed_groups(found, GroupsConfig(wanted=3)) == 5


def test_old_groups_take_no_more_than_their_share() -> None:
    found = [
        c for problem in range(1, 9)
        for c in group([1.0, 0.0], problem=problem, source="round" if problem < 4 else "earlier",
                       origin="self")
    ]  # fmt: skip
    mixed = weighed(found, history="ratio(0.25)")
    assert Counter(row.source for row in mixed.rows) == {"round": 6, "earlier": 2}
    assert whys(mixed) == {"kept": 8, "over_old_share": 8}


def test_equal_answers_are_rows_of_their_own_and_other_advantages_are_other_rows() -> None:
    found = [
        answer(n, 1.0 if n < 2 else 0.0, text="#12" if n < 2 else f"{n};#13") for n in range(4)
    ]
    one, other = weighed(found), weighed(found, scale="none")
    assert len({row.training_row_id for row in one.rows}) == 4
    assert one.training_set.training_set_id != other.training_set.training_set_id


def test_the_kl_in_the_reward_is_that_of_the_sampled_answer() -> None:
    found = [replace(c, trajectory=replace(c.trajectory, logprobs=(-1.0, -2.0)))
             for c in group([1.0, 0.0])]  # fmt: skip
    first, second = (c.trajectory.trajectory_id for c in found)
    mixed = weighed(found, reference={first: -5.0, second: -2.0}, kl=0.1, scale="none")
    said = by_slot(found, mixed)
    assert [said[n][0] for n in range(2)] == pytest.approx([1.0 - 0.2, 0.0 + 0.1])
    silent = [replace(c, trajectory=replace(c.trajectory, logprobs=None)) for c in found]
    with pytest.raises(VerifierError, match="has no log-probabilities of its sampler"):
        weighed(silent, reference={first: -5.0, second: -2.0}, kl=0.1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"baseline": "none"}, "equal is drop and baseline none: a group of equal rewards"),
        ({"tries": 2}, "tries is 2: further problems are tried while fewer groups than wanted"),
        ({"kl": -0.1}, "greater than or equal to 0"),
        ({"baseline": "value_net"}, "group_mean"),
    ],
)
def test_a_config_that_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        GroupsConfig(**given)
    assert message in str(caught.value)
