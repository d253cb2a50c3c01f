# SPDX-License-Identifier: Apache-2.0
"""Entropy and KL divergence from log-probabilities of sampled tokens, in nats a token.

Sample estimates: they are unbiased where the tokens were drawn from the policy itself, at
temperature 1 and uncut. Elsewhere they are means over what was sampled.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import expm1, fsum

LARGEST = 700.0  # e to the power of this is a number yet


def entropy(logprobs: Iterable[Sequence[float]]) -> float | None:
    """Mean of −log p over all tokens of all answers; None without a token."""
    tokens = [value for answer in logprobs for value in answer]
    return -fsum(tokens) / len(tokens) if tokens else None


def k1(policy: Sequence[float], reference: Sequence[float]) -> float | None:
    """KL(policy ‖ reference): the mean of log π − log π_ref over tokens sampled from π.

    Unbiased, may be below 0 on few tokens (Schulman 2020, joschu.net/blog/kl-approx.html).
    """
    gaps = _log_ratios(policy, reference)
    return -fsum(gaps) / len(gaps) if gaps else None


def k3(policy: Sequence[float], reference: Sequence[float]) -> float | None:
    """KL(policy ‖ reference): the mean of r − 1 − log r with r = π_ref / π; never below 0.

    As unbiased as `k1`, with less variance where the two are close (same source).
    """
    gaps = _log_ratios(policy, reference)
    return (
        fsum(max(0.0, expm1(min(gap, LARGEST)) - gap) for gap in gaps) / len(gaps) if gaps else None
    )


@dataclass(frozen=True, slots=True)
class Gap:
    """|Δ log-probability| of `tokens` sampled tokens, in nats; 0 where no numbers came."""

    tokens: int
    mean: float
    most: float


def apart(one: Sequence[Sequence[float]], other: Sequence[Sequence[float]]) -> Gap:
    """How far two say that the same tokens of some answers are from each other."""
    gaps = [abs(a - b) for ours, theirs in zip(one, other, strict=True)
            for a, b in zip(ours, theirs, strict=True)]  # fmt: skip
    return Gap(len(gaps), sum(gaps) / len(gaps), max(gaps)) if gaps else Gap(0, 0.0, 0.0)


def _log_ratios(policy: Sequence[float], reference: Sequence[float]) -> list[float]:
    """log r = log π_ref − log π of each token."""
    return [theirs - ours for ours, theirs in zip(policy, reference, strict=True)]
