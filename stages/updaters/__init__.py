# SPDX-License-Identifier: Apache-2.0
"""Updaters: one file each, one line here."""

from typing import Annotated

from pydantic import Field

from stages.updaters import dpo, sft, tally
from stages.updaters.base import Item, Plan, Trained, Updater

UpdaterConfig = Annotated[dpo.Config | sft.Config | tally.Config, Field(discriminator="type")]

__all__ = ["Item", "Plan", "Trained", "Updater", "UpdaterConfig", "dpo", "sft", "tally"]
