# SPDX-License-Identifier: Apache-2.0
"""What a verifier is: a function from the answers to one problem to a judgement of each.

A verifier never raises on model text. What the completion did is `wrong` with a reason;
`unjudged` is for failures on our side, such as a reference that cannot be used. `status` says
whether an answer is right: measures, pairs and filters go by it. `score` is its reward.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stages.rows import Status

Component = tuple[str, float, float]


@dataclass(frozen=True, slots=True)
class Answer:
    """A completion to be judged against the reference.

    `tokens` counts its tokens, the end token too; `truncated`: it was cut off there; `key` names
    its slot. `status` is what was found of it so far, for rules that ask whether it is right.
    """

    reference: str
    completion: str
    tokens: int = 0
    truncated: bool = False
    key: str = ""
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verifier's answer; `components` are (name, value, weight) parts of the score."""

    status: Status
    score: float | None
    extracted: str | None
    reason: str
    components: tuple[Component, ...] = field(default=())

    @property
    def answered(self) -> bool:
        """Whether the completion gives one answer in the form that is asked for."""
        return self.extracted is not None and self.reason not in ("two_answers", "truncated")


class VerifierPart(Protocol):
    """A built verifier.

    `decides`: its status tells right answers from wrong ones. `group`: how many answers to a
    problem it compares, asking which are right; None where it looks at each by itself.
    """

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def config(self) -> str: ...
    @property
    def trust(self) -> str: ...
    @property
    def isolation(self) -> str: ...
    @property
    def decides(self) -> bool: ...
    @property
    def group(self) -> int | None: ...

    def judge(self, answers: Sequence[Answer]) -> list[Judgement]:
        """Judge answers to one problem, sampled alike, in their order."""
        ...

    def same_answer(self, one: str, other: str) -> bool:
        """Whether two extracted answers are equivalent."""
        ...


class OneByOne:
    """A verifier that looks at each answer by itself; one that was cut off is wrong."""

    __slots__ = ()
    decides = True
    group: int | None = None

    def judge(self, answers: Sequence[Answer]) -> list[Judgement]:
        return [
            self.cut_off(answer) if answer.truncated else self.judge_one(answer)
            for answer in answers
        ]

    def judge_one(self, answer: Answer) -> Judgement:
        """Judge a finished answer."""
        raise NotImplementedError

    def cut_off(self, answer: Answer) -> Judgement:
        """Judge an answer that was cut off."""
        return Judgement("wrong", 0.0, None, "truncated")


def judge_text(verifier: VerifierPart, reference: str, completion: str) -> Judgement:
    """Judge a finished text by itself."""
    (judgement,) = verifier.judge([Answer(reference, completion)])
    return judgement
