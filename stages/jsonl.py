# SPDX-License-Identifier: Apache-2.0
"""JSON of files: values, and lines of JSONL with their numbers.

Bytes that are no UTF-8 or no JSON are a TaskDataError that says where.
"""

import json
from collections.abc import Iterator
from typing import IO, Any

from stages.errors import TaskDataError

BOM = b"\xef\xbb\xbf"


def parse(data: bytes, at: str, *, as_written: bool = False) -> Any:
    """The value that stands `at` a place; its numbers `as_written` are text."""
    hooks: dict[str, Any] = (
        {"parse_int": str, "parse_float": str, "parse_constant": str} if as_written else {}
    )
    try:
        return json.loads(data.removeprefix(BOM).decode(), **hooks)
    except UnicodeDecodeError as error:
        raise TaskDataError(
            f"{at}: byte {error.start + 1} is not UTF-8: save the file as UTF-8"
        ) from error
    except (ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        if isinstance(error, json.JSONDecodeError) and error.lineno == 1:
            said = f"{error.msg}, column {error.colno}"
        raise TaskDataError(
            f"{at}: no JSON ({said}): mend it, or take it out; a file of lines has one on each"
        ) from error


def lines(file: IO[bytes], at: str, *, as_written: bool = False) -> Iterator[tuple[int, Any]]:
    """(line from 1, value) of each line that is not blank; `at` stands before its number."""
    for number, line in enumerate(file, 1):
        if line.removeprefix(BOM).strip():
            yield number, parse(line.rstrip(b"\r\n"), f"{at}{number}", as_written=as_written)
