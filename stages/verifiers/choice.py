# SPDX-License-Identifier: Apache-2.0
r"""`choice`: the letter that the completion settles on equals the reference's.

A letter is spelled bare (B), with a bracket, a stop or a colon (`(B)`, `B)`, `B.`, `B:`), in stars
(`**B**`) or in \text{…}; capitals and small letters are the same. A bare letter must end there: at
the end of the line, at punctuation, a bracket or a dash, or before because, since, as, so, and,
or, "is correct". So the article in "the answer is a dog" is no letter.

With a `mark`, the letter stands right after it, and the mark's answers are all that counts.
Without one, the first of these that has a letter:
1. what is marked as the answer, anywhere: \boxed{B}, "answer is B", "Answer: B", "the correct
   option is B";
2. the last line with text: it begins with the letter (`(B) Paris`), or has "option B", "I choose
   B" or "B is correct".
Different letters that are marked alike are wrong (`two_answers`), as are "A or B" and "(A) (B)"; a
letter outside `letters` is wrong (`other_letter`), and so is none (`no_answer`).
"""

import re
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, field_validator

from stages.settings import Settings, identity_json
from stages.verifiers.base import Answer, Judgement, OneByOne, VerifierPart
from stages.verifiers.marks import after

_OPEN = r"(?:[*_`$\s]{0,9}[(\[{]{0,2}[*_`$]{0,3})"
_RIGHT = r"\sis\s(?:the\s)?(?:correct|right|best)\b"
_BARE_END = (
    r"(?=\s*$|\s*\n|[.,;:!?](?:\s|$)|\s+(?:because|since|as|so|and|or)\b|\s\(|\s[-–—]\s"
    rf"|{_RIGHT})"
)
_LETTER = (
    rf"{_OPEN}(?:(?:option|choice|letter)\s{{1,9}}{_OPEN})?"
    rf"(?P<letter>[A-Za-z])(?:[*_`$]{{0,3}}[)\]}}]{{1,2}}|[*_`$]{{1,3}}|[.:](?=\s|$)|{_BARE_END})"
    r"[*_`$.)\]}]{0,4}"
)
_NEXT = re.compile(
    r"(?:\s{0,9}(?:,\s{0,9}(?:and|or)\b|,|/|&|and\b|or\b)|(?!\s*\n))" + _LETTER, re.I
)
_FIRST = re.compile(_LETTER, re.I)
_CUE = re.compile(
    r"\b(?:answer(?:\s(?:choice|option))?|(?:correct|right|best|final)\s(?:choice|option|letter))"
    r"[*_`\s]{0,9}(?:(?:is|was|must\sbe|should\sbe|would\sbe)\b[*_`\s]{0,9}[:=]?|[:=])[*_`\s]{0,9}"
    r"(?:(?:therefore|thus|clearly|likely|most\slikely|indeed|the|option|choice|letter)\s){0,3}",
    re.I,
)
_OPTION = re.compile(r"\b(?:option|choice|choose|pick|select)\b\s{0,9}", re.I)
_CORRECT = re.compile(rf"(?<![\w*(])(?=[*(]{{0,3}}[A-Z][*)]{{0,3}}{_RIGHT})")
_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)\s{0,9}\{([^{}]{0,99})\}")


class Config(Settings):
    """`letters` are the options; `mark`, where set, stands before the answer."""

    type: Literal["choice"]
    letters: str = Field("ABCDE", pattern=r"^[A-Z]{2,26}$")
    mark: str | None = Field(None, min_length=1)

    @field_validator("letters")
    @classmethod
    def _each_letter_once(cls, letters: str) -> str:
        if len(set(letters)) < len(letters):
            raise ValueError(f"{letters!r} has a letter twice: name each option once, as in ABCDE")
        return letters

    def build(self) -> VerifierPart:
        return Choice(self.letters, self.mark, identity_json(self))


@dataclass(frozen=True, slots=True)
class Choice(OneByOne):
    """Judges by the option's letter."""

    letters: str
    mark: str | None
    config: str
    name: str = "choice"
    version: str = "1"
    trust: str = "strong"
    isolation: str = "none"

    def judge_one(self, answer: Answer) -> Judgement:
        completion, expected = answer.completion, _whole(answer.reference)
        if expected is None or expected not in self.letters:
            return Judgement("unjudged", None, None, "reference_no_letter")
        found = _marked(completion, self.mark) if self.mark else _settled(completion)
        if not found or not found[-1]:
            return Judgement("wrong", 0.0, None, "no_answer")
        last = found[-1]
        if len(set(found)) > 1:
            return Judgement("wrong", 0.0, last, "two_answers")
        if last not in self.letters:
            return Judgement("wrong", 0.0, last, "other_letter")
        if last == expected:
            return Judgement("correct", 1.0, last, "match")
        return Judgement("wrong", 0.0, last, "mismatch")

    def same_answer(self, one: str, other: str) -> bool:
        first, second = _whole(one), _whole(other)
        return one.strip() == other.strip() if None in (first, second) else first == second


def _whole(text: str) -> str | None:
    """The letter that a text begins with, an option's text after it allowed; None for others."""
    letters = _letters(_TEXT.sub(r"\1", text.strip()), 0)
    return letters[0] if len(set(letters)) == 1 else None


def _letters(text: str, start: int) -> list[str]:
    """The letter that stands at a place, and those joined to it by a comma, and, or."""
    found = _FIRST.match(text, start)
    letters = []
    while found:
        letters.append(found[1].upper())
        found = _NEXT.match(text, found.end())
    return letters


def _marked(text: str, mark: str) -> list[str]:
    """The letters after each mark; an empty text for a mark that none follows."""
    answers = [_TEXT.sub(r"\1", answer) for answer in after(text, mark)]
    return [letter for answer in answers for letter in _letters(answer, 0) or [""]]


def _settled(text: str) -> list[str]:
    """The letters that an unmarked text settles on."""
    boxed = [letter for letter in _marked(text, "\\boxed{") if letter]
    said = [letter for cue in _CUE.finditer(text) for letter in _letters(text, cue.end())]
    if boxed or said:
        return boxed + said
    line = text.rstrip().rpartition("\n")[2].strip()
    places = [0, *(m.end() for pattern in (_OPTION, _CORRECT) for m in pattern.finditer(line))]
    return [letter for place in places for letter in _letters(line, place)]
