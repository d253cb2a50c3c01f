# SPDX-License-Identifier: Apache-2.0
"""`incorrect`: 1 for an answer that is given in the form asked for and wrong, else 0."""

from dataclasses import dataclass
from typing import Literal

from stages.rewards.base import RewardPart
from stages.settings import Settings, identity_json
from stages.verifiers.base import Answer, Judgement


class Config(Settings):
    """No settings."""

    type: Literal["incorrect"]

    def build(self) -> RewardPart:
        return Incorrect(identity_json(self))


@dataclass(frozen=True, slots=True)
class Incorrect:
    """Rewards wrong answers; none at all, two of them, or one that was cut off gets nothing."""

    config: str
    name: str = "incorrect"
    version: str = "1"

    def reward(self, answer: Answer, judgement: Judgement) -> float:
        return float(judgement.status == "wrong" and judgement.answered)
