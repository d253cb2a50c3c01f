# SPDX-License-Identifier: Apache-2.0
"""How the answers to one problem differ: right and wrong ones, and the spread of rewards.

A group is the judged answers to one problem.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, pstdev, pvariance


@dataclass(frozen=True, slots=True)
class Sides:
    """Shares of the groups of two or more answers: all right, all wrong, some of both."""

    all_right: float
    all_wrong: float
    mixed: float


def sides(groups: Collection[Sequence[bool]]) -> Sides | None:
    """The shares; `True` is a right answer. None without a group of two or more."""
    counted = [group for group in groups if len(group) > 1]
    if not counted:
        return None
    right = sum(all(group) for group in counted) / len(counted)
    wrong = sum(not any(group) for group in counted) / len(counted)
    mixed = sum(any(group) and not all(group) for group in counted) / len(counted)
    return Sides(right, wrong, mixed)


@dataclass(frozen=True, slots=True)
class Rewards:
    """The mean over problems of their mean reward, and two standard deviations.

    `between` is that of the problems' means, `within` the root of the mean variance inside a
    problem; with groups of one size, between² + within² is the variance of all rewards.
    """

    mean: float
    between: float
    within: float


def rewards(groups: Collection[Sequence[float]]) -> Rewards | None:
    """Mean and spread of rewards by problem; None without a reward."""
    counted = [group for group in groups if group]
    if not counted:
        return None
    means = [fmean(group) for group in counted]
    within = sqrt(fmean(pvariance(group) for group in counted))
    return Rewards(fmean(means), pstdev(means), within)


def equal_share(groups: Collection[Sequence[float]]) -> float | None:
    """Share of the groups of two or more whose rewards are all equal: nothing to learn from."""
    counted = [group for group in groups if len(group) > 1]
    return fmean(len(set(group)) == 1 for group in counted) if counted else None


def top_share(groups: Collection[Sequence[float]]) -> float | None:
    """Share of the answers that have the highest reward of all, None without a reward."""
    every = [reward for group in groups for reward in group]
    return every.count(max(every)) / len(every) if every else None
