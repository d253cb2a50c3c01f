# SPDX-License-Identifier: Apache-2.0
"""`sft`: supervised fine-tuning with TRL's SFTTrainer.

Rows go in as `input_ids` and `labels` (−100 where no loss falls).
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from stages.updaters.base import Item, Updater, View
from stages.updaters.training import padded
from stages.updaters.trl import TrlSettings, TrlUpdater


class Config(TrlSettings):
    """Cross-entropy on the completions. Defaults suit the tiny policy."""

    VIEWS: ClassVar[Mapping[str, View]] = {
        "sft": View(
            "right answers: sampled, rationalized, earlier ones and the seed's, as `mix` says",
            "1 for a right answer; wrong ones are left out",
            {"completion": "1 / tokens"},
            "token",
        )
    }

    type: Literal["sft"]

    @classmethod
    def trl_config(cls) -> Any:
        from trl import SFTConfig

        return SFTConfig

    def build(self) -> Updater:
        return Sft(self)


class Sft(TrlUpdater):
    """Imitates completions."""

    name = "sft"
    masks = True

    def trainer_class(self) -> Any:
        from trl import SFTTrainer

        return SFTTrainer

    def arguments(self, items: Sequence[Item]) -> Mapping[str, Any]:
        return {
            "packing": False,
            "max_length": None,
            "activation_checkpointing": False,
            "dataset_kwargs": {"skip_prepare_dataset": True},
        }

    def row(self, item: Item) -> Mapping[str, Any]:
        mask = item.loss_mask or (True,) * len(item.completion_ids)
        labels = [t if keep else -100 for t, keep in zip(item.completion_ids, mask, strict=True)]
        return {
            "input_ids": [*item.prompt_ids, *item.completion_ids],
            "labels": [-100] * len(item.prompt_ids) + labels,
        }

    def collator(self, pad: int) -> Any:
        return _Collator(pad)


class _Collator:
    """Pads on the right; keeps each row's place."""

    def __init__(self, pad: int) -> None:
        self._pad = pad

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        import torch

        ids = [row["input_ids"] for row in rows]
        return {
            "input_ids": padded(ids, self._pad),
            "labels": padded([row["labels"] for row in rows], -100),
            "attention_mask": padded([[1] * len(row) for row in ids], 0),
            "row": torch.tensor([row["row"] for row in rows]),
        }
