# SPDX-License-Identifier: Apache-2.0
"""Tasks: one file each, one line here."""

from stages.tasks import addition
from stages.tasks.base import Demonstration, Split, Task

TaskConfig = addition.Config

__all__ = ["Demonstration", "Split", "Task", "TaskConfig", "addition"]
