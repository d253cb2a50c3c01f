# SPDX-License-Identifier: Apache-2.0
"""Verifiers that stand alone or are a part of `all`, `any` and `weighted`: one line each."""

from stages.verifiers import choice, distance, exact, format, length, numeric

PlainConfig = (
    exact.Config | numeric.Config | choice.Config | distance.Config | format.Config | length.Config
)
