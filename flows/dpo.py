# SPDX-License-Identifier: Apache-2.0
"""Iterative DPO: offline, semi-online or online, by how often the policy is refreshed.

Rafailov et al. 2023 (arXiv 2305.18290); semi-online: arXiv 2506.21495; iterative RPO: arXiv
2404.19733. A refresh: the policy answers its share of the round's problems; right and wrong
answers to a problem are paired; the pairs train it for some steps against the reference.
"""

from flows import steps
from flows.context import Round
from flows.refreshes import refreshes


def dpo(r: Round) -> None:
    """One round of iterative DPO."""
    for part in refreshes(r):
        answers = steps.generate(part)
        verdicts = steps.verify(part, answers)
        pairs = steps.mix(part, answers, verdicts)
        scored = steps.score(part, pairs)
        steps.update(part, scored, init=part.init)
        steps.watch(part, answers, verdicts, pairs)
    steps.hand_over(r)
    steps.evaluate(r)
