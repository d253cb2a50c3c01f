# SPDX-License-Identifier: Apache-2.0
"""The reference model scores what a training set holds, once for every trajectory and prompt."""

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
def score(r: Round, mixed: Done) -> Done:
    """Log-probabilities under the reference, for losses that have one."""
    reference = r.reference
    if reference is None:
        return mixed
    dtype, device = r.run.config.update.updater.precision
    resolved = trained_in(dtype, device)
    key = ids.step_key("score", 1, [mixed.key, reference], resolved)
    return once(r, "score", key, lambda space: _make(r, space, reference, resolved, device))


def _make(r: Round, space: Workspace, reference: Id, dtype: str, device: str) -> Output:
    run = r.run
    with run.store.transaction() as tx:
        (used,) = tx.ask("step_outputs", **r.place, step="mix", kind="training_set")
        rows = tx.rows(TrainingRow, "training_rows", training_set_id=used["id"])
        links = tx.ask("training_trajectories", training_set_id=used["id"])
        known = tx.ask("logprobs_under", training_set_id=used["id"], model_id=reference)
        prompts = tx.rows(Prompt, "prompts_by_id", ids=unique(row.prompt_id for row in rows))
        wanted = unique(link["trajectory_id"] for link in links)
        found = tx.rows(Trajectory, "trajectories_by_id", ids=wanted)
        (model,) = tx.rows(Model, "model_by_id", model_id=reference)
    prompt_of = {row.training_row_id: row.prompt_id for row in rows}
    have = {(row["trajectory_id"], row["prompt_id"]) for row in known}
    missing = [
        pair
        for link in links
        if (pair := (link["trajectory_id"], prompt_of[link["training_row_id"]])) not in have
    ]
    missing = list(dict.fromkeys(missing))
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
    return Output([(Model, [model]), (TrajectoryLogprob, logprobs)], {"reference": [reference]})
