# SPDX-License-Identifier: Apache-2.0
"""A file's records in order, with their numbers: JSONL by line, Parquet by row."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stages import jsonl
from stages.errors import ConfigError, TaskDataError
from stages.imports.base import Source
from stages.imports.values import an_object

MAGIC = b"PAR1"
BATCH = 256


def sayable(path: Path) -> str:
    """A file's name as text that UTF-8 can hold."""
    return path.name.encode("utf-8", "backslashreplace").decode()


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes; ConfigError where it is no file that can be read."""
    if path.is_dir():
        raise ConfigError(f"{path} is a folder: name the files in it, for example {path}/*.jsonl")
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): name a file") from error


def records_of(path: Path) -> Source:
    """The records of a Parquet file (by its first bytes or its name), else of JSONL."""
    with path.open("rb") as file:
        is_parquet = file.read(4) == MAGIC or path.suffix == ".parquet"
    unit = "row" if is_parquet else "line"
    where = f"{path}, {unit}"
    found = _parquet(path) if is_parquet else _jsonl(path, where)
    return Source(where, _checked(found, path, where))


def _checked(
    found: Iterator[tuple[int, dict[str, Any]]], path: Path, where: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The same records; an empty file and names that are no text are refused."""
    empty = True
    for line, record in found:
        empty = False
        for name in record:
            try:
                name.encode()
            except UnicodeEncodeError as error:
                raise TaskDataError(
                    f"{where} {line}: the column name {name!a} holds a lone surrogate: mend "
                    "the file"
                ) from error
        yield line, record
    if empty:
        raise TaskDataError(f"{path} holds no rows: name a file that has some")


def _jsonl(path: Path, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open("rb") as file:
        for number, found in jsonl.lines(file, f"{where} "):
            yield number, an_object(found, f"{where} {number}")


def _parquet(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=BATCH):
                for record in batch.to_pylist():
                    number += 1
                    yield number, record
    except (OSError, ValueError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        raise TaskDataError(
            f"{path}, after row {number}: no Parquet ({said}): name a whole Parquet file, or JSONL "
            "under another ending"
        ) from error
