# SPDX-License-Identifier: Apache-2.0
"""maj@k of one question: the credit that a majority vote of k samples can expect.

In: the samples counted by answer (equivalence classes: two spellings of one answer are one key),
which of the answers are correct, and how many samples gave no answer. Out: the exact mean over
all k-subsets of the samples, in [0, 1]; nothing is drawn. It does not parse or compare answers.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from math import comb


def maj_at_k(
    votes: Mapping[str, int], correct: Collection[str], unparsed: int, k: int
) -> float | None:
    """The expected credit of the most voted answer among k of n samples, drawn without replacement.

    `votes` has the samples of each answer and n = sum(votes) + unparsed; None if n < k. A tie earns
    the share of correct answers among the tied ones, which is what breaking it at random would
    earn; a subset in which nobody votes earns 0. `correct` may name answers that nobody gave.

    A correct answer of c samples leads with j votes in C(c, j) * `_shared_wins` subsets; the sum
    over answers and j, over C(n, k), is self-consistency (Wang et al. 2022, arXiv 2203.11171)
    averaged over subsets as pass@k is. Counts are integers and the result is rounded once.
    Raises ValueError for k < 1 and for a negative count, TypeError for `correct` as one string.
    """
    _check(votes, correct, unparsed, k)
    n = sum(votes.values()) + unparsed
    if n < k:
        return None
    credit = Fraction(0)
    for size, answers in Counter(votes[answer] for answer in set(correct) & set(votes)).items():
        others = list(votes.values())
        others.remove(size)
        for j in range(1, min(size, k) + 1):
            credit += answers * comb(size, j) * _shared_wins(others, unparsed, j, k - j)
    return float(credit / comb(n, k))


def _shared_wins(others: Sequence[int], unparsed: int, j: int, rest: int) -> Fraction:
    """The ways to fill a subset with `rest` more samples so that j votes lead, 1/(t+1) for t ties.

    `others` are the sizes of the other answers. `ways[t, d]` is the coefficient of y^t x^d in the
    product over them of sum_{v<j} C(size, v) x^v + y C(size, j) x^j: d samples drawn, t answers
    level at j. An answer of fewer than j samples cannot catch up, so its factor is (1 + x)^size,
    just as for unparsed samples, and all of these are one binomial.
    """
    harmless = unparsed + sum(size for size in others if size < j)
    ways = {(0, d): comb(harmless, d) for d in range(min(harmless, rest) + 1)}
    for size in (size for size in others if size >= j):
        grown: defaultdict[tuple[int, int], int] = defaultdict(int)
        choices = [comb(size, v) for v in range(j + 1)]
        for (ties, drawn), count in ways.items():
            for v in range(min(j, rest - drawn) + 1):
                grown[ties + (v == j), drawn + v] += count * choices[v]
        ways = grown
    shares = (Fraction(count, t + 1) for (t, drawn), count in ways.items() if drawn == rest)
    return sum(shares, Fraction(0))


def _check(votes: Mapping[str, int], correct: Collection[str], unparsed: int, k: int) -> None:
    if isinstance(correct, str):  # a str is a collection of its letters, so no type checker objects
        raise TypeError(f"maj@k: correct is the string {correct!r}; pass a set of answers")
    if k < 1:
        raise ValueError(f"maj@k: k is {k}; allowed: 1 or more")
    if unparsed < 0:
        raise ValueError(f"maj@k: unparsed is {unparsed}; allowed: 0 or more samples")
    for answer, size in votes.items():
        if size < 0:
            raise ValueError(f"maj@k: votes[{answer!r}] is {size}; allowed: 0 or more samples")
