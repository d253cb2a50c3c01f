# SPDX-License-Identifier: Apache-2.0
"""pass@k of one question: the chance that at least one of k samples is correct.

In: how many samples were judged and how many of them are correct. Out: an estimate in [0, 1]. The
mean over questions and its interval are `intervals.mean_over_problems`.
"""

from math import comb


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """1 - C(n-c, k) / C(n, k): unbiased from n samples, c of them correct; None if n < k.

    It is the share of the k-subsets of the n samples that hold a correct one (Chen et al. 2021,
    arXiv 2107.03374, equation 1), counted in integers and rounded once.
    Raises ValueError for k < 1 and for c outside 0..n.
    """
    if k < 1:
        raise ValueError(f"pass@k: k is {k}; allowed: 1 or more")
    if not 0 <= c <= n:
        raise ValueError(f"pass@k: c is {c}; allowed: 0..{n}, the n samples that were judged")
    if n < k:
        return None
    subsets = comb(n, k)
    return (subsets - comb(n - c, k)) / subsets
