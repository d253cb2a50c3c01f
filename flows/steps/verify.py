# SPDX-License-Identifier: Apache-2.0
"""A round's answers are judged and rewarded; a round with too many unjudged ones is held."""

from flows.commit import Done, Output, Workspace, once
from flows.context import Round
from flows.steps.base import judge, step, unique
from stages import ids
from stages.rows import Problem, Trajectory, Verdict, VerdictComponent, Verifier
from stages.verify import verifier_row


@step
def verify(r: Round, answers: Done) -> Done:
    """Judge what `generate` made."""
    row = verifier_row(r.run.rewarded)
    key = ids.step_key("verify", 1, [answers.key, row.verifier_id], "")
    name = answers.step.replace("generate", "verify")
    return once(r, name, key, lambda space: _make(r, space, answers.step))


def _make(r: Round, space: Workspace, sampled: str) -> Output:
    with r.run.store.transaction() as tx:
        answers = tx.rows(Trajectory, "step_trajectories", **r.place, step=sampled)
        asked = unique(answer.problem_id for answer in answers)
        problems = tx.rows(Problem, "problems_by_id", ids=asked)
    verdicts, components = judge(r, answers, problems, space, r.run.rewarded)
    return Output(
        [
            (Verifier, [verifier_row(r.run.rewarded)]),
            (Verdict, verdicts),
            (VerdictComponent, components),
        ],
        {"verdict": [row.verdict_id for row in verdicts]},
    )
