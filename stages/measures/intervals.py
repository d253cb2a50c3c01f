# SPDX-License-Identifier: Apache-2.0
"""95 % intervals for means over questions and for the difference of two models.

In: one number per question (such as its pass@1), in strata (such as lengths) that count alike.
Out: an `Estimate`. The question is the unit: samples of one question are no independent evidence,
and their noise is already in the spread between questions (Miller 2024, arXiv 2411.00640). Nothing
here corrects for looking at many checkpoints.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf, isfinite, sqrt
from statistics import fmean, variance
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

Z = 1.959963984540054  # the normal distribution's 97.5 % point

# A standard error below this is rounding in the inputs, not spread between questions.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over questions with its 95 % interval, in the unit of the questions' values."""

    value: float
    low: float
    high: float
    n: int  # questions


def wilson_interval(c: float, n: float) -> tuple[float, float] | None:
    """The 95 % score interval of a share, c of n, within [0, 1]; None for n = 0.

    Both may be effective counts. Formula: Wilson 1927, doi 10.1080/01621459.1927.10502953.
    Raises ValueError for c outside 0..n and for n that is not finite.
    """
    if not 0 <= c <= n < inf:
        raise ValueError(f"Wilson interval: c is {c}, n is {n}; allowed: 0 <= c <= n, n finite")
    if n == 0:
        return None
    share, z2 = c / n, Z * Z
    centre = (c + z2 / 2) / (n + z2)
    half = Z * sqrt(c * ((n - c) / n) + z2 / 4) / (n + z2)
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def mean_over_problems(strata: Sequence[Sequence[float]]) -> Estimate | None:
    """The unweighted mean of the strata's means; each stratum has one value in [0, 1] a question.

    Empty strata are skipped; None if nothing is left. With D strata of Q_d questions and sample
    variances s_d^2, SE^2 = (1/D^2) sum_d s_d^2 / Q_d. The interval is Wilson's with the effective
    sample size value (1 - value) / SE^2 (Korn & Graubard 1998; Dean & Pagano 2015), or with the
    number of questions where that is undefined: no spread, or a value of 0 or 1. A stratum of one
    question takes value (1 - value) for s^2, the most that a mean in [0, 1] allows.
    Raises ValueError for a value outside [0, 1].
    """
    for value in (value for stratum in strata for value in stratum):
        if not 0 <= value <= 1:
            raise ValueError(f"mean over problems: a question's value is {value}; allowed: 0..1")
    filled = [[float(value) for value in stratum] for stratum in strata if stratum]
    if not filled:
        return None
    n = sum(map(len, filled))
    mean, error = _mean_and_error(filled, lone=lambda value: value * (1 - value))
    defined = error > ROUNDING and 0 < mean < 1
    effective = mean * (1 - mean) / (error * error) if defined else float(n)
    bounds = wilson_interval(mean * effective, effective)
    return None if bounds is None else Estimate(mean, *bounds, n)


def paired_difference(
    a: Sequence[Mapping[Key, float]], b: Sequence[Mapping[Key, float]]
) -> Estimate | None:
    """How much b is above a: the unweighted mean over strata of the mean b - a per question.

    Strata are parallel and map question ids to values; only ids in both count, and `n` says how
    many those are. None if there are none. The interval is value ± 1.96 SE, with SE as in
    `mean_over_problems` from the variance of the differences (paired: Miller 2024);
    it may reach past the values' range, and has no width where all questions differ alike. A
    stratum of one question takes d^2 for s^2: its expectation is the variance plus the squared
    mean, so on average it is too wide, and alone it never excludes 0.
    Raises ValueError if the numbers of strata differ or a difference is not finite.
    """
    if len(a) != len(b):
        raise ValueError(
            f"paired difference: a has {len(a)} strata, b has {len(b)}; pass the same strata in "
            "the same order, empty where a side has no questions"
        )
    strata: list[list[float]] = []
    for before, after in zip(a, b, strict=True):
        shared = [key for key in before if key in after]
        for key in shared:
            if not isfinite(after[key] - before[key]):
                raise ValueError(
                    f"paired difference: question {key} has {before[key]} in a and {after[key]} "
                    "in b; allowed: finite numbers (leave unmeasured questions out)"
                )
        if shared:
            strata.append([float(after[key] - before[key]) for key in shared])
    if not strata:
        return None
    mean, error = _mean_and_error(strata, lone=lambda difference: difference * difference)
    return Estimate(mean, mean - Z * error, mean + Z * error, sum(map(len, strata)))


def _mean_and_error(
    strata: Sequence[Sequence[float]], *, lone: Callable[[float], float]
) -> tuple[float, float]:
    """The mean of the strata's means and its standard error; `lone` is s^2 of a single value."""
    squares = (
        (variance(values) if len(values) > 1 else lone(values[0])) / len(values)
        for values in strata
    )
    return fmean(map(fmean, strata)), sqrt(fsum(squares)) / len(strata)
