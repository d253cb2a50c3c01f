# SPDX-License-Identifier: Apache-2.0
"""Rows to Arrow tables and Parquet shards, and back: the format at every boundary.

A shard holds rows of one type. It is written under a temporary name, synced and renamed, so a
file that has its final name is whole. A shard whose columns are not exactly the row type's is
refused.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from stages.errors import StoreError
from stages.sync import sync_folder

Row = TypeVar("Row")

_SCALARS: dict[type, pa.DataType] = {
    UUID: pa.uuid(),
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
}
_ITEMS: dict[type, pa.DataType] = {int: pa.int32(), float: pa.float32(), bool: pa.bool_()}


def _arrow_type(hint: Any) -> pa.DataType:
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (arg for arg in get_args(hint) if arg is not type(None))
    if get_origin(hint) is Literal:
        return pa.string()
    if get_origin(hint) is tuple:
        return pa.list_(_ITEMS[get_args(hint)[0]])
    return _SCALARS[hint]


_schemas: dict[Any, pa.Schema] = {}


def arrow_schema(row_type: Any) -> pa.Schema:
    """The Arrow schema of a row type of `stages.rows`, in field order."""
    if row_type not in _schemas:
        hints = get_type_hints(row_type)
        columns = [(f.name, _arrow_type(hints[f.name])) for f in fields(row_type)]
        _schemas[row_type] = pa.schema(columns)
    return _schemas[row_type]


def to_table(row_type: type[Row], rows: Sequence[Row]) -> pa.Table:
    """Rows as an Arrow table with the row type's schema."""
    schema = arrow_schema(row_type)
    columns = []
    for field in schema:
        values: list[Any] = [getattr(row, field.name) for row in rows]
        if field.type == pa.uuid():
            values = [None if value is None else value.bytes for value in values]
        columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def from_table(row_type: type[Row], table: pa.Table) -> list[Row]:
    """An Arrow table as rows; columns are taken by name."""
    columns = [table.column(f.name).to_pylist() for f in arrow_schema(row_type)]
    return [
        row_type(*(tuple(value) if isinstance(value, list) else value for value in values))
        for values in zip(*columns, strict=True)
    ]


def write_shard(path: Path, row_type: type[Row], rows: Sequence[Row]) -> None:
    """Write rows to `path` so that it is either whole or not there; StoreError if it cannot be."""
    partial = path.with_suffix(f".{os.getpid()}.tmp")
    table = to_table(row_type, rows)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            pq.write_table(table, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise StoreError(
            f"shard {path} cannot be written ({error}): make room or mend the disk and run the "
            "same command again"
        ) from error


def read_shard(path: Path, row_type: type[Row]) -> list[Row]:
    """Rows of a shard; StoreError if the file is torn or holds other columns."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(
            f"shard {path} cannot be read ({error}): delete it and run again"
        ) from error
    expected = arrow_schema(row_type)
    if not table.schema.equals(expected):
        missing = sorted(set(expected.names) ^ set(table.schema.names))
        raise StoreError(
            f"shard {path} does not hold {row_type.__name__} rows "
            f"(columns that differ: {', '.join(missing) or 'by type'}): delete it and run again"
        )
    return from_table(row_type, table)


def read_shards(paths: Iterable[Path], row_type: type[Row]) -> list[Row]:
    """Rows of several shards, in the order given."""
    return [row for path in paths for row in read_shard(path, row_type)]
