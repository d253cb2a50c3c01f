# SPDX-License-Identifier: Apache-2.0
"""What a sampler is: prompts as token ids in, completions as token ids out, joined by id."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import Field

from stages.chat import Messages
from stages.ids import Id
from stages.rows import Finish
from stages.settings import Settings, later


class SamplingConfig(Settings):
    """Sampling parameters; temperature 0 is greedy, top_p 1 and top_k 0 cut nothing.

    A completion ends at one of the `stop` strings: its text is cut there, its token ids are not.
    """

    temperature: float = Field(0.0, ge=0.0, le=10.0)
    top_p: float = Field(1.0, gt=0.0, le=1.0)
    top_k: int = Field(0, ge=0, lt=2**31)
    max_tokens: int = Field(96, ge=1, le=10**6)
    stop: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False)] = later(
        ()
    )

    @property
    def uncut(self) -> bool:
        """Whether every token may be drawn."""
        return (self.top_p, self.top_k) == (1.0, 0)


@dataclass(frozen=True, slots=True)
class Request:
    """A slot to fill: prompt token ids and the slot's own seed.

    `messages` (role, content) are what the ids were written from, for servers that take no ids.
    """

    trajectory_id: Id
    prompt_ids: tuple[int, ...]
    seed: int
    messages: Messages = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """A filled slot. `logprobs`: nats per token under the distribution sampled from.

    `from_text`: the engine gave text alone, the ids are the policy's reading of it, and there may
    be no `logprobs`.
    """

    trajectory_id: Id
    token_ids: tuple[int, ...]
    text: str
    logprobs: tuple[float, ...] | None
    finish_reason: Finish
    from_text: bool = False


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

    def sample(self, requests: Sequence[Request], sampling: SamplingConfig) -> Iterator[Completion]:
        """Fill the slots: one completion per request, in any order, joined by trajectory_id."""
        ...

    def render(self, messages: Messages) -> tuple[int, ...] | None:
        """A chat as the engine's own template and tokenizer write it; None where it cannot say."""
        ...

    def close(self) -> None:
        """End what the engine holds: processes, devices, connections."""
        ...


class SamplerSettings(Settings):
    """What every sampler's config has: keyword arguments for the policy's chat template."""

    chat_template_kwargs: dict[str, Any] = later({})

    @property
    def holds_weights(self) -> bool:
        """Whether its answers come from a policy's weights."""
        return True

    @property
    def starts_process(self) -> bool:
        """Whether each policy that it samples with is loaded by a process of its own."""
        return False


def passed_through(given: dict[str, Any], owned: Mapping[str, str]) -> dict[str, Any]:
    """Arguments that go to an engine as they are: JSON, and none of those that we own."""
    for name in given:
        if name in owned:
            raise ValueError(f"{name!r} cannot be set here: {owned[name]}")
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"not JSON ({error}): use text, numbers, lists and keys") from None
    return given


class SamplerConfig(Protocol):
    """A sampler's config; building it loads the policy.

    A shard of `shard_size` completions is kept at a time; `batch_size` requests are handed over
    at once (None: all of a step's).
    """

    shard_size: int

    @property
    def batch_size(self) -> int | None: ...

    def build(self, model: Path) -> Engine: ...
