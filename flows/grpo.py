# SPDX-License-Identifier: Apache-2.0
"""Policy gradients: GRPO and its kin (DeepSeekMath, arXiv 2402.03300, Algorithm 1).

A refresh: the policy gives each problem a group of answers; groups without different rewards are
dropped, and further problems tried in their place (DAPO, arXiv 2503.14476); each answer's advantage
over its group trains the policy in minibatches, with the ratio to what the sampler drew from.
Dr. GRPO, GSPO, RLOO, REINFORCE and ProRL differ by config alone.
"""

from flows import steps
from flows.commit import Done
from flows.context import Round
from flows.refreshes import refreshes
from flows.tries import tries


def grpo(r: Round) -> None:
    """One round of policy gradients."""
    for part in refreshes(r):
        sampled: list[Done] = []
        for turn in tries(part):
            answers = steps.generate(part, turn)
            sampled += [answers, steps.verify(part, answers)]
        scored = steps.score(part, *sampled)
        rollouts = steps.mix(part, *sampled, scored)
        steps.update(part, rollouts, init=part.init)
        steps.watch(part, *sampled, rollouts)
    steps.hand_over(r)
    steps.evaluate(r)
