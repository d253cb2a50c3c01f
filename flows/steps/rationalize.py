# SPDX-License-Identifier: Apache-2.0
"""Failed problems are tried again with the answer as a hint; what comes is judged and audited."""

from flows.commit import Done, Output, Workspace, once
from flows.context import Round
from flows.sampling import fill
from flows.steps.base import ask, judge, step
from stages import ids
from stages.generate import Draw, plan_slots
from stages.rationalize import audit, failed_problems, hint_parents
from stages.rows import (
    Decision,
    Problem,
    ProblemDecision,
    Prompt,
    Trajectory,
    TrajectoryParent,
    Verdict,
    VerdictComponent,
)
from stages.settings import canonical, identity
from stages.verify import final_verdicts


@step
def rationalize(r: Round, verdicts: Done) -> Done:
    """Sample `rationalize.n` hinted completions for each problem the round failed."""
    config = r.run.config
    key = ids.step_key(
        "rationalize",
        1,
        [verdicts.key, r.start],
        canonical([identity(config.rationalize), identity(config.generate.sampling_of(r.number))]),
    )
    return once(r, "rationalize", key, lambda space: _make(r, space))


def _make(r: Round, space: Workspace) -> Output:
    run, config = r.run, r.run.config
    with run.store.transaction() as tx:
        forward = tx.rows(Trajectory, "step_trajectories", **r.place, step="generate")
        judged = final_verdicts(tx.rows(Verdict, "step_verdicts", **r.place, step="verify"))
        failed = tx.rows(Problem, "problems_by_id", ids=failed_problems(forward, judged))
    draw = Draw(
        model_id=r.start,
        sampling=config.generate.sampling_of(r.number),
        purpose="rationalize",
        n=config.rationalize.n,
        seed=config.seed,
        round=r.number,
        refresh=r.refresh,
    )
    most = config.generate.sampling_of(r.number).max_tokens
    asked = ask(r, space, failed, most, hinted=True, turn=r.number)
    hinted = fill(r, plan_slots(asked.prompts, draw), draw, space, "rationalize", "rationalized")
    verdicts, components = judge(r, hinted, failed, space, run.verifier)
    decisions = audit(
        hinted,
        {problem.problem_id: problem for problem in failed},
        final_verdicts(verdicts),
        run.prompts.hint or "",
        space.key,
    )
    return Output(
        [
            (ProblemDecision, asked.too_long),
            (Prompt, asked.prompts),
            (Trajectory, hinted),
            (TrajectoryParent, hint_parents(hinted, forward, judged)),
            (Verdict, verdicts),
            (VerdictComponent, components),
            (Decision, decisions),
        ],
        {
            "trajectory": [row.trajectory_id for row in hinted],
            "verdict": [row.verdict_id for row in verdicts],
        },
        asked.say("rationalize"),
    )
