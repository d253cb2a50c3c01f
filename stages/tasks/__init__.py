# SPDX-License-Identifier: Apache-2.0
"""Tasks: one file each, one line here."""

from typing import Annotated

from pydantic import Field

from stages.tasks import addition, jsonl, reasoning_gym
from stages.tasks.base import Demonstration, LeftOut, Split, Task

TaskConfig = Annotated[
    addition.Config | jsonl.Config | reasoning_gym.Config, Field(discriminator="type")
]

__all__ = [
    "Demonstration",
    "LeftOut",
    "Split",
    "Task",
    "TaskConfig",
    "addition",
    "jsonl",
    "reasoning_gym",
]
