# SPDX-License-Identifier: Apache-2.0
"""`exact`: the text after the answer mark, blanks trimmed, equals the reference.

The last mark counts. Two marks with different answers are wrong (`two_answers`), as is no mark
at all. The work before the mark is not read: a lucky answer passes.
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from stages.settings import Settings, identity_json
from stages.verifiers.base import Answer, Judgement, OneByOne, VerifierPart


class Config(Settings):
    """`mark` stands before the answer, which runs to the end of its line."""

    type: Literal["exact"]
    mark: str = Field("#", min_length=1)

    def build(self) -> VerifierPart:
        return Exact(mark=self.mark, config=identity_json(self))


@dataclass(frozen=True, slots=True)
class Exact(OneByOne):
    """Judges by string equality."""

    mark: str
    config: str
    name: str = "exact"
    version: str = "1"
    trust: str = "strong"
    isolation: str = "none"

    def judge_one(self, answer: Answer) -> Judgement:
        expected = answer.reference.strip()
        if not expected:
            return Judgement("unjudged", None, None, "empty_reference")
        parts = answer.completion.split(self.mark)[1:]
        answers = [part.split("\n", 1)[0].strip() for part in parts]
        if not any(answers):
            return Judgement("wrong", 0.0, None, "no_answer")
        found = answers[-1]
        if len(set(answers)) > 1:
            return Judgement("wrong", 0.0, found, "two_answers")
        if self.same_answer(found, expected):
            return Judgement("correct", 1.0, found, "match")
        return Judgement("wrong", 0.0, found, "mismatch")

    def same_answer(self, one: str, other: str) -> bool:
        return one.strip() == other.strip()
