# SPDX-License-Identifier: Apache-2.0
"""What a control arm is: a reward for an answer that the verifier has judged.

Training sees it in place of the verifier's score; what is right and what is measured stays the
verifier's. Such arms tell what a reward teaches from what training on any answers of one's own
does (arXiv 2506.10947).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from stages.settings import canonical
from stages.verifiers.base import Answer, Judgement, VerifierPart
from stages.verifiers.composed import components


class RewardPart(Protocol):
    """A built control arm."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def config(self) -> str: ...

    def reward(self, answer: Answer, judgement: Judgement) -> float:
        """The reward of an answer that could be judged."""
        ...


@dataclass(frozen=True, slots=True)
class Rewarded:
    """A verifier whose score is a control arm's; its own score and parts stay as metrics."""

    verifier: VerifierPart
    arm: RewardPart

    @property
    def name(self) -> str:
        return f"{self.verifier.name}+{self.arm.name}"

    @property
    def version(self) -> str:
        return f"{self.verifier.version}+{self.arm.version}"

    @property
    def config(self) -> str:
        parts = {"verifier": self.verifier.config, "reward": self.arm.config}
        return canonical({name: json.loads(text) for name, text in parts.items()})

    @property
    def trust(self) -> str:
        return self.verifier.trust

    @property
    def isolation(self) -> str:
        return self.verifier.isolation

    @property
    def decides(self) -> bool:
        return self.verifier.decides

    @property
    def group(self) -> int | None:
        return self.verifier.group

    def judge(self, answers: Sequence[Answer]) -> list[Judgement]:
        judged = self.verifier.judge(answers)
        return [self._rewarded(*pair) for pair in zip(answers, judged, strict=True)]

    def _rewarded(self, answer: Answer, judgement: Judgement) -> Judgement:
        if judgement.status == "unjudged":
            return judgement
        reward = self.arm.reward(answer, judgement)
        own = components(self.verifier.name, 0.0, judgement)
        return replace(judgement, score=reward, components=((self.arm.name, reward, 1.0), *own))

    def same_answer(self, one: str, other: str) -> bool:
        return self.verifier.same_answer(one, other)
