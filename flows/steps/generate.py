# SPDX-License-Identifier: Apache-2.0
"""The policy that a round begins with answers the round's problems."""

from collections.abc import Sequence

from flows.commit import Done, Output, Workspace, once
from flows.context import Round
from flows.sampling import fill
from flows.steps.base import ask, step, turned, usable_problems
from stages import ids
from stages.generate import Draw, choose_problems, plan_slots, sampling_row
from stages.ids import Id
from stages.rows import Problem, ProblemDecision, Prompt, PromptSet, Sampling, Trajectory
from stages.settings import canonical, identity


@step
def generate(r: Round, turn: int = 0) -> Done:
    """Sample `generate.n` completions for each of the round's problems, or a later turn's."""
    config = r.run.config.generate
    problems = r.share(problems_of(r, turn))
    key = ids.step_key(
        "generate",
        1,
        [
            r.policy,
            r.run.prompts.prompt_set_id,
            ids.hash_ids([problem.problem_id for problem in problems]),
            r.run.config.seed,
            r.number,
            r.refresh,
        ],
        canonical(
            [config.n, identity(config.sampling_of(r.number)), identity(r.run.config.sampler)]
        ),
    )
    name = turned("generate", turn)
    return once(r, name, key, lambda space: _make(r, space, problems, name))


def problems_of(r: Round, turn: int = 0) -> list[Problem]:
    """The round's problems, and in later turns those that come after."""
    config = r.run.config.generate.problems
    rates: dict[Id, float] = {}
    if config.order == "unsolved_first" or config.band is not None:
        with r.run.store.transaction() as tx:
            seen = tx.ask("pass_rates", run_id=r.run.run_id, round=r.number)
        rates = {row["problem_id"]: row["rate"] for row in seen}
    return choose_problems(
        usable_problems(r, "train"),
        config.per_round,
        config.order,
        r.run.config.seed,
        r.number,
        rates,
        config.band,
        turn,
    )


def _make(r: Round, space: Workspace, problems: Sequence[Problem], name: str) -> Output:
    run, config = r.run, r.run.config.generate
    sampling = config.sampling_of(r.number)
    draw = Draw(r.policy, sampling, "train", config.n, run.config.seed, r.number, r.refresh)
    asked = ask(r, space, problems, sampling.max_tokens, hinted=False, turn=r.number)
    rows = fill(r, plan_slots(asked.prompts, draw), draw, space, name)
    return Output(
        [
            (Problem, problems),
            (ProblemDecision, asked.too_long),
            (PromptSet, [run.prompts]),
            (Prompt, asked.prompts),
            (Sampling, [sampling_row(sampling)]),
            (Trajectory, rows),
        ],
        {"trajectory": [row.trajectory_id for row in rows]},
        asked.say(name),
    )
