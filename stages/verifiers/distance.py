# SPDX-License-Identifier: Apache-2.0
"""`distance`: how far something countable is from the number that is wanted.

The score is minus the difference, at most `most`: "write five lines", seven written, is −2. Right
is the wanted number itself. Counted is what has a character that can be seen: lines end at a line
break, words at blanks, paragraphs at a line without text.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from stages.settings import Settings, identity_json
from stages.verifiers.base import Answer, Judgement, OneByOne, VerifierPart
from stages.verifiers.marks import has_text

COUNTS: Mapping[str, Callable[[str], int]] = {
    "lines": lambda text: sum(map(has_text, text.split("\n"))),
    "words": lambda text: sum(map(has_text, text.split())),
    "paragraphs": lambda text: sum(map(has_text, re.split(r"\n[^\S\n]*\n", text))),
    "characters": lambda text: sum(map(has_text, text)),
}
NUMBER = re.compile(r"[1-9][0-9]{0,8}")


class Config(Settings):
    """`of` is counted, `wanted` is a number or stands in each problem's reference.

    Only what follows the last `after` counts, where it is set. `most` bounds the distance; None is
    the wanted number, as far as an empty answer is.
    """

    type: Literal["distance"]
    of: Literal["lines", "words", "paragraphs", "characters"] = "lines"
    wanted: Annotated[int, Field(ge=1, lt=10**9)] | Literal["reference"]
    most: int | None = Field(None, ge=1)
    after: str | None = Field(None, min_length=1)

    def build(self) -> VerifierPart:
        return Distance(self.of, self.wanted, self.most, self.after, identity_json(self))


@dataclass(frozen=True, slots=True)
class Distance(OneByOne):
    """Judges by a count."""

    of: str
    wanted: int | Literal["reference"]
    most: int | None
    after: str | None
    config: str
    name: str = "distance"
    version: str = "1"
    trust: str = "weak"
    isolation: str = "none"

    def judge_one(self, answer: Answer) -> Judgement:
        wanted = self._wanted(answer)
        if wanted is None:
            return Judgement("unjudged", None, None, "reference_no_count")
        text = answer.completion
        if self.after is not None:
            _, found, text = text.rpartition(self.after)
            if not found:
                return Judgement("wrong", -float(self.most or wanted), None, "no_answer")
        count = COUNTS[self.of](text)
        if count == wanted:
            return Judgement("correct", 0.0, str(count), "match")
        reason = "too_few" if count < wanted else "too_many"
        score = -float(min(abs(count - wanted), self.most or wanted))
        return Judgement("wrong", score, str(count), reason)

    def cut_off(self, answer: Answer) -> Judgement:
        """As bad as can be: what is not finished has no count."""
        worst = self.most or self._wanted(answer) or 1
        return Judgement("wrong", -float(worst), None, "truncated")

    def same_answer(self, one: str, other: str) -> bool:
        return one.strip() == other.strip()

    def _wanted(self, answer: Answer) -> int | None:
        if self.wanted != "reference":
            return self.wanted
        text = answer.reference.strip()
        return int(text) if NUMBER.fullmatch(text) else None
