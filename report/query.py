# SPDX-License-Identifier: Apache-2.0
"""Answers to users' SQL, written as they come: a table, CSV, JSON or Parquet."""

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from itertools import islice
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from report.text import text_table, visible
from stages.errors import ConfigError
from store.asking import Answer, ask_user_sql
from store.db import Store
from store.limits import Limits, Stuck

WIDEST = 160
ROWS = 1000


def answer(
    store: Store,
    sql: str,
    format_: str,
    out: BinaryIO,
    rows: int = ROWS,
    limits: Limits | None = None,
    stuck: Stuck | None = None,
) -> None:
    """Write the answer to one statement that reads; ConfigError for anything else.

    A table shows `rows` rows at most and says how many there are.
    """
    with ask_user_sql(store, sql, limits, stuck) as found:
        FORMATS[format_](found, _Sink(out, found.untimed), rows)


def written(table: pa.Table, format_: str) -> bytes:
    """A whole table in a format, every row of it."""
    out = io.BytesIO()
    found = Answer(table.schema, iter(table.to_batches()), nullcontext)
    FORMATS[format_](found, _Sink(out, nullcontext), table.num_rows)
    return out.getvalue()


class _Sink(io.RawIOBase):
    """Bytes to a stream, which may be slow and cannot tell its place."""

    def __init__(self, out: BinaryIO, untimed: Callable[[], AbstractContextManager[None]]) -> None:
        self._out, self._untimed, self._place = out, untimed, 0
        self.failed = False  # then nothing more is written: no file looks whole that is not

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def write(self, data: Any) -> int:
        if not self.failed:
            with self._untimed():
                self._out.write(data)
        self._place += len(data)
        return len(data)


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    try:
        return zip(*(column.to_pylist() for column in batch.columns), strict=True)
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"sql: the answer holds a value that cannot be written ({error}): make it text with "
            "column::varchar, or use --format parquet"
        ) from error


def _table(found: Answer, out: _Sink, rows: int) -> None:
    shown: list[list[str]] = []
    total = 0
    for batch in found.batches:
        total += batch.num_rows
        few = batch.slice(0, rows - len(shown))
        shown += [[_cell(value) for value in row] for row in _rows(few)]
    count = f"{total:,} row{'s' * (total != 1)}"
    if total > len(shown):
        count = (
            f"the first {len(shown):,} of {count}: --rows shows more, --format csv, json or "
            "parquet writes all"
        )
    head = [visible(name) for name in found.schema.names]
    out.write(f"{text_table(head, shown)}\n{count}\n".encode())


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    text = visible(text[: WIDEST + 1])
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _csv(found: Answer, out: _Sink, rows: int) -> None:
    def write(lines: Iterator[Sequence[Any]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        out.write(text.getvalue().encode())

    write(iter([found.schema.names]))
    for batch in found.batches:
        write(_rows(batch))


def _json(found: Answer, out: _Sink, rows: int) -> None:
    opening = "[\n "
    for batch in found.batches:
        texts = _rows(batch)
        while some := list(islice(texts, 1000)):
            lines = (_object(found.schema.names, row) for row in some)
            out.write((opening + ",\n ".join(lines)).encode())
            opening = ",\n "
    out.write(b"[]\n" if opening == "[\n " else b"\n]\n")


def _object(names: Sequence[str], row: Sequence[Any]) -> str:
    values = dict(zip(names, row, strict=True))
    try:
        return json.dumps(values, default=_as_json, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(values), default=_as_json, ensure_ascii=False)


def _as_json(value: Any) -> int | float | str:
    """What JSON has no type for: a decimal is a number, everything else is text."""
    if isinstance(value, Decimal) and value.is_finite():
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


def _finite(value: Any) -> Any:
    """The value without numbers that JSON cannot write."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def _parquet(found: Answer, out: _Sink, rows: int) -> None:
    with pq.ParquetWriter(out, found.schema) as writer:
        try:
            for batch in found.batches:
                writer.write_batch(batch)
        except BaseException:
            out.failed = True
            raise


FORMATS: dict[str, Callable[[Answer, _Sink, int], None]] = {
    "table": _table,
    "csv": _csv,
    "json": _json,
    "parquet": _parquet,
}
