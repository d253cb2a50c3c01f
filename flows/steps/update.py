# SPDX-License-Identifier: Apache-2.0
"""The updater trains on a round's training set; the checkpoint gets its model row."""

import gc
import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.commit import Done, Output, Workspace, once
from flows.context import Round
from flows.models import check_same_kind
from flows.steps.base import step, unique
from stages import ids
from stages.errors import StoreError
from stages.ids import Id
from stages.policies.checkpoint import is_complete, model_row
from stages.rows import (
    Model,
    ModelParent,
    Prompt,
    TrainingMetric,
    TrainingRow,
    TrainingSet,
    TrainingUpdate,
    TrainingVisit,
    Trajectory,
)
from stages.settings import identity, identity_json
from stages.update import Behind, items_of, model_parents, update_rows
from stages.update import update as train
from stages.updaters import Item, Plan

UNENDING = 10**9  # steps that a schedule covers whose optimizer is never reset


@step
def update(r: Round, mixed: Done, init: Id) -> Done:
    """Train from `init` on what `mix` chose; a refresh without rows takes no step."""
    steps = _planned_steps(r)
    carried = _carried(r)
    inputs: list[Id | int] = [mixed.key, init, steps, _seed(r)]
    inputs += [carried.update_id] if carried else []
    unscored = r.reference if r.run.config.recipe == "grpo" else None
    inputs += [unscored] if unscored else []  # else the step that scored under it names it
    config = r.run.config.update.updater
    if not steps:
        key = ids.step_key("update", 1, inputs, "")
        return once(r, "update", key, lambda space: _no_step(r))
    key = ids.step_key("update", 1, inputs, identity_json(config))
    return once(r, "update", key, lambda space: _make(r, space, init, steps, carried), _has_all)


def _planned_steps(r: Round) -> int:
    config = r.run.config.update
    with r.run.store.transaction() as tx:
        (used,) = tx.ask("step_outputs", **r.place, step="mix", kind="training_set")
        (found,) = tx.rows(TrainingSet, "training_set_by_id", training_set_id=used["id"])
    if r.steps is not None:
        return r.steps if found.rows else 0
    return config.steps.of_round(r.number, found.rows, config.updater.batch_size)


def _no_step(r: Round) -> Output:
    message = f"refresh {r.refresh} has no rows to train on: no step was taken"
    r.run.screen.say(f"round {r.number}: {message}")
    return Output([], {}, [("no_rows", message)])


@dataclass(frozen=True, slots=True)
class Carried:
    """The update whose optimizer goes on, and the steps that its schedule covers."""

    update_id: Id
    state: Path


def _carried(r: Round) -> Carried | None:
    """The update before this one in the run, where its optimizer is to go on.

    None over a reset: the first update after it begins anew; and in a fork that trains an adapter
    where its source trained another or all weights.
    """
    config = r.run.config.update
    reset, carries = config.reset_optimizer, config.updater.carries_optimizer
    if not carries or reset == "refresh" or (reset == "round" and not r.refresh):
        return None
    with r.run.store.transaction() as tx:
        before = tx.ask("model_before", **r.place)
    if not before or before[0]["model_id"] != r.init:
        return None
    last = r.reset
    if last is not None and before[0]["round"] < last.round:
        return None
    if json.loads(before[0]["config"]).get("lora") != identity(config.updater).get("lora"):
        return None
    return Carried(before[0]["update_id"], r.run.optimizer_of(before[0]["update_id"]))


def _goes_on_after(r: Round) -> bool:
    """Whether a later update of the run may need this one's optimizer."""
    reset, config = r.run.config.update.reset_optimizer, r.run.config
    within = r.refresh + 1 < config.refreshes_of(r.number)
    carries = config.update.updater.carries_optimizer
    return carries and (reset == "never" or (reset == "round" and within))


def _seed(r: Round) -> int:
    """The update's seed: the same for arms that share the run's seed."""
    text = f"update|{r.run.config.seed}|{r.number}|{r.refresh}"
    return int(ids.hash_text(text)[:8], 16) >> 1


