# SPDX-License-Identifier: Apache-2.0
"""`grpo`: policy gradients with the loss of TRL's GRPOTrainer, on exactly the stored rollouts.

Tokens, old log-probabilities and advantages are those of the store: nothing is sampled, scored by a
reward function or normalised here. With ρ = π/π_old of a token, `grpo` is the mean over rollouts of
the mean over a rollout's tokens of −min(ρ A, clip(ρ, 1 − ε, 1 + ε_high) A) (DeepSeekMath, arXiv
2402.03300, eq. 3); `dapo` divides the sum by all tokens of the batch (arXiv 2503.14476, eq. 8),
`dr_grpo` by rollouts times a constant (arXiv 2503.20783), and with `ratio: sequence` ρ is the
geometric mean over a rollout (GSPO, arXiv 2507.18071). π_old is what the sampler drew from, however
old, so a stale rollout keeps its true ratio. With β, the k3 estimate of the KL to the reference is
added, whose log-probabilities are read before training; it is not held in memory meanwhile.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from stages.errors import UpdaterError
from stages.policies.dtype import trained_in
from stages.scoring import score_tokens
from stages.updaters.base import Item, Plan, Rows, Updater, View
from stages.updaters.rollouts import RolloutCollator, on_stored_rollouts
from stages.updaters.trl import TrlSettings, TrlUpdater

Loss = Literal["grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo"]

ANSWERS = "the policy's own answers, older ones by their ratio"
REWARD = "the advantage of the verifier's score, or of `reward`; less a KL with mix.groups.kl"


def _view(level: Literal["token", "sequence"], pull: str, over: str = "") -> View:
    """A loss whose KL term stands beside the pull of the advantage."""
    return View(ANSWERS, REWARD, {"completion": f"({pull} + β * (κ - 1)){over}"}, level)


VIEWS: Mapping[str, View] = {
    "grpo": _view("sequence", "A * ρ * open", " / n"),
    "dr_grpo": _view("token", "A * ρ * open", " / length"),
    "dapo": _view("token", "A * ρ * open", " / tokens"),
    "bnpo": _view("token", "A * ρ * open", " / tokens"),
    "cispo": _view("token", "A * min(ρ, epsilon_high)", " / tokens"),
    "sapo": _view("sequence", "A * ρ * 4 * σ(u) * σ(-u)", " / n"),
    "luspo": _view("token", "A * ρ * open"),
    "vespo": _view("token", "A * φ", " / tokens"),
}

SAMPLED = "rollouts are sampled before: set generate"
OURS = "rewards and advantages come from the store: set mix.groups"


class Config(TrlSettings):
    """`epsilon` and `epsilon_high` (default: the same) bound the ratio, `delta` bounds it above
    where the advantage is negative. For cispo `epsilon_high` is the largest weight of a token.

    `ratio` is taken of each token, of the whole sequence, or of neither: `none` is the plain policy
    gradient, for rollouts of the policy that is trained. `length` is what dr_grpo divides a
    rollout's sum by. `beta` scales the KL (k3) to the reference, with `kl_correction` times the
    ratio (DeepSeek-V3.2). `top_entropy_quantile` trains on that share of a micro-batch's tokens,
    those of highest entropy. `batch_size` counts rollouts.
    """

    VIEWS: ClassVar[Mapping[str, View]] = VIEWS
    renamed: ClassVar[Mapping[str, str]] = {
        "loss_type": "loss",
        "importance_sampling_level": "ratio",
        "max_completion_length": "length",
        "use_bias_correction_kl": "kl_correction",
    }
    owned: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("scale_rewards", "reward_weights", "multi_objective_aggregation"), OURS),
        "mask_truncated_completions": "set mix.groups.truncated",
        "num_iterations": "set update.steps.epochs",
        **dict.fromkeys(
            (
                *("num_generations", "generation_batch_size", "steps_per_generation"),
                *("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "use_vllm"),
                *("generation_kwargs", "shuffle_dataset"),
            ),
            SAMPLED,
        ),
    }

    type: Literal["grpo"]
    learning_rate: float = Field(2e-4, gt=0)
    batch_size: int = Field(64, ge=1)
    loss: Loss = "grpo"
    ratio: Literal["token", "sequence", "none"] = "token"
    epsilon: float = Field(0.2, gt=0, le=1)
    epsilon_high: float | None = Field(None, gt=0)
    delta: float | None = Field(None, gt=0)
    length: int | None = Field(None, ge=1)
    beta: float = Field(0.0, ge=0)
    kl_correction: bool = False
    top_entropy_quantile: float = Field(1.0, gt=0, le=1)

    @model_validator(mode="after")
    def _the_range_is_a_range(self) -> "Config":
        low, high = self.epsilon, self.epsilon_high
        if self.loss == "cispo" and (high is None or high < 1):
            raise ValueError(
                f"epsilon_high is {high}, and for cispo it is the largest weight of a token: use 1 "
                "or more, for example 5.0"
            )
        if high is not None and high < low:
            raise ValueError(
                f"epsilon is {low:g} and epsilon_high {high:g}: the ratio is held within "
                "1 − epsilon and 1 + epsilon_high, the upper is not the narrower; exchange them"
            )
        if self.delta is not None and self.delta <= 1 + self.top:
            raise ValueError(
                f"delta is {self.delta:g}, and the ratio is clipped at {1 + self.top:g} already: "
                "use more than that, or leave delta out"
            )
        return self

    @model_validator(mode="after")
    def _loss_has_what_it_needs(self) -> "Config":
        if (self.loss == "dr_grpo") != (self.length is not None):
            raise ValueError(
                f"length is {self.length} for loss {self.loss}: dr_grpo divides by it (the largest "
                "max_tokens of the run; 1 sums over a rollout), others have none"
            )
        if self.top_entropy_quantile < 1 and self.micro_batch_size is not None:
            raise ValueError(
                "micro_batch_size is set and top_entropy_quantile is measured on each micro-batch, "
                "which would change what is computed: leave one of them out"
            )
        return self

    @property
    def top(self) -> float:
        """How far above 1 the ratio may be."""
        return self.epsilon if self.epsilon_high is None else self.epsilon_high

    @property
    def rows(self) -> Rows:
        return "rollout"

    @property
    def losses_used(self) -> Sequence[str]:
        return (self.loss,)

    @property
    def needs_reference(self) -> bool:
        return self.beta > 0

    @classmethod
    def trl_config(cls) -> Any:
        from trl import GRPOConfig

        return GRPOConfig

    def build(self) -> Updater:
        return Grpo(self)


class Grpo(TrlUpdater):
    """Learns from rollouts by their advantages."""

    name = "grpo"
    masks = True

    def trainer_class(self) -> Any:
        return on_stored_rollouts(self.config)

    def arguments(self, items: Sequence[Item]) -> Mapping[str, Any]:
        config = self.config
        return {
            "loss_type": config.loss,
            "importance_sampling_level": "token" if config.ratio == "none" else config.ratio,
            "epsilon": config.epsilon,
            "epsilon_high": config.epsilon_high,
            "delta": config.delta,
            "max_completion_length": config.length or 1,
            "temperature": temperature_of(items),
            "beta": 0.0,  # else the start would be loaded again as the reference
            "use_bias_correction_kl": config.kl_correction,
            "top_entropy_quantile": config.top_entropy_quantile,
            "steps_per_generation": 2 * config.batch_size,  # any even number of rollouts will do
            "num_generations": 2,
            "activation_checkpointing": False,
        }

    def row(self, item: Item) -> Mapping[str, Any]:
        old = None if self.config.ratio == "none" else _old_logprobs(item)
        if item.advantage is None or not math.isfinite(item.advantage):
            raise UpdaterError(
                f"training row {item.training_row_id} has advantage {item.advantage}, grpo weighs "
                "each rollout by one: train on what recipe grpo mixes"
            )
        return {
            "prompt_ids": item.prompt_ids,
            "completion_ids": item.completion_ids,
            "loss_mask": item.loss_mask or (True,) * len(item.completion_ids),
            "advantage": item.advantage,
            "old_logps": old,
        }

    def rows(self, items: Sequence[Item], plan: Plan) -> list[dict[str, Any]]:
        rows = super().rows(items, plan)
        if not self.config.beta:
            return rows
        assert plan.reference is not None
        dtype, device = self.config.precision
        asked = [(item.prompt_ids, item.completion_ids) for item in items]
        scored = score_tokens(
            plan.reference,
            device,
            trained_in(dtype, device),
            asked,
            temperature=temperature_of(items),
        )
        return [{**row, "ref_logps": values} for row, values in zip(rows, scored, strict=True)]

    def collator(self, pad: int) -> Any:
        return RolloutCollator(pad)


def temperature_of(items: Sequence[Item]) -> float:
    """The one temperature that all rollouts were sampled at; UpdaterError where there is none."""
    found = {item.temperature for item in items}
    if len(found) > 1 or not (one := found.pop()):
        said = ", ".join(sorted({str(item.temperature) for item in items}))
        raise UpdaterError(
            f"rollouts were sampled at temperature {said}: grpo needs one above 0 for all, set "
            "generate.sampling.temperature, or mix.history: new_only"
        )
    return one


def _old_logprobs(item: Item) -> tuple[float, ...]:
    """The sampler's log-probabilities, one for each token of the completion."""
    found = item.logprobs
    if (
        found is None
        or len(found) != len(item.completion_ids)
        or not all(map(math.isfinite, found))
    ):
        count = "no log-probabilities" if found is None else f"{len(found)} log-probabilities"
        raise UpdaterError(
            f"training row {item.training_row_id} has {count} of its sampler for "
            f"{len(item.completion_ids)} tokens: grpo needs a finite one for each, use a sampler "
            "that gives them, or update.updater.ratio: none"
        )
    return found
