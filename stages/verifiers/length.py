# SPDX-License-Identifier: Apache-2.0
"""`length`: a reward for the number of tokens, the end token too.

`soft_overlong` is DAPO's (arXiv 2503.14476, eq. 13): 0 up to l_max − l_cache tokens, from there
((l_max − l_cache) − tokens) / l_cache, and −1 beyond l_max. `among(n)` is Kimi k1.5's (arXiv
2501.12599, section 2.3.3) over the n answers to a problem: right ones get λ = 0.5 − (tokens − min)
/ (max − min), wrong ones min(0, λ), and all 0 where they are of one length. Answers that were cut
off count with the tokens they have. It tells no right answer from a wrong one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, field_validator, model_validator

from stages.settings import Settings, identity_json
from stages.verifiers.base import Answer, Judgement, VerifierPart

AMONG = re.compile(r"among\(([1-9][0-9]{0,5})\)")


class Config(Settings):
    """`l_max` and `l_cache` are the tokens of `soft_overlong`; `among(n)` has n of generate.n."""

    type: Literal["length"]
    rule: str = "soft_overlong"
    l_max: int | None = Field(None, ge=1)
    l_cache: int | None = Field(None, ge=1)

    @field_validator("rule")
    @classmethod
    def _rule_is_known(cls, rule: str) -> str:
        if rule != "soft_overlong" and (not AMONG.fullmatch(rule) or rule == "among(1)"):
            raise ValueError(
                f"{rule!r} is not allowed: use soft_overlong, or among(n) with n from 2 on, the "
                "answers to a problem that are compared: among(8)"
            )
        return rule

    @model_validator(mode="after")
    def _limits_fit(self) -> "Config":
        limits = {"l_max": self.l_max, "l_cache": self.l_cache}
        for name, value in limits.items():
            if self.rule == "soft_overlong" and value is None:
                raise ValueError(
                    f"{name} is missing: soft_overlong takes l_max and l_cache in tokens (DAPO: "
                    "20480 and 4096)"
                )
            if self.rule != "soft_overlong" and value is not None:
                raise ValueError(
                    f"{name} is {value}, and {self.rule} has no such limit: leave it out"
                )
        if self.l_max is not None and self.l_cache is not None and self.l_cache >= self.l_max:
            raise ValueError(
                f"l_cache is {self.l_cache}, l_max is {self.l_max}: the penalty begins at l_max − "
                "l_cache tokens, use an l_cache below l_max"
            )
        return self

    def build(self) -> VerifierPart:
        among = AMONG.fullmatch(self.rule)
        group = int(among[1]) if among else None
        return Length(self.l_max or 0, self.l_cache or 0, group, identity_json(self))


@dataclass(frozen=True, slots=True)
class Length:
    """Rewards by tokens: `group` answers compared with each other, or each by itself (None)."""

    l_max: int
    l_cache: int
    group: int | None
    config: str
    name: str = "length"
    version: str = "1"
    trust: str = "weak"
    isolation: str = "none"
    decides: bool = False

    def judge(self, answers: Sequence[Answer]) -> list[Judgement]:
        lengths = [answer.tokens for answer in answers]
        if self.group is None:
            rewards = [soft_overlong(tokens, self.l_max, self.l_cache) for tokens in lengths]
        else:
            rewards = among(lengths, [answer.status == "correct" for answer in answers])
        return [
            Judgement("wrong", reward, None, "too_long")
            if reward < 0
            else Judgement("correct", reward, None, "length_kept")
            for reward in rewards
        ]

    def same_answer(self, one: str, other: str) -> bool:
        return one.strip() == other.strip()


def soft_overlong(tokens: int, l_max: int, l_cache: int) -> float:
    """DAPO's penalty of a length, from 0 to −1."""
    free = l_max - l_cache
    return 0.0 if tokens <= free else max(-1.0, (free - tokens) / l_cache)


def among(lengths: Sequence[int], right: Sequence[bool]) -> list[float]:
    """Kimi k1.5's rewards of the answers to one problem, from −0.5 to 0.5."""
    least, most = min(lengths, default=0), max(lengths, default=0)
    if least == most:
        return [0.0 for _ in lengths]
    scaled = [0.5 - (tokens - least) / (most - least) for tokens in lengths]
    return [
        value if is_right else min(0.0, value)
        for value, is_right in zip(scaled, right, strict=True)
    ]
