# SPDX-License-Identifier: Apache-2.0
"""Problems, prompts and what policies sampled from them."""

from typing import Literal

from stages.ids import Id
from stages.keyed import keyed

Origin = Literal["self", "rationalized", "seed", "human", "teacher", "outside"]
Purpose = Literal["train", "rationalize", "eval", "seed"]
Finish = Literal["stop", "length"]

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


@keyed("step_key", "problem_id", "why", "place", "other_id")
class ProblemDecision:
    """A problem that a step left out, or kept with a warning, and why.

    `place` is where it was read (`train.jsonl:17`) or empty; `other_id` is the problem it repeats
    or overlaps, or itself; `rule` and `share` say how.
    """

    step_key: Id
    problem_id: Id
    why: Literal[
        "no_question", "no_answer", "not_a_row", "duplicate", "two_answers", "reference_refused",
        "contaminated", "too_long",
    ]  # fmt: skip
    place: str
    other_id: Id
    kept: bool
    rule: str | None = None
    share: float | None = None


@keyed("prompt_set_id")
class PromptSet:
    """Two templates over a problem: plain, and with the answer as a hint (None: no hints).

    `config` (canonical JSON) has the rest where there is more: system prompt, worked examples.
    """

    prompt_set_id: Id
    name: str
    plain: str
    hint: str | None
    config: str | None = None


@keyed("prompt_id")
class Prompt:
    """A problem as the policy reads it. Only prompts that are not `hinted` are trained on.

    `shots` worked examples stand before the question; `messages` (JSON) is the chat it was written
    from. Both are None where there is none.
    """

    prompt_id: Id
    problem_id: Id
    prompt_set_id: Id
    hinted: bool
    token_ids: tuple[int, ...]
    text: str
    shots: int | None = None
    messages: str | None = None


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
    temperature 1 for greedy slots; None where no policy sampled, or a server gave none. `prompt_id`
    is the prompt that was sampled from: a hinted one for a rationalized row. `from_text`: the
    engine gave text alone, the token ids are the policy's reading of it.
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
    from_text: bool | None = None


@keyed("trajectory_id", "parent_id", "relation")
class TrajectoryParent:
    """`parent_id` led to `trajectory_id`: its failed try (hint), a revision, an earlier turn."""

    trajectory_id: Id
    parent_id: Id
    relation: Literal["hint", "revision", "turn"]


@keyed("trajectory_id", "prompt_id", "model_id")
class TrajectoryLogprob:
    """The summed log-probability (nats) of a trajectory's completion after a prompt, under a model.

    `prompt_id` is the prompt it is trained on, which may not be the one it was sampled from.
    """

    trajectory_id: Id
    prompt_id: Id
    model_id: Id
    logprob: float
