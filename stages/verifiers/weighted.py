# SPDX-License-Identifier: Apache-2.0
"""`weighted`: the score is Σ weight × score of the parts; a part of weight 0 is a metric.

The first part that tells right from wrong decides the status, the extracted answer and the reason,
whatever its weight. A part that could not judge and has a weight leaves the answer unjudged.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from stages.settings import identity_json
from stages.verifiers import all as every
from stages.verifiers import any as some
from stages.verifiers.base import Judgement, VerifierPart
from stages.verifiers.composed import Composed, ComposedConfig
from stages.verifiers.parts import PlainConfig

Part = Annotated[PlainConfig | every.Config | some.Config, Field(discriminator="type")]
Weight = Annotated[float, Field(ge=-1e6, le=1e6)]


class Config(ComposedConfig):
    """`parts` are verifiers, each a section of its own; `weights` has one number for each."""

    type: Literal["weighted"]
    parts: Annotated[tuple[Part, ...], Field(strict=False, min_length=1)]
    weights: Annotated[tuple[Weight, ...], Field(strict=False)]

    @model_validator(mode="after")
    def _each_part_has_a_weight(self) -> "Config":
        if len(self.weights) != len(self.parts):
            raise ValueError(
                f"weights has {len(self.weights)} values for {len(self.parts)} parts: give one for "
                "each, 0 for a metric"
            )
        if not any(self.weights):
            raise ValueError(
                f"weights are {list(self.weights)}, so every reward is 0 and nothing can be "
                "learned: give one part at least a weight other than 0"
            )
        return self

    def build(self) -> VerifierPart:
        return Weighted([part.build() for part in self.parts], self.weights, identity_json(self))


class Weighted(Composed):
    """A sum of scores."""

    name = "weighted"

    def __init__(
        self, parts: Sequence[VerifierPart], weights: Sequence[float], config: str
    ) -> None:
        super().__init__(parts, weights, config)
        self._deciding = self._deciding[:1]

    def decide(self, judgements: Sequence[Judgement]) -> Judgement:
        return judgements[0]

    def combine(self, judgements: Sequence[Judgement]) -> float | None:
        total = 0.0
        for weight, judgement in zip(self._weights, judgements, strict=True):
            if weight and judgement.score is None:
                return None
            total += weight * (judgement.score or 0.0)
        return total

    def same_answer(self, one: str, other: str) -> bool:
        return self.deciding[0].same_answer(one, other)
