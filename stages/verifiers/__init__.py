# SPDX-License-Identifier: Apache-2.0
"""Verifiers: one file each, one line here."""

from stages.verifiers import exact
from stages.verifiers.base import Judgement, VerifierPart

VerifierConfig = exact.Config

__all__ = ["Judgement", "VerifierConfig", "VerifierPart", "exact"]
