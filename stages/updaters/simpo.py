# SPDX-License-Identifier: Apache-2.0
"""`simpo`: preference optimisation without a reference, with TRL's CPOTrainer on stored answers.

−log σ(β (mean log π(chosen) − mean log π(rejected)) − γ), means over an answer's tokens (Meng et
al. 2024, arXiv 2405.14734, eq. 6). `cpo_alpha` adds so much cross-entropy on the chosen answers.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from stages.updaters.base import Item, Rows, Updater, View
from stages.updaters.training import padded
from stages.updaters.trl import TrlSettings, TrlUpdater

SIDES = ("chosen", "rejected")


class Config(TrlSettings):
    """`beta` scales the difference of mean log-probabilities, `gamma` is the margin it must reach.

    `batch_size` counts pairs.
    """

    renamed: ClassVar[Mapping[str, str]] = {"loss_type": "type", "simpo_gamma": "gamma"}

    VIEWS: ClassVar[Mapping[str, View]] = {
        "simpo": View(
            "pairs of a right and a wrong answer of the policy to one problem",
            "none: the right answer is chosen",
            {
                "chosen": "β * σ(γ - β * (p / n - q / m)) / n",
                "rejected": "-β * σ(γ - β * (p / n - q / m)) / m",
            },
            "sequence",
        ),
        "sft": View(
            "the right answers of the pairs", "none", {"chosen": "cpo_alpha / tokens"}, "token"
        ),
    }

    type: Literal["simpo"]
    learning_rate: float = Field(3e-5, gt=0)
    batch_size: int = Field(32, ge=1)
    beta: float = Field(2.0, gt=0)
    gamma: float = Field(1.0, ge=0)
    cpo_alpha: float = Field(0.0, ge=0)

    @property
    def rows(self) -> Rows:
        return "pair"

    @property
    def losses_used(self) -> Sequence[str]:
        return ("simpo", "sft") if self.cpo_alpha else ("simpo",)

    @classmethod
    def trl_config(cls) -> Any:
        return _cpo().CPOConfig

    def build(self) -> Updater:
        return Simpo(self)


class Simpo(TrlUpdater):
    """Learns from pairs, without a reference."""

    name = "simpo"

    def trainer_class(self) -> Any:
        from datasets import disable_progress_bars

        disable_progress_bars()  # CPOTrainer maps over its rows three times, here to no effect

        class TokenTrainer(_cpo().CPOTrainer):  # type: ignore[misc]
            """Its rows are tokens already."""

            @staticmethod
            def tokenize_row(feature: Any) -> Any:
                return feature

        return TokenTrainer

    def arguments(self, items: Sequence[Item]) -> Mapping[str, Any]:
        config = self.config
        return {
            "loss_type": "simpo",
            "beta": config.beta,
            "simpo_gamma": config.gamma,
            "cpo_alpha": config.cpo_alpha,
            "max_length": sys.maxsize,  # None stands for 512
            "activation_checkpointing": False,
        }

    def row(self, item: Item) -> Mapping[str, Any]:
        return {
            "prompt_ids": item.prompt_ids,
            "chosen_ids": item.completion_ids,
            "rejected_ids": item.rejected_ids,
        }

    def collator(self, pad: int) -> Any:
        return _Collator(pad)


def _cpo() -> Any:
    """TRL's module, which warns that it is experimental unless it is told not to."""
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    from trl.experimental import cpo

    return cpo


class _Collator:
    """Chosen and rejected sequences apart, padded on the right."""

    def __init__(self, pad: int) -> None:
        self._pad = pad

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        import torch

        batch = {"row": torch.tensor([row["row"] for row in rows])}
        for side in SIDES:
            pairs = [(row["prompt_ids"], row[f"{side}_ids"]) for row in rows]
            whole = [[*prompt, *answer] for prompt, answer in pairs]
            labels = [[-100] * len(prompt) + list(answer) for prompt, answer in pairs]
            batch[f"{side}_input_ids"] = padded(whole, self._pad)
            batch[f"{side}_attention_mask"] = padded([[1] * len(ids) for ids in whole], 0)
            batch[f"{side}_labels"] = padded(labels, -100)
        return batch
