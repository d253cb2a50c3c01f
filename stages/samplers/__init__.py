# SPDX-License-Identifier: Apache-2.0
"""Samplers: one file each, one line here."""

from typing import Annotated

from pydantic import Field

from stages.samplers import openai, scripted, transformers, vllm
from stages.samplers.base import Completion, Engine, Request, SamplingConfig

SamplerConfig = Annotated[
    transformers.Config | scripted.Config | vllm.Config | openai.Config, Field(discriminator="type")
]

__all__ = [
    "Completion",
    "Engine",
    "Request",
    "SamplerConfig",
    "SamplingConfig",
    "openai",
    "scripted",
    "transformers",
    "vllm",
]
