# SPDX-License-Identifier: Apache-2.0
"""Policies: one file each, one line here."""

from typing import Annotated

from pydantic import Field

from stages.policies import folder, gguf, hub, lora, tiny
from stages.policies.base import Policy

PolicyConfig = Annotated[
    tiny.Config | folder.Config | hub.Config | gguf.Config | lora.Config,
    Field(discriminator="type"),
]

__all__ = ["Policy", "PolicyConfig", "folder", "gguf", "hub", "lora", "tiny"]
