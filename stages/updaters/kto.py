# SPDX-License-Identifier: Apache-2.0
"""`kto`: learning from single verdicts with TRL's KTOTrainer, on the answers that were stored.

With r = log π/π_ref of an answer, a right one (reward above 0.5) costs 1 − σ(β (r − z)) and a wrong
one 1 − σ(β (z − r)), each times its weight (Ethayarajh et al. 2024, arXiv 2402.01306, eq. 7 and 8).
z ≥ 0 is the mean of log π/π_ref over a micro-batch's prompts with answers to other prompts.
`apo_zero_unpaired` has z = 0 (arXiv 2408.06266). The reference's log-probabilities come with the
items; those of the mismatched answers are read from the reference's checkpoint before training.
"""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from stages.errors import UpdaterError
from stages.policies.dtype import trained_in
from stages.scoring import score_tokens
from stages.settings import later
from stages.updaters.base import Item, Plan, Rows, Updater, View
from stages.updaters.trl import TrlSettings, TrlUpdater

ANSWERS = "right and wrong answers of the policy, each by itself"
SIDES = "desirable above 0.5, else undesirable"


def _sides(distance: str) -> dict[str, str]:
    """The coefficients of right and wrong answers at a distance to the reference."""
    slope = f"σ(β * {distance}) * σ(-β * {distance})"
    return {
        "right": f"desirable_weight * β * {slope}",
        "wrong": f"-undesirable_weight * β * {slope}",
    }


class Config(TrlSettings):
    """`beta` scales the distance to the reference; the weights balance right and wrong answers.

    z is measured on each micro-batch, so that here `micro_batch_size` changes what is computed.
    """

    renamed: ClassVar[Mapping[str, str]] = {"loss_type": "loss"}
    VIEWS: ClassVar[Mapping[str, View]] = {
        "kto": View(ANSWERS, SIDES, _sides("(c - z)"), "sequence"),
        "apo_zero_unpaired": View(ANSWERS, SIDES, _sides("c"), "sequence"),
    }

    type: Literal["kto"]
    learning_rate: float = Field(3e-5, gt=0)
    batch_size: int = Field(32, ge=1)
    micro_batch_size: int | None = later(None, ge=1)
    loss: Literal["kto", "apo_zero_unpaired"] = "kto"
    beta: float = Field(0.1, gt=0)
    desirable_weight: float = Field(1.0, gt=0)
    undesirable_weight: float = Field(1.0, gt=0)

    @model_validator(mode="after")
    def _mismatch_needs_two(self) -> "Config":
        name = "batch_size" if self.micro_batch_size is None else "micro_batch_size"
        if self.loss == "kto" and getattr(self, name) < 2:
            raise ValueError(
                f"{name} is 1, and loss kto measures how far the policy has moved on each batch: "
                "use 2 or more, or loss: apo_zero_unpaired"
            )
        return self

    @property
    def rows(self) -> Rows:
        return "rollout"

    @property
    def losses_used(self) -> Sequence[str]:
        return (self.loss,)

    @property
    def needs_reference(self) -> bool:
        return True

    @classmethod
    def trl_config(cls) -> Any:
        from trl import KTOConfig

        return KTOConfig

    def build(self) -> Updater:
        return Kto(self)


class Kto(TrlUpdater):
    """Learns from answers that are right or wrong, one by one."""

    name = "kto"

    def trainer_class(self) -> Any:
        from trl import KTOTrainer

        return KTOTrainer

    def arguments(self, items: Sequence[Item]) -> Mapping[str, Any]:
        config = self.config
        return {
            "loss_type": config.loss,
            "beta": config.beta,
            "desirable_weight": config.desirable_weight,
            "undesirable_weight": config.undesirable_weight,
            "precompute_ref_log_probs": True,
            "max_length": None,
            "activation_checkpointing": False,
        }

    def row(self, item: Item) -> Mapping[str, Any]:
        if item.reward is None:
            raise UpdaterError(
                f"training row {item.training_row_id} has no reward, kto learns from right and "
                "wrong answers: train on rows of kind rollout"
            )
        return {
            "prompt_ids": item.prompt_ids,
            "completion_ids": item.completion_ids,
            "label": item.reward > 0.5,
            "ref_logps": item.reference[0],
        }

    def rows(self, items: Sequence[Item], plan: Plan) -> list[dict[str, Any]]:
        rows = super().rows(items, plan)
        if self.config.loss != "kto":
            return rows
        if len(items) < 2:
            raise UpdaterError(
                "there is one row to train on, and loss kto compares each with another's answer: "
                "use loss: apo_zero_unpaired, or sample more"
            )
        assert plan.reference is not None
        others = [
            items[place].completion_ids
            for place in mismatched([item.prompt_ids for item in items], plan.seed)
        ]
        dtype, device = self.config.precision
        asked = [(item.prompt_ids, other) for item, other in zip(items, others, strict=True)]
        scored = score_tokens(plan.reference, device, trained_in(dtype, device), asked)
        for row, other, values in zip(rows, others, scored, strict=True):
            row |= {"KL_completion_ids": other, "ref_KL_logps": sum(values)}
        return rows

    def collator(self, pad: int) -> Any:
        return _Collator(pad)


def mismatched(prompts: Sequence[tuple[int, ...]], seed: int) -> list[int]:
    """For each row the place of the row whose answer its prompt is read with; each is used once.

    The answer is to another prompt, unless one prompt has more than half of the rows; it is never
    the row's own where there are two rows or more.
    """
    of_prompt: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, prompt in enumerate(prompts):
        of_prompt[prompt].append(place)
    groups = list(of_prompt.values())
    random.Random(f"mismatched|{seed}").shuffle(groups)
    order = [place for group in groups for place in group]
    shift = min(max(map(len, groups)), max(1, len(order) // 2))
    paired = dict(zip(order, [*order[shift:], *order[:shift]], strict=True))
    return [paired[place] for place in range(len(prompts))]


class _Collator:
    """TRL's, which pads on the right; keeps each row's place."""

    def __init__(self, pad: int) -> None:
        from trl.trainer.kto_trainer import DataCollatorForUnpairedPreference

        self._pad = DataCollatorForUnpairedPreference(pad_token_id=pad)

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        import torch

        return {**self._pad(rows), "row": torch.tensor([row["row"] for row in rows])}
