# SPDX-License-Identifier: Apache-2.0
r"""`numeric`: the number after the answer mark equals the reference, exactly.

The last mark counts. Marks with answers that are not the same are wrong (`two_answers`), as are
no mark (`no_answer`) and an answer that is not one number (`not_a_number`); stages/verifiers/
numbers.py says what a number may look like. Nothing is rounded: 0.33 is not 1/3.

A reference of 50% accepts 50% and 50. A reference of 50 or 0.5 accepts no percentage. Units are
left out, but known ones that contradict are wrong: 5 miles is not 5 km, 18 cents are not $18.
"""

import re
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, field_validator

from stages.settings import Settings, identity_json
from stages.verifiers.base import Answer, Judgement, OneByOne, VerifierPart
from stages.verifiers.marks import MAX_CHARS, after
from stages.verifiers.numbers import PERCENT, Number, changes, read

_LAST = re.compile(
    r"(?<![\w.,/^)\]])[-+−]?[$€£¥₹]?(?:[0-9]+ (?=[0-9]+/[0-9]))?"
    r"[0-9][0-9.,/]*+(?:[eE][-+]?[0-9]++)?[A-Za-z]*+(?P<behind>\s?%|\s[A-Za-z]++)?"
)


class Config(Settings):
    r"""`mark` stands before the answer, which runs to the end of its line.

    A mark that ends with a brace, such as `\boxed{`, ends at the matching one. `fallback`
    says what counts where there is no mark: nothing, or the last number of the text.
    """

    type: Literal["numeric"]
    mark: str = Field("####", min_length=1)
    fallback: Literal["none", "last_number"] = "none"

    @field_validator("mark")
    @classmethod
    def _box_is_open(cls, mark: str) -> str:
        if mark == "\\boxed":
            raise ValueError("'\\boxed' has no brace: write '\\boxed{'")
        return mark

    def build(self) -> VerifierPart:
        return Numeric(self.mark, self.fallback, identity_json(self))


@dataclass(frozen=True, slots=True)
class Numeric(OneByOne):
    """Judges by equality of fractions."""

    mark: str
    fallback: str
    config: str
    name: str = "numeric"
    version: str = "1"
    trust: str = "strong"
    isolation: str = "none"

    def judge_one(self, answer: Answer) -> Judgement:
        completion, expected = answer.completion, read(answer.reference)
        if expected is None:
            return Judgement("unjudged", None, None, "reference_no_number")
        answers = after(completion, self.mark)
        if not answers and self.fallback == "last_number":
            answers = _last_number(completion)
        if not any(answers):
            return Judgement("wrong", 0.0, None, "no_answer")
        last = answers[-1]
        found, shown = read(last), last[:MAX_CHARS]
        if not all(self.same_answer(answer, last) for answer in set(answers)):
            return Judgement("wrong", 0.0, shown, "two_answers")
        if found is None:
            return Judgement("wrong", 0.0, shown, "not_a_number")
        if expected.unit == PERCENT and found.unit is None:
            found = Number(found.value, PERCENT)
        if found.agrees(expected):
            return Judgement("correct", 1.0, shown, "match")
        return Judgement("wrong", 0.0, shown, "mismatch")

    def same_answer(self, one: str, other: str) -> bool:
        first, second = read(one), read(other)
        if first is None or second is None:
            return one.strip() == other.strip()
        return first.agrees(second)


def _last_number(text: str) -> list[str]:
    """The last number of a text, with the word behind it where that changes the number."""
    digit = max(map(text.rfind, "0123456789"))
    numbers = list(_LAST.finditer(text, max(digit - MAX_CHARS, 0), digit + MAX_CHARS))
    if not numbers:
        return []
    found = numbers[-1]
    behind = found["behind"] or ""
    kept = changes(behind.strip())
    return [found[0].strip() if kept else found[0].removesuffix(behind).rstrip(".,/")]
