# SPDX-License-Identifier: Apache-2.0
"""Samplers: one file each, one line here."""

from typing import Annotated

from pydantic import Field

from stages.samplers import scripted, transformers
from stages.samplers.base import Completion, Engine, Request, SamplingConfig

SamplerConfig = Annotated[transformers.Config | scripted.Config, Field(discriminator="type")]

__all__ = [
    "Completion",
    "Engine",
    "Request",
    "SamplerConfig",
    "SamplingConfig",
    "scripted",
    "transformers",
]
