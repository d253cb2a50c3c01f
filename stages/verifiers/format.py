# SPDX-License-Identifier: Apache-2.0
"""`format`: reasoning in <think>…</think>, once and first, and an answer after it.

1 where the form is kept, else 0 (DeepSeek-R1, arXiv 2501.12948, section 2.2). Reasoning and answer
must each have a character that can be seen; what they say is not read. So it is a part of a reward
and tells no right answer from a wrong one.
"""

from dataclasses import dataclass
from typing import Literal

from stages.settings import Settings, identity_json
from stages.verifiers.base import Answer, Judgement, OneByOne, VerifierPart
from stages.verifiers.marks import MAX_CHARS, has_text

OPEN, CLOSE = "<think>", "</think>"


class Config(Settings):
    """`opened`: the prompt ends with <think>, so that a completion begins inside it."""

    type: Literal["format"]
    opened: bool = False

    def build(self) -> VerifierPart:
        return Format(self.opened, identity_json(self))


@dataclass(frozen=True, slots=True)
class Format(OneByOne):
    """Judges by form alone."""

    opened: bool
    config: str
    name: str = "format"
    version: str = "1"
    trust: str = "weak"
    isolation: str = "none"

    decides = False

    def judge_one(self, answer: Answer) -> Judgement:
        text = OPEN + answer.completion if self.opened else answer.completion
        for tag in (OPEN, CLOSE):
            if (count := text.count(tag)) != 1:
                return _broken("repeated_tag" if count else "no_tag")
        before, _, rest = text.partition(OPEN)
        reasoning, closed, said = rest.partition(CLOSE)
        if not closed:
            return _broken("tags_in_wrong_order")
        if before.strip():
            return _broken("text_before")
        if not has_text(reasoning):
            return _broken("empty_reasoning")
        if not has_text(said):
            return _broken("no_answer")
        return Judgement("correct", 1.0, said.strip()[:MAX_CHARS], "form_kept")

    def same_answer(self, one: str, other: str) -> bool:
        return one.strip() == other.strip()


def _broken(reason: str) -> Judgement:
    return Judgement("wrong", 0.0, None, reason)
