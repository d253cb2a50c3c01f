# SPDX-License-Identifier: Apache-2.0
"""What trained a model: sets, updates, visits, what it rests on, and its hand-over."""

from typing import Literal

from stages.ids import Id
from stages.keyed import keyed

Relation = Literal["init", "reference", "policy"]


@keyed("training_set_id")
class TrainingSet:
    """The rows of one update, by content."""

    training_set_id: Id
    rows: int
    tokens: int


@keyed("training_set_id", "training_row_id")
class TrainingRow:
    """A row of a training set; its prompt has no hint, its `tokens` are those that carry loss.

    `weight` is 1, of a rollout with an advantage the advantage.

    `policy_age` counts the updates between the policy that sampled it and the one it trains, None
    where no policy of the run sampled it.
    """

    training_set_id: Id
    training_row_id: Id
    position: int
    kind: Literal["sft", "pair", "rollout"]
    prompt_id: Id
    weight: float
    source: str
    tokens: int
    policy_age: int | None = None


@keyed("training_set_id", "training_row_id", "trajectory_id", "role")
class TrainingRowTrajectory:
    """A trajectory behind a training row, by role; reward and advantage where it has them."""

    training_set_id: Id
    training_row_id: Id
    trajectory_id: Id
    role: Literal["completion", "chosen", "rejected"]
    reward: float | None
    advantage: float | None


@keyed("update_id")
class TrainingUpdate:
    """One update: where it started, what it saw, how far it went, what came out."""

    update_id: Id
    init_model_id: Id
    reference_model_id: Id | None
    training_set_id: Id
    optimizer_from: Id | None
    updater: str
    config: str
    seed: int
    steps_planned: int
    steps_done: int
    model_id: Id
    loss: float | None


@keyed("update_id", "parent_id", "relation")
class ModelParent:
    """A model that an update's model rests on: start, reference, or a policy it learned from."""

    model_id: Id
    parent_id: Id
    relation: Relation
    update_id: Id


@keyed("update_id", "training_row_id")
class TrainingVisit:
    """How often the optimizer saw a row; without a visit it did not train the model."""

    update_id: Id
    training_row_id: Id
    visits: int


@keyed("update_id", "step", "name")
class TrainingMetric:
    """What the trainer measured on one optimizer step, from 1: loss, gradient norm, margins …"""

    update_id: Id
    step: int
    name: str
    value: float


@keyed("step_key")
class HandOver:
    """Sampler and trainer side by side on a model: gaps are |Δ log-probability| in nats a token."""

    step_key: Id
    model_id: Id
    engine: str
    engine_version: str
    dtype: str
    trainer_dtype: str
    prompts: int
    tokens: int
    mean_gap: float
    max_gap: float
    threshold: float
