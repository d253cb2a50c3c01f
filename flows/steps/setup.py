# SPDX-License-Identifier: Apache-2.0
"""Round 0: the base's model row, and the task's worked examples as verified seed rows."""

from pathlib import Path

from flows.commit import Done, Output, Workspace, once
from flows.context import Round, Run
from flows.steps.base import judge, step, training_prompts, verifier_id
from stages import ids
from stages.errors import TaskDataError
from stages.policies import lora
from stages.policies.checkpoint import model_row
from stages.rows import (
    Model,
    Problem,
    Prompt,
    PromptSet,
    Trajectory,
    Verdict,
    VerdictComponent,
    Verifier,
)
from stages.settings import identity_json
from stages.verify import verifier_row


@step
def setup(r: Round) -> Done:
    """Register the base and the seed rows."""
    key = ids.step_key(
        "setup",
        1,
        [r.base, verifier_id(r), r.run.prompts.prompt_set_id],
        identity_json(r.run.began),
    )
    return once(r, "setup", key, lambda space: _make(r, space))


def _make(r: Round, space: Workspace) -> Output:
    run = r.run
    shown = run.task.demonstrations()
    problems = [demonstration.problem for demonstration in shown]
    prompts = training_prompts(r, problems)
    seeds = [
        _seed_trajectory(r, prompt, demonstration.completion, place)
        for place, (prompt, demonstration) in enumerate(zip(prompts, shown, strict=True))
    ]
    verdicts, components = judge(r, seeds, problems, space, run.verifier)
    wrong = [v for v in verdicts if v.status != "correct"]
    if wrong:
        raise TaskDataError(
            f"{len(wrong)} of {len(seeds)} worked examples of task {run.task.name} do not verify "
            f"(the first: extracted {wrong[0].extracted!r}, {wrong[0].reason}): mend the task"
        )
    return Output(
        [
            (Model, _models(run)),
            (Problem, problems),
            (PromptSet, [run.prompts]),
            (Prompt, prompts),
            (Trajectory, seeds),
            (Verifier, [verifier_row(run.verifier)]),
            (Verdict, verdicts),
            (VerdictComponent, components),
        ],
        {
            "model": [r.base],
            "trajectory": [row.trajectory_id for row in seeds],
            "verdict": [row.verdict_id for row in verdicts],
        },
    )


def _models(run: Run) -> list[Model]:
    """The base's row, after that of the model it is an adapter of."""
    policy = run.config.policy
    below = [Path(policy.base).expanduser()] if isinstance(policy, lora.Config) else []
    folders = [*below, run.base_folder]
    return [model_row(folder, "outside", run.store.folder) for folder in folders]


def _seed_trajectory(r: Round, prompt: Prompt, completion: str, place: int) -> Trajectory:
    tokens = r.run.tokenizer(completion, add_special_tokens=False)["input_ids"]
    token_ids = (*tokens, r.run.tokenizer.eos_token_id)
    return Trajectory(
        trajectory_id=ids.outside_trajectory_id(
            f"seed|{r.run.task.name}|{prompt.prompt_id}", place
        ),
        content_id=ids.content_id(prompt.token_ids, token_ids),
        problem_id=prompt.problem_id,
        prompt_id=prompt.prompt_id,
        model_id=None,
        sampling_id=None,
        purpose="seed",
        origin="seed",
        seed=None,
        slot=place,
        completion=completion,
        token_ids=token_ids,
        logprobs=None,
        finish_reason="stop",
        engine=None,
        engine_version=None,
        dtype=None,
        weight_version=None,
    )
