# SPDX-License-Identifier: Apache-2.0
"""The reference model scores answers, once for every trajectory and prompt.

Those of a training set, for a loss that compares sums; or all of a refresh before they are mixed,
where the KL to the reference is part of the reward.
"""

from flows.candidates import read_candidates
from flows.commit import Done, Output, Workspace, once
from flows.context import Round
from flows.models import check_same_kind
from flows.steps.base import step, unique
from stages import ids
from stages.ids import Id
from stages.policies.dtype import trained_in
from stages.rows import Model, Prompt, TrainingRow, Trajectory, TrajectoryLogprob
from stages.scoring import score_tokens


@step
def score(r: Round, *before: Done) -> Done:
    """Log-probabilities under the reference, where a loss or a reward needs them stored."""
    reference, config = r.reference, r.run.config
    if reference is None or (config.recipe == "grpo" and not config.mix.groups.kl):
        return before[-1]
    dtype, device = r.run.config.update.updater.precision
    resolved = trained_in(dtype, device)
    key = ids.step_key("score", 1, [*(done.key for done in before), reference], resolved)
    return once(r, "score", key, lambda space: _make(r, space, reference, resolved, device))


def _make(r: Round, space: Workspace, reference: Id, dtype: str, device: str) -> Output:
    run = r.run
    missing = _of_group(r, reference) if run.config.recipe == "grpo" else _of_set(r, reference)
    with run.store.transaction() as tx:
        prompts = tx.rows(Prompt, "prompts_by_id", ids=unique(prompt for _, prompt in missing))
        found = tx.rows(Trajectory, "trajectories_by_id", ids=unique(id_ for id_, _ in missing))
    folder = run.checkpoint(reference)
    check_same_kind(run.store, reference, folder, run.base_folder, "update.reference")
    by_prompt = {prompt.prompt_id: prompt for prompt in prompts}
    by_id = {row.trajectory_id: row for row in found}
    tokens = [(by_prompt[prompt].token_ids, by_id[id_].token_ids) for id_, prompt in missing]
    if tokens:
        run.close()
    with run.screen.stage("score", total=len(tokens)) as stage, space.working():
        scored = score_tokens(folder, device, dtype, tokens, stage.advance) if tokens else []
    logprobs = [
        TrajectoryLogprob(id_, prompt, reference, sum(values))
        for (id_, prompt), values in zip(missing, scored, strict=True)
    ]
    return Output(
        [(Model, [run.model(reference)]), (TrajectoryLogprob, logprobs)], {"reference": [reference]}
    )


def _of_set(r: Round, reference: Id) -> list[tuple[Id, Id]]:
    """Trajectories of the training set with the prompts they are trained on, not scored yet."""
    with r.run.store.transaction() as tx:
        (used,) = tx.ask("step_outputs", **r.place, step="mix", kind="training_set")
        rows = tx.rows(TrainingRow, "training_rows", training_set_id=used["id"])
        links = tx.ask("training_trajectories", training_set_id=used["id"])
        known = tx.ask("logprobs_under", training_set_id=used["id"], model_id=reference)
    prompt_of = {row.training_row_id: row.prompt_id for row in rows}
    have = {(row["trajectory_id"], row["prompt_id"]) for row in known}
    asked = [(link["trajectory_id"], prompt_of[link["training_row_id"]]) for link in links]
    return [pair for pair in dict.fromkeys(asked) if pair not in have]


def _of_group(r: Round, reference: Id) -> list[tuple[Id, Id]]:
    """All answers that may be mixed, with the prompts they were sampled from, not scored yet."""
    said = [c.trajectory for c in read_candidates(r).candidates if c.source != "seed"]
    with r.run.store.transaction() as tx:
        wanted = [one.trajectory_id for one in said]
        known = tx.ask("logprobs_of", ids=wanted, model_id=reference)
    have = {row["trajectory_id"] for row in known}
    return [(one.trajectory_id, one.prompt_id) for one in said if one.trajectory_id not in have]
