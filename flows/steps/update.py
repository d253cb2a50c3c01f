# SPDX-License-Identifier: Apache-2.0
"""The updater trains on a round's training set; the checkpoint gets its model row."""

import shutil
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from flows.commit import Done, Output, Workspace, once
from flows.context import Round
from flows.steps.base import step, unique
from stages import ids
from stages.ids import Id
from stages.policies.checkpoint import is_complete, model_row
from stages.rows import (
    Model,
    ModelParent,
    Prompt,
    TrainingRow,
    TrainingSet,
    TrainingUpdate,
    TrainingVisit,
    Trajectory,
)
from stages.settings import identity_json
from stages.update import items_of, model_parents, update_rows
from stages.update import update as train
from stages.updaters import Item, Plan


@step
def update(r: Round, mixed: Done, init: Id) -> Done:
    """Train from `init` on what `mix` chose."""
    steps = _planned_steps(r)
    key = ids.step_key(
        "update",
        1,
        [mixed.key, init, steps, _seed(r)],
        identity_json(r.run.config.update.updater),
    )
    return once(r, "update", key, lambda space: _make(r, space, init, steps), _has_checkpoint)


def _planned_steps(r: Round) -> int:
    config = r.run.config.update
    with r.run.store.transaction() as tx:
        (used,) = tx.ask("step_outputs", **r.place, step="mix", kind="training_set")
        (found,) = tx.rows(TrainingSet, "training_set_by_id", training_set_id=used["id"])
    return config.steps.of_round(r.number, found.rows, config.updater.batch_size)


def _seed(r: Round) -> int:
    """The update's seed: the same for arms that share the run's seed."""
    text = f"update|{r.run.config.seed}|{r.number}|{r.refresh}"
    return int(ids.hash_text(text)[:8], 16) >> 1


def _has_checkpoint(r: Round, source: Mapping[str, Any]) -> bool:
    """Whether the checkpoint of an update that was done elsewhere still lies in its folder."""
    with r.run.store.transaction() as tx:
        place = {name: source[name] for name in ("run_id", "round", "refresh", "step")}
        (used,) = tx.ask("step_outputs", **place, kind="model")
        (model,) = tx.rows(Model, "model_by_id", model_id=used["id"])
    return is_complete(r.run.store.folder / model.path)


def _make(r: Round, space: Workspace, init: Id, steps: int) -> Output:
    run, config = r.run, r.run.config.update
    training_set, items, policies = _items(r)
    plan = Plan(
        steps=steps,
        seed=_seed(r),
        init=run.checkpoint(init),
        work=space.folder / "training",
        draft=space.folder / "draft",
    )
    shutil.rmtree(plan.draft, ignore_errors=True)
    run.close()
    updater = config.updater.build()
    with run.screen.stage("update", total=plan.steps) as stage, space.working():
        folder, done, visits, loss = train(
            items, updater, plan, run.models, lambda step, loss: stage.progress(step, plan.steps)
        )
    row, visited = update_rows(
        init=init,
        training_set=training_set,
        updater=updater,
        config=identity_json(config.updater),
        plan=plan,
        steps_done=done,
        checkpoint=folder,
        visits=visits,
        loss=loss,
    )
    return Output(
        [
            (Model, [model_row(folder, "update", run.store.folder)]),
            (TrainingUpdate, [row]),
            (TrainingVisit, visited),
            (ModelParent, model_parents(row, visited, policies)),
        ],
        {"training_update": [row.update_id], "model": [row.model_id]},
    )


def _items(r: Round) -> tuple[Id, Sequence[Item], Mapping[Id, Collection[Id]]]:
    """The training set with its items, and who sampled what stands behind each."""
    with r.run.store.transaction() as tx:
        (used,) = tx.ask("step_outputs", **r.place, step="mix", kind="training_set")
        set_id: Id = used["id"]
        rows = tx.rows(TrainingRow, "training_rows", training_set_id=set_id)
        links = tx.ask("training_trajectories", training_set_id=set_id)
        sampled = tx.ask("training_policies", training_set_id=set_id)
        prompts = tx.rows(Prompt, "prompts_by_id", ids=unique(row.prompt_id for row in rows))
        behind = tx.rows(
            Trajectory, "trajectories_by_id", ids=unique(link["trajectory_id"] for link in links)
        )
    by_id = {row.trajectory_id: row for row in behind}
    items = items_of(
        rows,
        {prompt.prompt_id: prompt for prompt in prompts},
        {link["training_row_id"]: by_id[link["trajectory_id"]] for link in links},
    )
    policies: dict[Id, set[Id]] = {}
    for link in sampled:
        policies.setdefault(link["training_row_id"], set()).add(link["model_id"])
    return set_id, items, policies
