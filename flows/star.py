# SPDX-License-Identifier: Apache-2.0
"""STaR, the self-taught reasoner (Zelikman et al. 2022, arXiv 2203.14465, Algorithm 1).

A round: the policy answers the round's problems; those it fails it answers again with the answer
as a hint; the right answers of both, hints removed, train the base model afresh.
"""

from flows import steps
from flows.context import Round


def star(r: Round) -> None:
    """One round of STaR."""
    answers = steps.generate(r)
    verdicts = steps.verify(r, answers)
    sources = [answers, verdicts]
    if r.run.config.rationalize.enabled:
        sources.append(steps.rationalize(r, verdicts))
    training_set = steps.mix(r, *sources)
    steps.update(r, training_set, init=r.init)
    steps.watch(r, answers, verdicts, training_set)
    steps.hand_over(r)
    steps.evaluate(r)
