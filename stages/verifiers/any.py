# SPDX-License-Identifier: Apache-2.0
"""`any`: an answer is right if one part that tells right from wrong says so.

The score is the greatest of the parts' scores, those of form and length too. Where none says right
and one could not judge, the answer is unjudged.
"""

from collections.abc import Sequence
from typing import Literal

from stages.settings import identity_json
from stages.verifiers.all import Parts
from stages.verifiers.base import Judgement, VerifierPart
from stages.verifiers.composed import Composed, ComposedConfig


class Config(ComposedConfig):
    """`parts` are verifiers, each a section of its own."""

    type: Literal["any"]
    parts: Parts

    def build(self) -> VerifierPart:
        return Any(
            [part.build() for part in self.parts], [1.0] * len(self.parts), identity_json(self)
        )


class Any(Composed):
    """Right where one is."""

    name = "any"

    def decide(self, judgements: Sequence[Judgement]) -> Judgement:
        for status in ("correct", "unjudged"):
            for judgement in judgements:
                if judgement.status == status:
                    return judgement
        return next((one for one in judgements if one.answered), judgements[0])

    def combine(self, judgements: Sequence[Judgement]) -> float | None:
        return max((one.score for one in judgements if one.score is not None), default=None)

    def same_answer(self, one: str, other: str) -> bool:
        return any(part.same_answer(one, other) for part in self.deciding)
