# SPDX-License-Identifier: Apache-2.0
"""`dpo`: preference optimisation with TRL's DPOTrainer on pairs of stored answers.

The loss of a pair compares how far the policy has moved from the reference on the chosen and on
the rejected answer (Rafailov et al. 2023, arXiv 2305.18290): `sigmoid` is −log σ(β Δ), with
Δ = log π/π_ref (chosen) − log π/π_ref (rejected), so ln 2 at Δ = 0. Several losses are summed with
their weights: `sigmoid` and `sft` at weight 1 are the loss of iterative RPO (arXiv 2404.19733),
but that `sft` is a mean over the batch's chosen tokens, not over each pair's. The reference's
log-probabilities come with the items: it is never loaded here.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from stages.updaters.base import Item, Rows, Updater, View
from stages.updaters.training import padded
from stages.updaters.trl import TrlSettings, TrlUpdater

Loss = Literal[
    "sigmoid", "hinge", "ipo", "exo_pair", "nca_pair", "robust", "bco_pair", "sppo_hard", "aot",
    "aot_unpaired", "apo_zero", "apo_down", "discopop", "sft", "sigmoid_norm",
]  # fmt: skip

PAIRS = "pairs of a right and a wrong answer of the policy to one problem"
CHOSEN = "none: the right answer is chosen"


def _alike(weight: str) -> View:
    """A loss of Δ alone: it lifts the chosen answer as hard as it lowers the rejected one."""
    return View(PAIRS, CHOSEN, {"chosen": weight, "rejected": "-chosen"}, "sequence")


def _apart(chosen: str, rejected: str) -> View:
    return View(PAIRS, CHOSEN, {"chosen": chosen, "rejected": rejected}, "sequence")


# Of TRL's losses, with c, r and Δ; `aot` and `aot_unpaired` sort them over the batch.
VIEWS: Mapping[str, View] = {
    "sigmoid": _alike("β * σ(-β * Δ)"),
    "hinge": _alike("β * (β * Δ < 1)"),
    "ipo": _apart(
        "2 * (1 / (2 * β) - (c / n - r / m)) / n", "-2 * (1 / (2 * β) - (c / n - r / m)) / m"
    ),
    "exo_pair": _alike("β * σ(β * Δ) * σ(-β * Δ) * (log((1 - ε) / ε) - β * Δ)"),
    "nca_pair": _apart("β * (σ(-β * c) - σ(β * c) / 2)", "-β * σ(β * r) / 2"),
    "robust": _alike("β * ((1 - ε) * σ(-β * Δ) + ε * σ(β * Δ)) / (1 - 2 * ε)"),
    "bco_pair": _apart("β * σ(-β * c)", "-β * σ(β * r)"),
    "sppo_hard": _apart("1 / β - 2 * c", "-1 / β - 2 * r"),
    "aot": _alike("β * ((1 - ε) * σ(-β * Δ) - ε * σ(β * Δ))"),
    "aot_unpaired": _alike("β * ((1 - ε) * σ(-β * Δ) - ε * σ(β * Δ))"),
    "apo_zero": _apart("β * σ(β * c) * σ(-β * c)", "-β * σ(β * r) * σ(-β * r)"),
    "apo_down": _apart(
        "β * (σ(β * Δ) * σ(-β * Δ) - σ(β * c) * σ(-β * c))", "-β * σ(β * Δ) * σ(-β * Δ)"
    ),
    "discopop": _alike(
        "β * (σ(-β * Δ) * (1 - w) + exp(-β * Δ) * w"
        " - (log(σ(β * Δ)) + exp(-β * Δ)) * w * (1 - w) / 0.05)"
    ),
    "sft": View("the right answers of the pairs", "none", {"chosen": "1 / tokens"}, "token"),
    "sigmoid_norm": _apart("β * σ(-β * (c / n - r / m)) / n", "-β * σ(-β * (c / n - r / m)) / m"),
}


class Config(TrlSettings):
    """`beta` scales the distance to the reference; `losses` are summed with `weights` (default 1).

    `batch_size` counts pairs.
    """

    renamed: ClassVar[Mapping[str, str]] = {"loss_type": "losses", "loss_weights": "weights"}
    VIEWS: ClassVar[Mapping[str, View]] = VIEWS

    type: Literal["dpo"]
    learning_rate: float = Field(3e-5, gt=0)
    batch_size: int = Field(32, ge=1)
    beta: float = Field(0.1, gt=0)
    losses: Annotated[tuple[Loss, ...], Field(strict=False, min_length=1)] = ("sigmoid",)
    weights: Annotated[tuple[float, ...], Field(strict=False)] | None = None
    label_smoothing: float = Field(0.0, ge=0, lt=0.5)

    @model_validator(mode="after")
    def _each_loss_has_a_weight(self) -> "Config":
        if self.weights is not None and len(self.weights) != len(self.losses):
            raise ValueError(
                f"weights has {len(self.weights)} values for {len(self.losses)} losses: give one "
                "for each, or leave it out"
            )
        in_batch = next((loss for loss in self.losses if loss.startswith("aot")), None)
        if in_batch and self.micro_batch_size not in (None, self.batch_size):
            raise ValueError(
                f"micro_batch_size is {self.micro_batch_size}, and {in_batch} compares all pairs "
                "of a batch with each other: leave it out"
            )
        if "exo_pair" in self.losses and self.label_smoothing == 0:
            raise ValueError("label_smoothing is 0, exo_pair needs more: use for example 0.001")
        return self

    @property
    def rows(self) -> Rows:
        return "pair"

    @property
    def losses_used(self) -> Sequence[str]:
        return self.losses

    @property
    def needs_reference(self) -> bool:
        return True

    @classmethod
    def trl_config(cls) -> Any:
        from trl import DPOConfig

        return DPOConfig

    def build(self) -> Updater:
        return Dpo(self)


class Dpo(TrlUpdater):
    """Learns from pairs."""

    name = "dpo"

    def trainer_class(self) -> Any:
        from trl import DPOTrainer

        return DPOTrainer

    def arguments(self, items: Sequence[Item]) -> Mapping[str, Any]:
        config = self.config
        return {
            "beta": config.beta,
            "loss_type": list(config.losses),
            "loss_weights": None if config.weights is None else list(config.weights),
            "label_smoothing": config.label_smoothing,
            "precompute_ref_log_probs": True,
            "max_length": None,
            "activation_checkpointing": False,
        }

    def row(self, item: Item) -> Mapping[str, Any]:
        chosen, rejected = item.reference
        return {
            "prompt_ids": item.prompt_ids,
            "chosen_ids": item.completion_ids,
            "rejected_ids": item.rejected_ids,
            "ref_chosen_logps": chosen,
            "ref_rejected_logps": rejected,
        }

    def collator(self, pad: int) -> Any:
        return _Collator(pad)


class _Collator:
    """First all chosen sequences, then all rejected ones, padded on the right."""

    def __init__(self, pad: int) -> None:
        self._pad = pad

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        import torch

        pairs = [(row["prompt_ids"], row[side]) for side in ("chosen_ids", "rejected_ids")
                 for row in rows]  # fmt: skip
        whole = [[*prompt, *answer] for prompt, answer in pairs]
        return {
            "input_ids": padded(whole, self._pad),
            "attention_mask": padded([[1] * len(ids) for ids in whole], 0),
            "completion_mask": padded(
                [[0] * len(prompt) + [1] * len(answer) for prompt, answer in pairs], 0
            ),
            **{
                name: torch.tensor([row[name] for row in rows])
                for name in ("ref_chosen_logps", "ref_rejected_logps")
            },
            "row": torch.tensor([row["row"] for row in rows]),
        }
