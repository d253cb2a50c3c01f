# SPDX-License-Identifier: Apache-2.0
"""Import formats: one file each, one line here."""

from stages.imports import jsonl, prime_rl, trl, verl
from stages.imports.base import Format, Kind, Message, Reading, Row, Said

FORMATS: dict[str, Format] = {
    part.FORMAT.name: part.FORMAT for part in (trl, verl, prime_rl, jsonl)
}

__all__ = ["FORMATS", "Format", "Kind", "Message", "Reading", "Row", "Said"]
