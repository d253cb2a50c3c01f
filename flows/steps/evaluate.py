# SPDX-License-Identifier: Apache-2.0
"""A round's model answers held-out problems and is measured."""

from flows.commit import Done, Output, Workspace, once
from flows.context import Round
from flows.sampling import fill
from flows.steps.base import ask, judge, model_of_round, step, usable_problems, verifier_id
from stages import ids
from stages.evaluate import evaluation_row, gather, held_out, measure
from stages.generate import Draw, plan_slots, sampling_row
from stages.ids import Id
from stages.rows import (
    Evaluation,
    Metric,
    Problem,
    ProblemDecision,
    Prompt,
    PromptSet,
    Sampling,
    Trajectory,
    Verdict,
    VerdictComponent,
    Verifier,
)
from stages.settings import canonical, identity
from stages.verify import final_verdicts, verifier_row


@step
def evaluate(r: Round) -> Done:
    """Measure the round's model, in the rounds that `evaluate.every` names; the round is done."""
    config = r.run.config
    model = model_of_round(r)
    if r.number % config.evaluate.every:
        key = ids.step_key("evaluate", 2, [model, r.number], "unmeasured")
        return once(r, "evaluate", key, lambda space: Output([], {}))
    key = ids.step_key(
        "evaluate",
        2,
        [model, verifier_id(r), r.run.prompts.prompt_set_id, config.seed, r.number],
        canonical([identity(config.evaluate), identity(r.run.began), identity(config.sampler)]),
    )
    return once(r, "evaluate", key, lambda space: _make(r, space, model))


def _make(r: Round, space: Workspace, model: Id) -> Output:
    run, config = r.run, r.run.config.evaluate
    problems = held_out(usable_problems(r, "dev"), config.problems)
    extra = run.task.extra_slices()
    asked = {p.problem_id: p for found in ([problems], extra.values()) for s in found for p in s}
    draw = Draw(model, config.sampling, "eval", config.n, run.config.seed, r.number)
    most = config.sampling.max_tokens
    written = ask(r, space, list(asked.values()), most, hinted=False, turn=0)
    every = list(asked.values())
    for left_out in written.too_long:
        del asked[left_out.problem_id]
    problems = [problem for problem in problems if problem.problem_id in asked]
    answers = fill(r, plan_slots(written.prompts, draw), draw, space, "evaluate")
    verdicts, components = judge(r, answers, list(asked.values()), space, run.verifier)
    final = final_verdicts(verdicts)
    sampling = sampling_row(config.sampling)
    row = evaluation_row(
        model,
        run.task.name,
        problems,
        sampling.sampling_id,
        verifier_id(r),
        config,
        seed=f"{run.config.seed}.{r.number}",
    )
    slices = {
        name: gather([p for p in found if p.problem_id in asked], answers, final, run.verifier)
        for name, found in extra.items()
    }
    metrics = measure(row, gather(problems, answers, final, run.verifier), config.k, slices)
    return Output(
        [
            (Problem, every),
            (PromptSet, [run.prompts]),
            (ProblemDecision, written.too_long),
            (Prompt, written.prompts),
            (Sampling, [sampling]),
            (Trajectory, answers),
            (Verifier, [verifier_row(run.verifier)]),
            (Verdict, verdicts),
            (VerdictComponent, components),
            (Evaluation, [row]),
            (Metric, metrics),
        ],
        {
            "evaluation": [row.evaluation_id],
            "problem": [problem.problem_id for problem in problems],
            "trajectory": [answer.trajectory_id for answer in answers],
            "verdict": [verdict.verdict_id for verdict in verdicts],
        },
        [
            *written.say("evaluate"),
            *(
                ("split_opened", f"{name} measures {count} problems of the test split")
                for name, found in extra.items()
                if (count := sum(problem.split == "test" for problem in found))
            ),
        ],
    )
