# SPDX-License-Identifier: Apache-2.0
"""Updaters: one file each, one line here."""

from typing import Annotated, get_args

from pydantic import Field

from stages.updaters import command, dpo, grpo, kto, sft, simpo, tally
from stages.updaters.base import Item, Plan, Trained, Updater, UpdaterSettings

UpdaterConfig = Annotated[
    command.Config
    | dpo.Config
    | grpo.Config
    | kto.Config
    | sft.Config
    | simpo.Config
    | tally.Config,
    Field(discriminator="type"),
]

CONFIGS: tuple[type[UpdaterSettings], ...] = get_args(get_args(UpdaterConfig)[0])

__all__ = [
    "CONFIGS",
    "Item",
    "Plan",
    "Trained",
    "Updater",
    "UpdaterConfig",
    "command",
    "dpo",
    "grpo",
    "kto",
    "sft",
    "simpo",
    "tally",
]
