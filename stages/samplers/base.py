# SPDX-License-Identifier: Apache-2.0
"""What a sampler is: prompts as token ids in, completions as token ids out, joined by id."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import Field

from stages.ids import Id
from stages.rows import Finish
from stages.settings import Settings


class SamplingConfig(Settings):
    """Sampling parameters; temperature 0 is greedy, top_p 1 and top_k 0 cut nothing."""

    temperature: float = Field(0.0, ge=0.0, le=10.0)
    top_p: float = Field(1.0, gt=0.0, le=1.0)
    top_k: int = Field(0, ge=0, lt=2**31)
    max_tokens: int = Field(96, ge=1, le=10**6)


@dataclass(frozen=True, slots=True)
class Request:
    """A slot to fill: prompt token ids and the slot's own seed."""

    trajectory_id: Id
    prompt_ids: tuple[int, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class Completion:
    """A filled slot. `logprobs`: nats per token under the distribution sampled from."""

    trajectory_id: Id
    token_ids: tuple[int, ...]
    text: str
    logprobs: tuple[float, ...]
    finish_reason: Finish


class Engine(Protocol):
    """A sampler with a policy loaded; `deterministic` means a slot's text follows from its seed."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def weight_version(self) -> str: ...
    @property
    def deterministic(self) -> bool: ...

    def sample(self, requests: Sequence[Request], sampling: SamplingConfig) -> list[Completion]:
        """Fill the slots: one completion per request, in any order, joined by trajectory_id."""
        ...


class SamplerConfig(Protocol):
    """A sampler's config; building it loads the policy."""

    shard_size: int

    def build(self, model: Path) -> Engine: ...
