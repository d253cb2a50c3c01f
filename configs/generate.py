# SPDX-License-Identifier: Apache-2.0
"""What a round samples: which problems, how many answers to each, and how."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from stages.samplers.base import SamplingConfig
from stages.settings import Settings, later


class ProblemsConfig(Settings):
    """Which train problems a round takes; `band` bounds the pass rate seen so far."""

    per_round: Literal["all"] | Annotated[int, Field(ge=1, le=10**9)] = 2000
    order: Literal["seeded", "split", "unsolved_first"] = "seeded"
    band: Annotated[tuple[float, float], Field(strict=False)] | None = None

    @model_validator(mode="after")
    def _band_is_a_range(self) -> "ProblemsConfig":
        if self.band is not None and not 0 <= self.band[0] <= self.band[1] <= 1:
            raise ValueError(f"band is {list(self.band)}: use [low, high] with 0 ≤ low ≤ high ≤ 1")
        return self


Turn = Annotated[tuple[int, int], Field(strict=False)]


class GenerateConfig(Settings):
    """`n` completions for each of a round's problems.

    `max_tokens` lets answers grow: [[4, 512], [8, 1024]] takes the place of sampling.max_tokens
    from round 4 and from round 8 on.
    """

    problems: ProblemsConfig = ProblemsConfig()
    n: int = Field(1, ge=1, le=65_536)
    sampling: SamplingConfig = SamplingConfig()
    max_tokens: Annotated[tuple[Turn, ...], Field(strict=False)] = later(())

    @model_validator(mode="after")
    def _rounds_rise(self) -> "GenerateConfig":
        rounds = [round_ for round_, _ in self.max_tokens]
        if rounds != sorted({*rounds}) or any(min(turn) < 1 for turn in self.max_tokens):
            raise ValueError(
                f"max_tokens is {[list(turn) for turn in self.max_tokens]}: give [round, tokens] "
                "from 1 on with rising rounds, such as [[4, 512], [8, 1024]]"
            )
        return self

    def sampling_of(self, round_: int) -> SamplingConfig:
        """The sampling parameters of a round."""
        said = [tokens for first, tokens in self.max_tokens if first <= round_]
        return self.sampling.model_copy(update={"max_tokens": said[-1]}) if said else self.sampling
