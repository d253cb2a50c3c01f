# SPDX-License-Identifier: Apache-2.0
"""Advantages of rollouts: how much better each answer to a problem is than a baseline.

A group is the rewards of the answers to one problem, in any order; advantages come in that order.
Standard deviations are those of the population (ddof 0): rewards 1, 0, 1, 0 give ±1 under `grpo`,
where the sample's would give ±0.866. Equal rewards give 0, told by comparing them and never by a
deviation that rounding left. All raise ValueError for a reward that is no finite number.

| function | advantage |
|---|---|
| grpo | (r − mean) / std of the group (DeepSeekMath, arXiv 2402.03300, 4.1.2) |
| dr_grpo | r − mean of the group (arXiv 2503.20783) |
| rloo | r − mean of the others = G/(G − 1) (r − mean) (arXiv 2402.14740) |
| reinforce | r − a baseline that the group has no part in (Williams 1992) |
| batch_scaled | the advantages over the std of all rewards of the batch (arXiv 2508.08221) |
"""

from collections.abc import Sequence
from math import isfinite
from statistics import fmean, pstdev

Group = Sequence[float]


def grpo(rewards: Group) -> list[float]:
    """Rewards centred on their group's mean and scaled by its deviation."""
    return _over(dr_grpo(rewards), _deviation(rewards))


def dr_grpo(rewards: Group) -> list[float]:
    """Rewards centred on their group's mean."""
    if all_equal(rewards):
        return [0.0] * len(rewards)
    mean = fmean(rewards)
    return [reward - mean for reward in rewards]


def rloo(rewards: Group) -> list[float]:
    """Each reward over the mean of the others; ValueError for a group of one."""
    count = len(rewards)
    if count == 1:
        raise ValueError("a group of one answer has no others to compare it with")
    return [count / (count - 1) * value for value in dr_grpo(rewards)]


def reinforce(rewards: Group, baseline: float) -> list[float]:
    """Rewards over a baseline: 0, or the mean reward of earlier answers."""
    _check(rewards)
    return [reward - baseline for reward in rewards]


def group_scaled(advantages: Group, rewards: Group) -> list[float]:
    """A group's advantages over the deviation of its rewards."""
    return _over(advantages, _deviation(rewards))


def batch_scaled(advantages: Sequence[Group], rewards: Sequence[Group]) -> list[list[float]]:
    """The advantages of all groups over the deviation of all their rewards."""
    spread = _deviation([reward for group in rewards for reward in group])
    return [_over(group, spread) for group in advantages]


def running_mean(means: Sequence[float], decay: float) -> float | None:
    """An average of mean rewards, oldest first, the newest weighing 1 − decay; None without one."""
    found: float | None = None
    for mean in means:
        found = mean if found is None else decay * found + (1 - decay) * mean
    return found


def less_kl(reward: float, policy: Group, reference: float, beta: float) -> float:
    """A reward less β times log π_old − log π_ref of the whole answer (k1, arXiv 2402.14740).

    `policy` are the sampler's log-probabilities of its tokens, `reference` is their sum under the
    reference. No gradient goes through it.
    """
    return reward - beta * (sum(policy) - reference)


def all_equal(rewards: Group) -> bool:
    """Whether no reward differs from another, compared exactly."""
    _check(rewards)
    return len(set(rewards)) <= 1


def _deviation(rewards: Group) -> float:
    return 0.0 if all_equal(rewards) else pstdev(rewards)


def _over(values: Group, spread: float) -> list[float]:
    """Values over a spread; all 0 where there is none, and nothing to tell answers apart by."""
    return [value / spread if spread else 0.0 for value in values]


def _check(rewards: Group) -> None:
    for reward in rewards:
        if not isfinite(reward):
            raise ValueError(f"a reward is {reward}, and only finite numbers can be compared")
