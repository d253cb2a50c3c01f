# SPDX-License-Identifier: Apache-2.0
"""Rows of data files and Hub data sets, with their numbers.

`.jsonl`, `.json` (one list) and `.csv`, each also with `.gz`, and `.parquet`. JSON numbers stay
text, as they are written. What breaks the file's form is a TaskDataError with file and line.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from stages import jsonl
from stages.errors import TaskDataError
from stages.imports.files import file_hash, records_of, sayable

KINDS = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv", ".csv.gz", ".parquet")

Rows = Iterator[tuple[int, Any]]


def rows_of(path: Path, field: str) -> Rows:
    """(line or row from 1, value) of a file that the config's `field` names."""
    kind = next((kind for kind in KINDS if path.name.lower().endswith(kind)), None)
    if kind is None:
        raise TaskDataError(
            f"{field}: {path} is of no known kind; allowed: {', '.join(KINDS)}: convert it"
        )
    if not path.is_file():
        raise TaskDataError(f"{field}: {path} is not a file: name the data, {field}=FILE")
    if kind == ".parquet":
        yield from records_of(path).records
        return
    read = {".jsonl": _jsonl, ".json": _json, ".csv": _csv}[kind.removesuffix(".gz")]
    try:
        with path.open("rb") as raw:
            file = gzip.GzipFile(fileobj=raw) if kind.endswith(".gz") else raw
            yield from read(cast("IO[bytes]", file), sayable(path))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TaskDataError(
            f"{path}: no whole gzip file ({' '.join(str(error).split())}): fetch it again"
        ) from error


def check_hash(path: Path, field: str, expected: str | None) -> None:
    """TaskDataError where a file is not the one whose SHA-256 the config holds."""
    if expected is not None and path.is_file() and (found := file_hash(path)) != expected:
        raise TaskDataError(
            f"{field}: {path} has SHA-256 {found[:12]}…, the config says {expected[:12]}…: bring "
            "back the file, or begin a new run with this one"
        )


def hub_rows(name: str, config: str | None, split: str, revision: str) -> Rows:
    """(row from 1, value) of a data set's split on the Hub at a pinned commit."""
    from datasets import load_dataset

    try:
        found = load_dataset(name, config, split=split, revision=revision)
    except Exception as error:  # the library raises what its many layers raise
        said = " ".join(str(error).split())[:200]
        raise TaskDataError(
            f"task.hub: {name} at {revision[:12]} cannot be loaded ({said}): go online (unset "
            "HF_HUB_OFFLINE), or name local copies: task.files.train=FILE"
        ) from error
    yield from enumerate(found, 1)


def _jsonl(file: IO[bytes], name: str) -> Rows:
    return jsonl.lines(file, f"{name}:", as_written=True)


def _json(file: IO[bytes], name: str) -> Rows:
    found = jsonl.parse(file.read(), name, as_written=True)
    if not isinstance(found, list):
        raise TaskDataError(
            f"{name} holds {type(found).__name__}, not a list of rows: write [{{…}}, …], or name a "
            "file of lines .jsonl"
        )
    yield from enumerate(found, 1)


def _csv(file: IO[bytes], name: str) -> Rows:
    with io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        lines = csv.DictReader(text, strict=True)
        try:
            for row in lines:
                yield lines.line_num, "cells beyond the header" if None in row else row
        except (csv.Error, UnicodeDecodeError) as error:
            raise TaskDataError(
                f"{name}:{lines.line_num + 1}: no CSV ({error}): save it as CSV with a header, in "
                "UTF-8"
            ) from error
