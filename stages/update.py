# SPDX-License-Identifier: Apache-2.0
"""Training rows and an updater to a checkpoint, and how often each row was visited."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from pydantic import Field, model_validator

from stages import ids
from stages.errors import UpdaterError
from stages.ids import Id
from stages.policies.checkpoint import model_id_of, publish
from stages.policies.weights import no_number
from stages.rows import (
    ModelParent,
    Prompt,
    Relation,
    TrainingMetric,
    TrainingRow,
    TrainingUpdate,
    TrainingVisit,
    Trajectory,
)
from stages.settings import Settings, later
from stages.updaters.base import Item, Plan, Progress, Trained, Updater

ROLES = ("completion", "chosen", "rejected")


class StepsConfig(Settings):
    """Optimizer steps of a round: `first` × `growth`^(round − 1), rounded down (STaR: 1.2).

    `epochs` in their place: so many passes over the round's training set, rounded up.
    """

    first: int = Field(100, ge=1, le=10**9)
    growth: float = Field(1.0, ge=1.0, le=10.0)
    epochs: float | None = later(None, gt=0, le=10_000)

    @model_validator(mode="after")
    def _one_count(self) -> "StepsConfig":
        fields = type(self).model_fields
        for name in ("first", "growth"):
            value = getattr(self, name)
            if self.epochs is not None and value != fields[name].default:
                raise ValueError(
                    f"epochs is {self.epochs:g} and {name} is {value:g}: steps are counted one "
                    f"way, leave out epochs or {name}"
                )
        return self

    def of_round(self, round_: int, rows: int, batch_size: int) -> int:
        """Planned steps of a round, from 1, on a set of `rows` (arXiv 2203.14465, section 4.1)."""
        if self.epochs is not None:
            return ceil(rows * self.epochs / batch_size - 1e-9)
        return int(self.first * self.growth ** (round_ - 1) + 1e-9)


@dataclass(frozen=True, slots=True)
class Behind:
    """A trajectory behind a training row: its role there, and the reward it was given.

    `advantage` is a rollout's, `temperature` that which it was sampled at.
    """

    training_row_id: Id
    role: str
    trajectory: Trajectory
    reward: float | None = None
    advantage: float | None = None
    temperature: float | None = None


def items_of(
    rows: Sequence[TrainingRow],
    prompts: Mapping[Id, Prompt],
    behind: Sequence[Behind],
    reference: Mapping[tuple[Id, Id], float] | None = None,
) -> list[Item]:
    """Training items in the set's order.

    `reference` has the summed log-probability of a trajectory after a prompt. Refuses a hinted
    prompt, and a completion that belongs to another problem than its prompt.
    """
    by_row: dict[Id, dict[str, Behind]] = defaultdict(dict)
    for each in behind:
        by_row[each.training_row_id][each.role] = each
    items = []
    for row in sorted(rows, key=lambda row: row.position):
        prompt, roles = prompts[row.prompt_id], by_row[row.training_row_id]
        told = [roles[role] for role in ROLES if role in roles]
        strangers = any(prompt.problem_id != each.trajectory.problem_id for each in told)
        if prompt.hinted or strangers:
            fault = "a hinted prompt" if prompt.hinted else "another problem's completion"
            raise UpdaterError(
                f"training row {row.training_row_id} has {fault}: nothing was trained; "
                "this store's training rows were not made by starloop's mix"
            )
        first, rest = told[0], told[1:]
        scores = [
            (reference or {}).get((each.trajectory.trajectory_id, prompt.prompt_id))
            for each in told
        ]
        items.append(
            Item(
                row.training_row_id,
                prompt.token_ids,
                first.trajectory.token_ids,
                first.trajectory.loss_mask,
                rest[0].trajectory.token_ids if rest else (),
                first.reward,
                tuple(value for value in scores if value is not None),
                (prompt.text, *(each.trajectory.completion for each in told)),
                first.advantage,
                first.trajectory.logprobs if first.advantage is not None else None,
                first.temperature,
            )
        )
    return items


def update(
    items: Sequence[Item], updater: Updater, plan: Plan, models: Path, progress: Progress
) -> tuple[Path, Trained]:
    """Train and publish: the checkpoint's folder, and what was done."""
    trained = updater.update(items, plan, progress)
    if trained.steps_done != plan.steps:
        raise UpdaterError(
            f"{updater.name} did {trained.steps_done} of {plan.steps} steps: run again to go on "
            "from its last complete checkpoint"
        )
    if (name := no_number(plan.draft)) is not None:
        raise UpdaterError(
            f"{updater.name} came to weights that are no numbers ({name}): nothing was stored; "
            "start another --name with a lower update.updater.learning_rate, or mend the rewards"
        )
    return publish(plan.draft, models), trained


def update_rows(
    *,
    init: Id,
    reference: Id | None,
    training_set: Id,
    optimizer_from: Id | None,
    updater: Updater,
    config: str,
    plan: Plan,
    trained: Trained,
    checkpoint: Path,
) -> tuple[TrainingUpdate, list[TrainingVisit], list[TrainingMetric]]:
    """The store's rows for an update that was done."""
    model = model_id_of(checkpoint)
    update_id = ids.update_id(init, reference, training_set, config, plan.seed, plan.steps, model)
    row = TrainingUpdate(
        update_id=update_id,
        init_model_id=init,
        reference_model_id=reference,
        training_set_id=training_set,
        optimizer_from=optimizer_from,
        updater=updater.name,
        config=config,
        seed=plan.seed,
        steps_planned=plan.steps,
        steps_done=trained.steps_done,
        model_id=model,
        loss=trained.loss,
    )
    visits = [TrainingVisit(update_id, row_id, count) for row_id, count in trained.visits.items()]
    return row, visits, [TrainingMetric(update_id, *measured) for measured in trained.series]


def model_parents(
    update: TrainingUpdate, visits: Sequence[TrainingVisit], policies: Mapping[Id, Collection[Id]]
) -> list[ModelParent]:
    """What the update's model rests on: start, reference, and who sampled the rows it visited.

    `policies` are the models that sampled the trajectories behind a training row, by its id.
    """
    sampled_by = {
        policy
        for visit in visits
        if visit.visits > 0
        for policy in policies.get(visit.training_row_id, ())
    }
    reference = [update.reference_model_id] if update.reference_model_id else []
    parents: list[tuple[Id, Relation]] = [
        (update.init_model_id, "init"),
        *((model, "reference") for model in reference),
        *((model, "policy") for model in sorted(sampled_by)),
    ]
    return [
        ModelParent(update.model_id, parent, relation, update.update_id)
        for parent, relation in parents
    ]
