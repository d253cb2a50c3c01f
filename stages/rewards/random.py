# SPDX-License-Identifier: Apache-2.0
"""`random`: 1 with probability p, else 0, drawn for each slot by itself.

An answer that is judged again, or in another order, gets the same.
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from stages.ids import hash_text
from stages.rewards.base import RewardPart
from stages.settings import Settings, identity_json
from stages.verifiers.base import Answer, Judgement


class Config(Settings):
    """`p` is the probability of a reward, `seed` that of the draws."""

    type: Literal["random"]
    p: float = Field(0.5, ge=0, le=1)
    seed: int = Field(0, ge=0)

    def build(self) -> RewardPart:
        return Random(self.p, self.seed, identity_json(self))


@dataclass(frozen=True, slots=True)
class Random:
    """Rewards by a draw."""

    p: float
    seed: int
    config: str
    name: str = "random"
    version: str = "1"

    def reward(self, answer: Answer, judgement: Judgement) -> float:
        drawn = int(hash_text(f"reward|{self.seed}|{answer.key}")[:13], 16) / 16**13
        return float(drawn < self.p)
