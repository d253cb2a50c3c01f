# SPDX-License-Identifier: Apache-2.0
"""What a verifier is: a function from a completion and a reference to a judgement.

A verifier never raises on model text. What the completion did is `wrong` with a reason;
`unjudged` is for failures on our side, such as a reference that cannot be used.
"""

from dataclasses import dataclass, field
from typing import Protocol

from stages.rows import Status


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verifier's answer; `components` are (name, value, weight) parts of the score."""

    status: Status
    score: float | None
    extracted: str | None
    reason: str
    components: tuple[tuple[str, float, float], ...] = field(default=())


class VerifierPart(Protocol):
    """A built verifier."""

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

    def judge(self, reference: str, completion: str) -> Judgement:
        """Judge a finished completion against the reference answer."""
        ...

    def same_answer(self, one: str, other: str) -> bool:
        """Whether two extracted answers are equivalent."""
        ...
