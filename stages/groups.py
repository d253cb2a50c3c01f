# SPDX-License-Identifier: Apache-2.0
"""Judged answers to rollouts: the answers to one problem are a group, and each gets an advantage.

A group is what one policy answered to a prompt in one refresh. Whether it is left out for equal
rewards is decided on the whole of it, before any of its answers is, by comparing the verifier's
scores exactly. Answers that may not train (cut off, reciting an evaluation problem) still count in
their group's baseline. The choice is the same for a seed whatever the order candidates come in.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Literal

from pydantic import Field, model_validator

from stages import advantages as of
from stages import ids
from stages.candidates import Candidate, History, Mix, loss_tokens
from stages.errors import VerifierError
from stages.ids import Id
from stages.rows import Decision, TrainingRow, TrainingRowTrajectory, TrainingSet
from stages.settings import Settings, operational

Group = list[Candidate]


class GroupsConfig(Settings):
    """Which groups train, and how an answer is weighed.

    The advantage is the reward less a `baseline`: the group's mean, the mean of the others, a
    running mean of earlier refreshes' rewards (each weighing 1 − `decay` in it), or none; over the
    deviation (`scale`) of the group's rewards, of all the refresh's, or none. `kl` is β of the KL
    to the reference inside the reward. `equal`: groups whose rewards are all equal are dropped, or
    kept for their share in the batch. `truncated`: answers that were cut off are left out (`mask`)
    or train with the reward they got. `wanted` groups train at most; while there are fewer, further
    problems are tried, `tries` times in all (dynamic sampling, arXiv 2503.14476).
    """

    baseline: Literal["group_mean", "leave_one_out", "running_mean", "none"] = "group_mean"
    scale: Literal["group", "batch", "none"] = "group"
    decay: float = Field(0.9, ge=0, lt=1)
    kl: float = Field(0.0, ge=0)
    equal: Literal["drop", "keep"] = "drop"
    truncated: Literal["mask", "train"] = "mask"
    wanted: int | None = Field(None, ge=1)
    tries: int = operational(1, ge=1, le=1000)

    @model_validator(mode="after")
    def _equal_rewards_teach_where_others_are_the_measure(self) -> "GroupsConfig":
        if not self.compares and self.equal == "drop":
            raise ValueError(
                f"equal is drop and baseline {self.baseline}: a group of equal rewards teaches too "
                "where it is not its own measure, use equal: keep"
            )
        if self.tries > 1 and (self.wanted is None or self.equal == "keep"):
            raise ValueError(
                f"tries is {self.tries}: further problems are tried while fewer groups than wanted "
                "have different rewards, give wanted and equal: drop, or tries: 1"
            )
        return self

    @property
    def compares(self) -> bool:
        """Whether an answer is measured by the others of its group."""
        return self.baseline in ("group_mean", "leave_one_out")

    @property
    def least(self) -> int:
        """Answers that a group needs."""
        return 2 if self.compares or self.scale == "group" else 1


def weigh(
    candidates: Sequence[Candidate],
    config: GroupsConfig,
    history: History,
    seed: int,
    step_key: Id,
    reference: Mapping[Id, float],
    earlier: float | None,
) -> Mix:
    """Rollouts with their advantages as a training set, and a decision for every candidate.

    `reference` has an answer's summed log-probability under the reference, by trajectory, where the
    reward holds a KL; `earlier` is the running mean of earlier rewards (None: this set's own mean).
    """
    groups, why = _grouped(candidates, config)
    chosen, left_out = _chosen(groups, config, history, seed)
    why |= left_out
    rewards = [[_reward(one, config.kl, reference) for one in group] for group in chosen]
    weights = _advantages(rewards, config, earlier)
    rollouts = [
        each
        for group, its_rewards, its_weights in zip(chosen, rewards, weights, strict=True)
        for each in zip(group, its_rewards, its_weights, strict=True)
    ]
    why |= {
        one.trajectory.trajectory_id: reason
        for one, _, _ in rollouts
        if (reason := _masked(one, config)) is not None
    }
    kept = [each for each in rollouts if each[0].trajectory.trajectory_id not in why]
    random.Random(f"rows|{seed}").shuffle(kept)
    return _as_mix(kept, candidates, why, step_key)


def mixed_groups(candidates: Sequence[Candidate], config: GroupsConfig) -> int:
    """How many groups of a refresh's own answers may train."""
    groups, _ = _grouped([one for one in candidates if one.source == "round"], config)
    return sum(_one_sided(group, config) is None for group in groups)


def _grouped(
    candidates: Sequence[Candidate], config: GroupsConfig
) -> tuple[list[Group], dict[Id, str]]:
    """The groups in the order of their ids, and why some candidates are in none."""
    found: dict[Id, Group] = defaultdict(list)
    why: dict[Id, str] = {}
    for one in sorted(candidates, key=lambda c: (c.trajectory.slot, c.trajectory.trajectory_id)):
        reason = _unfit(one)
        if reason is not None:
            why[one.trajectory.trajectory_id] = reason
            continue
        said = one.trajectory
        found[said.group_id or ids.mint("g", said.prompt_id, said.model_id)].append(one)
    few = [key for key, group in found.items() if len(group) < config.least]
    for key in few:
        why |= {one.trajectory.trajectory_id: "too_few" for one in found.pop(key)}
    return [found[key] for key in sorted(found)], why


def _unfit(one: Candidate) -> str | None:
    """Why an answer is in no group."""
    if one.trajectory.model_id is None or one.source == "seed":
        return "no_policy"
    if one.prompt.hinted:
        return "hinted_prompt"
    if one.too_old:
        return "too_old"
    if one.other_sampling:
        return "other_sampling"
    if one.status == "unjudged":
        return "unjudged"
    if one.score is None or not isfinite(one.score):
        raise VerifierError(
            f"trajectory {one.trajectory.trajectory_id} was judged {one.status} with score "
            f"{one.score}, which is no reward: a verifier gives a finite number; mend it and start "
            "another --name"
        )
    return None


def _chosen(
    groups: Sequence[Group], config: GroupsConfig, history: History, seed: int
) -> tuple[list[Group], dict[Id, str]]:
    """The groups that train, this refresh's first, and why the answers of the others do not."""
    why: dict[Id, str] = {}
    new: list[Group] = []
    old: list[Group] = []

    def leave_out(group: Group, reason: str) -> None:
        why.update((one.trajectory.trajectory_id, reason) for one in group)

    for group in groups:
        reason = _one_sided(group, config)
        if reason is not None:
            leave_out(group, reason)
        else:
            (old if group[0].source == "earlier" else new).append(group)
    for some in (new, old):
        random.Random(f"groups|{seed}").shuffle(some)
    most = len(new) if config.wanted is None else config.wanted
    for group in new[most:]:
        leave_out(group, "over_wanted")
    new = new[:most]
    room = history.room(len(new))
    for group in [] if room is None else old[room:]:
        leave_out(group, "over_old_share")
    return new + old[:room], why


def _one_sided(group: Group, config: GroupsConfig) -> str | None:
    """Why a group has nothing to tell its answers apart by, None where it may train."""
    if config.equal == "keep" or not of.all_equal([one.score or 0.0 for one in group]):
        return None
    statuses = {one.status for one in group}
    if len(statuses) > 1:
        return "equal_rewards"
    return "all_right" if statuses == {"correct"} else "all_wrong"


def _reward(one: Candidate, beta: float, reference: Mapping[Id, float]) -> float:
    """The verifier's score, less the KL where it is part of the reward."""
    score, said = one.score or 0.0, one.trajectory
    if not beta:
        return score
    if said.logprobs is None:
        raise VerifierError(
            f"trajectory {said.trajectory_id} has no log-probabilities of its sampler, and mix."
            "groups.kl compares them with the reference's: use a sampler that gives them, or kl: 0"
        )
    return of.less_kl(score, said.logprobs, reference[said.trajectory_id], beta)


def _advantages(
    rewards: Sequence[Sequence[float]], config: GroupsConfig, earlier: float | None
) -> list[list[float]]:
    """The advantages of all groups, in their order."""
    if config.baseline == "group_mean":
        found = [of.dr_grpo(group) for group in rewards]
    elif config.baseline == "leave_one_out":
        found = [of.rloo(group) for group in rewards]
    else:
        baseline = 0.0 if config.baseline == "none" else earlier
        if baseline is None:
            every = [reward for group in rewards for reward in group]
            baseline = sum(every) / max(1, len(every))
        found = [of.reinforce(group, baseline) for group in rewards]
    if config.scale == "group":
        return [of.group_scaled(a, group) for a, group in zip(found, rewards, strict=True)]
    return found if config.scale == "none" else of.batch_scaled(found, rewards)


def _masked(one: Candidate, config: GroupsConfig) -> str | None:
    """Why an answer does not train itself though its group does."""
    if one.trajectory.finish_reason == "length" and config.truncated == "mask":
        return "truncated"
    if one.contaminated:
        return "contaminated"
    return None if one.trajectory.token_ids else "empty"


def _as_mix(
    kept: Sequence[tuple[Candidate, float, float]],
    candidates: Sequence[Candidate],
    why: Mapping[Id, str],
    step_key: Id,
) -> Mix:
    copies: Counter[tuple[Id, Id, float]] = Counter()
    row_ids = []
    for one, _, weight in kept:
        content = ids.content_id(one.prompt.token_ids, one.trajectory.token_ids)
        same = (one.prompt.prompt_id, content, weight)
        row_ids.append(ids.training_row_id("rollout", same[0], [content], weight, copies[same]))
        copies[same] += 1
    set_id = ids.training_set_id(row_ids)
    rows = [
        TrainingRow(
            set_id, row_id, place, "rollout", one.prompt.prompt_id, weight, one.source,
            loss_tokens(one), one.age,
        )
        for place, (row_id, (one, _, weight)) in enumerate(zip(row_ids, kept, strict=True))
    ]  # fmt: skip
    links = [
        TrainingRowTrajectory(
            set_id, row_id, one.trajectory.trajectory_id, "completion", reward, weight
        )
        for row_id, (one, reward, weight) in zip(row_ids, kept, strict=True)
    ]
    decisions = [
        Decision(step_key, id_, one.source, id_ not in why, why.get(id_, "kept"))
        for one in candidates
        for id_ in [one.trajectory.trajectory_id]
    ]
    training_set = TrainingSet(set_id, len(rows), sum(row.tokens for row in rows))
    return Mix(training_set, rows, links, decisions)
