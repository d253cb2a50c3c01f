# SPDX-License-Identifier: Apache-2.0
"""Verifiers: one file each, one line here."""

from typing import Annotated

from pydantic import Field

from stages.verifiers import choice, exact, numeric
from stages.verifiers.base import Answer, Judgement, VerifierPart, judge_text

VerifierConfig = Annotated[
    exact.Config | numeric.Config | choice.Config, Field(discriminator="type")
]

__all__ = [
    "Answer",
    "Judgement",
    "VerifierConfig",
    "VerifierPart",
    "choice",
    "exact",
    "judge_text",
    "numeric",
]
