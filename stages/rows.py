# SPDX-License-Identifier: Apache-2.0
"""All row types: Problem → Prompt → Trajectory → Verdict → Decision → TrainingRow → Update → …

Each class is one table of the store: same name in snake case, same columns (a test compares).
`@keyed` names the columns of its `KEY`. Rows are frozen and join by id, never by position.
"""

from typing import Literal

from stages.ids import Id
from stages.keyed import keyed

Origin = Literal["self", "rationalized", "seed", "human", "teacher", "outside"]
Purpose = Literal["train", "rationalize", "eval", "seed"]
Status = Literal["correct", "wrong", "unjudged"]
Finish = Literal["stop", "length"]
Relation = Literal["init", "reference", "policy"]
Source = Literal["round", "rationalized", "earlier", "seed"]

SELF_MADE: frozenset[Origin] = frozenset(("self", "rationalized"))


@keyed("model_id")
class Model:
    """A policy's weights, tokenizer, chat template and config; `path` is where a copy lies now."""

    model_id: Id
    origin: Literal["outside", "update"]
    architecture: str
    parameters: int | None
    base_model_id: Id | None
    path: str


@keyed("problem_id")
class Problem:
    """A question with its reference answer; `difficulty` is on the task's own scale."""

    problem_id: Id
    task: str
    split: str
    question: str
    answer: str
    domain: str | None = None
    difficulty: float | None = None
    template: str | None = None
    parent_problem_id: Id | None = None
    made_in_round: int | None = None


@keyed("prompt_set_id")
class PromptSet:
    """Two templates over a problem: plain, and with the answer as a hint (None: no hints)."""

    prompt_set_id: Id
    name: str
    plain: str
    hint: str | None


@keyed("prompt_id")
class Prompt:
    """A problem as the policy reads it. Only prompts that are not `hinted` are trained on."""

    prompt_id: Id
    problem_id: Id
    prompt_set_id: Id
    hinted: bool
    token_ids: tuple[int, ...]
    text: str


@keyed("sampling_id")
class Sampling:
    """Sampling parameters; temperature 0 is greedy, top_k 0 and top_p 1 cut nothing."""

    sampling_id: Id
    temperature: float
    top_p: float
    top_k: int
    max_tokens: int
    config: str


@keyed("trajectory_id")
class Trajectory:
    """One filled slot. `trajectory_id` names the slot, `content_id` what was said.

    `logprobs` has one value (nats) per completion token under the distribution sampled from, at
    temperature 1 for greedy slots; None where no policy sampled. `prompt_id` is the prompt that
    was sampled from: a hinted one for a rationalized row.
    """

    trajectory_id: Id
    content_id: Id
    problem_id: Id
    prompt_id: Id
    model_id: Id | None
    sampling_id: Id | None
    purpose: Purpose
    origin: Origin
    seed: int | None
    slot: int
    completion: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    finish_reason: Finish
    engine: str | None
    engine_version: str | None
    dtype: str | None
    weight_version: str | None
    group_id: Id | None = None
    loss_mask: tuple[bool, ...] | None = None


@keyed("trajectory_id", "parent_id", "relation")
class TrajectoryParent:
    """`parent_id` led to `trajectory_id`: its failed try (hint), a revision, an earlier turn."""

    trajectory_id: Id
    parent_id: Id
    relation: Literal["hint", "revision", "turn"]


@keyed("trajectory_id", "model_id")
class TrajectoryLogprob:
    """The summed log-probability (nats) of a trajectory's completion under any model."""

    trajectory_id: Id
    model_id: Id
    logprob: float


@keyed("verifier_id")
class Verifier:
    """A checker: name, version and config make its id."""

    verifier_id: Id
    name: str
    version: str
    config: str


@keyed("verdict_id")
class Verdict:
    """A judgement. `wrong` is the model's doing; `unjudged` is ours and is tried again."""

    verdict_id: Id
    trajectory_id: Id
    verifier_id: Id
    attempt: int
    status: Status
    score: float | None
    extracted: str | None
    reason: str
    trust: str
    isolation: str


@keyed("verdict_id", "component")
class VerdictComponent:
    """One named part of a composed score; weight 0 makes it a metric only."""

    verdict_id: Id
    component: str
    value: float
    weight: float


@keyed("step_key", "trajectory_id")
class Decision:
    """What a step did with a candidate of a declared source, and why."""

    step_key: Id
    trajectory_id: Id
    source: Source
    kept: bool
    why: str


@keyed("training_set_id")
class TrainingSet:
    """The rows of one update, by content."""

    training_set_id: Id
    rows: int
    tokens: int


@keyed("training_set_id", "training_row_id")
class TrainingRow:
    """A row of a training set; its prompt has no hint, its `tokens` are those that carry loss."""

    training_set_id: Id
    training_row_id: Id
    position: int
    kind: Literal["sft", "pair", "rollout"]
    prompt_id: Id
    weight: float
    source: str
    tokens: int


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


@keyed("evaluation_id")
class Evaluation:
    """A model measured on held-out problems, `n` samples each."""

    evaluation_id: Id
    model_id: Id
    task: str
    split: str
    sampling_id: Id
    verifier_id: Id
    n: int
    problems: int


@keyed("evaluation_id", "name", "slice")
class Metric:
    """One number of an evaluation. `slice` is `all` or a part such as `difficulty=3`.

    `value` counts unjudged samples out, `bound` counts them as wrong; `low … high` is the 95 %
    interval over problems.
    """

    evaluation_id: Id
    name: str
    slice: str
    k: int | None
    value: float | None
    low: float | None
    high: float | None
    bound: float | None
    problems: int
    samples: int


@keyed("run_id", "round", "refresh", "step", "kind", "id")
class StepOutput:
    """A run's use of an artefact; `reused`: not new to the store, `first`: new to the run."""

    run_id: Id
    run: str
    round: int
    refresh: int
    step: str
    kind: str
    id: Id
    reused: bool
    first: bool
