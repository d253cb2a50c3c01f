# SPDX-License-Identifier: Apache-2.0
"""Rejection sampling (RFT, Yuan et al. 2023, arXiv 2308.01825; ReST-EM, arXiv 2312.06585).

A round: the policy answers each problem n times; distinct right answers, at most so many for a
problem, train the base model afresh. Failures are kept in the store and teach nothing here.
"""

from flows import steps
from flows.context import Round


def rejection(r: Round) -> None:
    """One round of rejection sampling."""
    answers = steps.generate(r)
    verdicts = steps.verify(r, answers)
    training_set = steps.mix(r, answers, verdicts)
    steps.update(r, training_set, init=r.init)
    steps.watch(r, answers, verdicts, training_set)
    steps.hand_over(r)
    steps.evaluate(r)
