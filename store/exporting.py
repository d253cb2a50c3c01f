# SPDX-License-Identifier: Apache-2.0
"""A run's rows as files: Parquet, JSONL, or a folder that `datasets` loads; ids are text.

Rows go from query to file in batches and are never held whole. A folder is written under another
name and renamed, with a manifest.json beside the data.
"""

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from stages import rows
from stages.errors import ConfigError, StoreError
from stages.sync import sync_folder
from store.transaction import query, read, table_of

if TYPE_CHECKING:
    import duckdb

WHATS = ("training-set", "trajectories", "run")
FORMATS = ("parquet", "jsonl", "datasets")
BATCH = 2048
# The tables that are no row types, with the column that ties them to the run, and their order.
_TIED = {
    "run": ("run_id", "run_id"),
    "step_run": ("run_id", "round, refresh, started_at, step"),
    "event": ("run_id", "happened_at, kind, message"),
}


def tables() -> dict[str, tuple[str, str]]:
    """Every table of the store with the column that ties it to a run's ids, and its order."""
    keyed = [found for found in vars(rows).values() if hasattr(found, "KEY")]
    return {**_TIED, **{table_of(row): (row.KEY[0], ", ".join(row.KEY)) for row in keyed}}


def export(
    connection: "duckdb.DuckDBPyConnection",
    run: str,
    what: str,
    round_: int | None,
    format_: str,
    to: Path,
) -> dict[str, Any]:
    """Write what is asked for to the folder `to`, which must not hold anything; the manifest."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise ConfigError(f"--to: {to} is there and not an empty folder: name another")
    to.parent.mkdir(parents=True, exist_ok=True)
    draft = to.with_name(f".{to.name}.{os.getpid()}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir()
        found = _Export(connection, run, round_, format_, draft)
        manifest = found.write(what)
        draft.rename(to)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    sync_folder(to.parent)
    return manifest


class _Export:
    """One export on its way into a draft folder."""

    def __init__(
        self,
        connection: "duckdb.DuckDBPyConnection",
        run: str,
        round_: int | None,
        format_: str,
        draft: Path,
    ) -> None:
        self.connection, self.run, self.round = connection, run, round_
        self.format, self.draft = format_, draft
        self.files: dict[str, dict[str, Any]] = {}
        self.sets: list[str] = []

    def write(self, what: str) -> dict[str, Any]:
        """All files, then the manifest."""
        {"training-set": self._sets, "trajectories": self._trajectories, "run": self._run}[what]()
        if not any(file["rows"] for file in self.files.values()):
            raise StoreError(f"run {self.run} has no {what} to export{self._in_round()}")
        if self.format == "datasets":
            self._card()
        (schema,) = read(self.connection, "store_version")
        models = read(self.connection, "export_models", run=self.run)
        manifest = {
            "starloop": version("starloop"),
            "schema": schema["version"],
            "run": self.run,
            "what": what,
            "round": self.round,
            "format": self.format,
            "models": [{**row, "model_id": str(row["model_id"])} for row in models],
            "training_sets": self.sets,
            "files": self.files,
        }
        text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
        _write(self.draft / "manifest.json", lambda file: file.write(text.encode()))
        return manifest

    def _in_round(self) -> str:
        return "" if self.round is None else f" in round {self.round}: leave --round out"

    def _sets(self) -> None:
        found = read(self.connection, "export_sets", run=self.run)
        rounds = sorted({row["round"] for row in found})
        if self.round is None and rounds:
            self.round = rounds[-1]
        chosen = [row for row in found if row["round"] == self.round]
        if not chosen:
            there = ", ".join(map(str, rounds)) or "none"
            where = "" if self.round is None else f" in round {self.round}"
            raise ConfigError(
                f"--round: run {self.run} has no training set{where}; rounds with one: {there}"
            )
        self.sets = list(dict.fromkeys(str(row["training_set_id"]) for row in chosen))
        values = {"run": self.run, "round": self.round}
        if not all(row["pairs"] for row in chosen):
            self._file("training_set", query("export_completions"), values)
        if any(row["pairs"] for row in chosen):
            self._file("training_pairs", query("export_pairs"), values)

    def _trajectories(self) -> None:
        values = {"run": self.run, "round": self.round}
        self._file("trajectories", query("export_trajectories"), values)

    def _run(self) -> None:
        if self.round is not None:
            raise ConfigError("--round: a whole run has all rounds: leave it out")
        self.connection.execute(query("export_used"), {"run": self.run})
        for table, (key, order) in tables().items():
            sql = query("export_table").format(table=table, key=key, order=order)
            self._file(table, sql, {})
        self.sets = [
            str(row["training_set_id"])
            for row in read(self.connection, "export_sets", run=self.run)
        ]

    def _file(self, name: str, sql: str, values: Mapping[str, Any]) -> None:
        """Write the rows of a query; without a row there is a file only where it can say so."""
        ending = "jsonl" if self.format == "jsonl" else "parquet"
        folder = "data/" if self.format == "datasets" else ""
        path = self.draft / f"{folder}{name}.{ending}"
        path.parent.mkdir(exist_ok=True)
        reader = self.connection.sql(sql, params=dict(values)).to_arrow_reader(BATCH)
        write = _jsonl if ending == "jsonl" else _parquet
        count = 0

        def through(file: Any) -> None:
            nonlocal count
            count = write(reader, file)

        _write(path, through)
        if not count and self.format != "parquet":
            path.unlink()
            return
        self.files[f"{folder}{name}.{ending}"] = {
            "rows": count,
            "bytes": path.stat().st_size,
            "sha256": _sha256(path),
        }

    def _card(self) -> None:
        """The page that tells `datasets` which file is which."""
        lines = ["---", "configs:"]
        for name in self.files:
            lines += [
                f"- config_name: {Path(name).stem}",
                "  data_files:",
                "  - split: train",
                f"    path: {name}",
            ]
        text = "\n".join([*lines, "---", "", "Exported by starloop; see manifest.json.", ""])
        _write(self.draft / "README.md", lambda file: file.write(text.encode()))


def _write(path: Path, through: Callable[[Any], Any]) -> None:
    with path.open("wb") as file:
        through(file)
        file.flush()
        os.fsync(file.fileno())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _parquet(reader: pa.RecordBatchReader, file: Any) -> int:
    count = 0
    with pq.ParquetWriter(file, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _jsonl(reader: pa.RecordBatchReader, file: Any) -> int:
    count = 0
    for batch in reader:
        for row in batch.to_pylist():
            file.write(_line(row))
        count += batch.num_rows
    return count


def _line(row: Mapping[str, Any]) -> bytes:
    """A row as JSON; what JSON has no number for is null."""
    for values in (row, _finite(row)):
        with suppress(ValueError):
            text = json.dumps(values, ensure_ascii=False, allow_nan=False, default=str)
            return f"{text}\n".encode()
    raise StoreError(f"a row cannot be written as JSON: {str(row)[:200]}")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
