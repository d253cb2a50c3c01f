# SPDX-License-Identifier: Apache-2.0
"""Control arms, rewards that take the place of the verifier's score: one file each, one line."""

from typing import Annotated

from pydantic import Field

from stages.rewards import format_only, incorrect, random
from stages.rewards.base import Rewarded, RewardPart

RewardConfig = Annotated[
    format_only.Config | incorrect.Config | random.Config, Field(discriminator="type")
]

__all__ = ["RewardConfig", "RewardPart", "Rewarded", "format_only", "incorrect", "random"]
