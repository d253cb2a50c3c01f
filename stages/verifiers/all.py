# SPDX-License-Identifier: Apache-2.0
"""`all`: an answer is right if every part that tells right from wrong says so.

The score is the least of the parts' scores, those of form and length too: 1 needs all of them.
One part that could not judge leaves the answer unjudged.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from stages.settings import identity_json
from stages.verifiers.base import Judgement, VerifierPart
from stages.verifiers.composed import Composed, ComposedConfig
from stages.verifiers.parts import PlainConfig

Parts = Annotated[
    tuple[Annotated[PlainConfig, Field(discriminator="type")], ...],
    Field(strict=False, min_length=1),
]


class Config(ComposedConfig):
    """`parts` are verifiers, each a section of its own."""

    type: Literal["all"]
    parts: Parts

    def build(self) -> VerifierPart:
        return All(
            [part.build() for part in self.parts], [1.0] * len(self.parts), identity_json(self)
        )


class All(Composed):
    """Right where all are."""

    name = "all"

    def decide(self, judgements: Sequence[Judgement]) -> Judgement:
        for status in ("unjudged", "wrong"):
            for judgement in judgements:
                if judgement.status == status:
                    return judgement
        return judgements[0]

    def combine(self, judgements: Sequence[Judgement]) -> float | None:
        scores = [judgement.score for judgement in judgements]
        judged = [score for score in scores if score is not None]
        return min(judged) if len(judged) == len(scores) else None

    def same_answer(self, one: str, other: str) -> bool:
        return all(part.same_answer(one, other) for part in self.deciding)
