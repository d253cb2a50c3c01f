# SPDX-License-Identifier: Apache-2.0
"""Answers to users' SQL, as a table, CSV, JSON or Parquet."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from report.text import text_table, visible
from store.asking import ask_user_sql
from store.db import Store

WIDEST = 160


def answer(store: Store, sql: str, format_: str) -> bytes:
    """The answer to one statement that reads; ConfigError for anything else."""
    return FORMATS[format_](ask_user_sql(store, sql))


def _table(found: pa.Table) -> bytes:
    rows = [[_cell(value) for value in row.values()] for row in found.to_pylist()]
    count = f"{len(rows):,} row{'s' * (len(rows) != 1)}"
    head = [visible(name) for name in found.column_names]
    return f"{text_table(head, rows)}\n{count}\n".encode()


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    text = visible(text)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _csv(found: pa.Table) -> bytes:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(found.column_names)
    writer.writerows(row.values() for row in found.to_pylist())
    return file.getvalue().encode()


def _json(found: pa.Table) -> bytes:
    text = json.dumps(found.to_pylist(), indent=1, default=str, ensure_ascii=False)
    return f"{text}\n".encode()


def _parquet(found: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(found, file)
    return file.getvalue()


FORMATS: dict[str, Callable[[pa.Table], bytes]] = {
    "table": _table,
    "csv": _csv,
    "json": _json,
    "parquet": _parquet,
}
