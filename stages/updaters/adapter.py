# SPDX-License-Identifier: Apache-2.0
"""LoRA (arXiv 2106.09685): an update trains W + (alpha / rank) B A with W held, A and B small.

The checkpoint that an update leaves is a whole model, the adapter added to its weights in the type
that they were trained in. An update that goes on with the optimizer goes on with the adapter too:
the state has the adapter, and the base that it is on, beside the moments. So over refreshes one
adapter is trained, of one rank, and no rounding of a merge is trained on. Where the optimizer
begins anew, a new adapter begins on the start's weights.
"""

import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from stages.errors import UpdaterError
from stages.policies.checkpoint import weight_files
from stages.policies.lora import SETTINGS, WEIGHTS, the_peft
from stages.settings import Settings
from stages.updaters.base import Plan

ADAPTER, BASE = "adapter", "base"
CONFIGS = ("config.json", "generation_config.json", "model.safetensors.index.json")


class LoraConfig(Settings):
    """`targets` are ends of the names of the linear layers that get an adapter.

    `all-linear` names every one but the output layer.
    """

    rank: int = Field(16, ge=1, le=65_536)
    alpha: float = Field(32.0, gt=0)
    dropout: float = Field(0.0, ge=0, lt=1)
    targets: (
        Literal["all-linear"] | Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
    ) = "all-linear"

    def check(self) -> None:
        """ConfigError where peft is not installed."""
        the_peft("update.updater.lora")

    def of_peft(self) -> Any:
        """The same as peft's own config."""
        targets = self.targets
        return the_peft("update.updater.lora").LoraConfig(
            task_type="CAUSAL_LM",
            r=self.rank,
            lora_alpha=self.alpha,
            lora_dropout=self.dropout,
            target_modules=targets if isinstance(targets, str) else [*targets],
        )


@contextmanager
def fitting(lora: LoraConfig | None) -> Iterator[None]:
    """UpdaterError where the targets name no layer of the model; without a warning about peft."""
    try:
        with warnings.catch_warnings():
            if lora is not None:
                warnings.simplefilter("ignore", FutureWarning)  # of transformers
            yield
    except ValueError as error:
        if lora is None or "arget modules" not in str(error):
            raise
        said = " ".join(str(error).split())[:200]
        raise UpdaterError(
            f"update.updater.lora.targets is {lora.targets!r}, and the policy has no such layer "
            f"({said}): use all-linear, or ends of its layers' names such as q_proj"
        ) from error


def base_of(plan: Plan) -> Path:
    """The checkpoint that the adapter is on: the start, or that of the adapter that goes on."""
    return plan.init if plan.optimizer is None else plan.optimizer / BASE


def go_on(model: Any, state: Path) -> None:
    """Put the adapter of an earlier update's state into a model with one of the same shape."""
    from peft.utils.save_and_load import load_peft_weights, set_peft_model_state_dict

    set_peft_model_state_dict(model, load_peft_weights(str(state / ADAPTER), device="cpu"))


def keep_adapter(checkpoint: Path, base: Path, state: Path) -> None:
    """Move the adapter of a training checkpoint to a state, and lay its base beside it."""
    (state / ADAPTER).mkdir(parents=True)
    for name in (SETTINGS, WEIGHTS):
        (checkpoint / name).rename(state / ADAPTER / name)
    (state / BASE).mkdir()
    for path in [*(base / name for name in CONFIGS), *weight_files(base)]:
        if path.exists():
            _lay(path, state / BASE / path.name)


def save_merged(model: Any, draft: Path) -> None:
    """The whole model, with its adapter added to its weights."""
    model.merge_and_unload().save_pretrained(draft)


def _lay(path: Path, target: Path) -> None:
    """The same file under another name, a copy where the file system has no such links."""
    try:
        os.link(path.resolve(), target)
    except OSError:
        shutil.copyfile(path, target)
