# SPDX-License-Identifier: Apache-2.0
"""Verifiers: one file each, one line in parts.py; those that have parts of their own here."""

from typing import Annotated

from pydantic import Field

from stages.verifiers import all as every
from stages.verifiers import any as some
from stages.verifiers import choice, distance, exact, format, length, numeric, weighted
from stages.verifiers.base import Answer, Judgement, VerifierPart, judge_text
from stages.verifiers.parts import PlainConfig

VerifierConfig = Annotated[
    PlainConfig | every.Config | some.Config | weighted.Config, Field(discriminator="type")
]

__all__ = [
    "Answer",
    "Judgement",
    "VerifierConfig",
    "VerifierPart",
    "choice",
    "distance",
    "every",
    "exact",
    "format",
    "judge_text",
    "length",
    "numeric",
    "some",
    "weighted",
]
