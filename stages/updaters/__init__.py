# SPDX-License-Identifier: Apache-2.0
"""Updaters: one file each, one line here."""

from typing import Annotated

from pydantic import Field

from stages.updaters import command, dpo, grpo, kto, sft, simpo, tally
from stages.updaters.base import Item, Plan, Trained, Updater

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

__all__ = [
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