def _has_all(r: Round, source: Mapping[str, Any]) -> bool:
    """Whether what an update left elsewhere still lies there: checkpoint, optimizer if needed."""
    with r.run.store.transaction() as tx:
        place = {name: source[name] for name in ("run_id", "round", "refresh", "step")}
        (used,) = tx.ask("step_outputs", **place, kind="model")
        (made,) = tx.ask("step_outputs", **place, kind="training_update")
        (model,) = tx.rows(Model, "model_by_id", model_id=used["id"])
    state = r.run.optimizer_of(made["id"])
    whole = is_complete(r.run.store.folder / model.path)
    return whole and (not _goes_on_after(r) or is_complete(state))


def _make(r: Round, space: Workspace, init: Id, steps: int, carried: Carried | None) -> Output:
    run, config = r.run, r.run.config.update
    reference = r.reference
    training_set, items, policies = _items(r, reference)
    if carried and not is_complete(carried.state):
        raise StoreError(
            f"round {r.number}: the optimizer of update {carried.update_id} is missing or torn in "
            f"{carried.state}: put it back, or start a run with update.reset_optimizer: refresh"
        )
    plan = Plan(
        steps=steps,
        seed=_seed(r),
        init=run.checkpoint(init),
        work=space.folder / "training",
        draft=space.folder / "draft",
        optimizer=carried.state if carried else None,
        span=_span(r, steps),
        state=space.folder / "optimizer" if _goes_on_after(r) else None,
        reference=None if reference is None else run.checkpoint(reference),
    )
    if reference is not None and plan.reference is not None:
        check_same_kind(run.store, reference, plan.reference, run.base_folder, "update.reference")
    shutil.rmtree(plan.draft, ignore_errors=True)
    run.close()
    updater = config.updater.build()
    with run.screen.stage("update", total=plan.steps) as stage, space.working():
        folder, trained = train(
            items, updater, plan, run.models, lambda step, loss: stage.progress(step, plan.steps)
        )
    _set_libraries_aside()
    row, visited, measured = update_rows(
        init=init,
        reference=reference,
        training_set=training_set,
        optimizer_from=carried.update_id if carried else None,
        updater=updater,
        config=identity_json(config.updater),
        plan=plan,
        trained=trained,
        checkpoint=folder,
    )
    if plan.state is not None:
        run.keep_optimizer(plan.state, row.update_id)
    return Output(
        [
            (Model, [model_row(folder, "update", run.store.folder)]),
            (TrainingUpdate, [row]),
            (TrainingVisit, visited),
            (TrainingMetric, measured),
            (ModelParent, model_parents(row, visited, policies)),
        ],
        {"training_update": [row.update_id], "model": [row.model_id]},
    )


def _set_libraries_aside() -> None:
    """No later garbage collection walks what is there now, mostly the libraries' own objects.

    Each full collection takes 0.3 s otherwise, and a refresh has several. Once in a process, when
    an update has loaded all libraries and left no model: none is kept that nothing refers to.
    """
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


def _span(r: Round, steps: int) -> int | None:
    """Steps that the learning rate's schedule covers: until the optimizer is reset."""
    config = r.run.config
    if config.update.reset_optimizer == "never":
        return UNENDING
    if config.update.reset_optimizer == "refresh" or config.refreshes_of(r.number) == 1:
        return None
    parts = [config.steps_of(r.number, n) for n in range(config.refreshes_of(r.number))]
    return sum(part if part is not None else steps for part in parts)


def _items(
    r: Round, reference: Id | None
) -> tuple[Id, Sequence[Item], Mapping[Id, Collection[Id]]]:
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
        scored = (
            tx.ask("logprobs_under", training_set_id=set_id, model_id=reference)
            if reference
            else []
        )
    by_id = {row.trajectory_id: row for row in behind}
    items = items_of(
        rows,
        {prompt.prompt_id: prompt for prompt in prompts},
        [
            Behind(
                link["training_row_id"],
                link["role"],
                by_id[link["trajectory_id"]],
                link["reward"],
                link["advantage"],
                link["temperature"],
            )
            for link in links
        ],
        {(row["trajectory_id"], row["prompt_id"]): row["logprob"] for row in scored},
    )
    policies: dict[Id, set[Id]] = {}
    for link in sampled:
        policies.setdefault(link["training_row_id"], set()).add(link["model_id"])
    return set_id, items, policies
