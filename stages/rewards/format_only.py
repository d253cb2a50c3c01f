# SPDX-License-Identifier: Apache-2.0
"""`format_only`: 1 for one answer in the form that the verifier asks for, right or not, else 0."""

from dataclasses import dataclass
from typing import Literal

from stages.rewards.base import RewardPart
from stages.settings import Settings, identity_json
from stages.verifiers.base import Answer, Judgement


class Config(Settings):
    """No settings."""

    type: Literal["format_only"]

    def build(self) -> RewardPart:
        return FormatOnly(identity_json(self))


@dataclass(frozen=True, slots=True)
class FormatOnly:
    """Rewards whatever the verifier can read an answer from."""

    config: str
    name: str = "format_only"
    version: str = "1"

    def reward(self, answer: Answer, judgement: Judgement) -> float:
        return float(judgement.answered)
