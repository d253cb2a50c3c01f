# SPDX-License-Identifier: Apache-2.0
"""`starloop` as a command, one finished run for the whole session, and looking into stores.

The run is started from a folder that has a `configs` package, a `store.py` and more of its own:
were one of them imported, it would fail and with it every test that uses it.
"""

import atexit
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

from flows.server import prefect_server

ROOT = Path(__file__).resolve().parents[2]
TRY = ROOT / "configs" / "tiny" / "try.yaml"
POISON = 'raise SystemExit("a file of the working folder was imported")\n'


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without what this process set for Prefect, the store and its terminal."""
    ours = ("PREFECT_", "STARLOOP_", "COLUMNS", "LINES")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return {**kept, **more}


_open = ExitStack()
atexit.register(_open.close)


@cache
def server() -> str:
    """A Prefect server for as long as the tests last: each start of one takes seconds."""
    os.environ.pop("PREFECT_API_URL", None)
    _open.enter_context(prefect_server(Path(tempfile.mkdtemp(prefix="prefect-"))))
    return os.environ.pop("PREFECT_API_URL")


def starloop(*arguments: object, cwd: Path = ROOT, **environment: str) -> Ended:
    """The installed command, in a process of its own; PREFECT_API_URL="": with its own server."""
    command = Path(sys.executable).with_name("starloop")
    if arguments[0] in ("run", "preflight") and "PREFECT_API_URL" not in environment:
        environment = {**environment, "PREFECT_API_URL": server()}
    done = subprocess.run(
        [command, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=clean_environment(**environment),
        timeout=300,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def start(store: Path, *arguments: object) -> "subprocess.Popen[bytes]":
    """A run in a process group of its own; its errors go to `errors` beside the store's folder."""
    _give_database(store.parent / ".prefect")
    with (store.parent.parent / "errors").open("wb") as errors:
        return subprocess.Popen(
            [
                Path(sys.executable).with_name("starloop"),
                *("run", *map(str, arguments), "--store", str(store)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            env=clean_environment(),
        )


def _give_database(home: Path) -> None:
    """Prefect's database as the shared server made it: to make one takes a server seconds."""
    if home.exists():
        return
    server()
    home.mkdir(parents=True)
    made = Path(os.environ["PREFECT_HOME"]) / "prefect.db"
    with (
        closing(sqlite3.connect(made)) as source,
        closing(sqlite3.connect(home / made.name)) as target,
    ):
        source.backup(target)


@contextmanager
def reading(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A store file, without a progress bar in the output that a test looks at."""
    with duckdb.connect(str(path), read_only=True) as connection:
        connection.execute("set enable_progress_bar = false")
        yield connection


def contents(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables of a store file, in the order of their text."""
    with reading(path) as connection:
        tables = connection.execute("select table_name from duckdb_tables()").fetchall()
        return {
            table: sorted(connection.execute(f"from {table}").fetchall(), key=repr)
            for (table,) in tables
        }


WHEN = {"run", "step_run", "event"}  # what tells when things ran, not what was computed


def facts(store: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of a store but those that tell when; step outputs without run and reuse."""
    tables = {name: rows for name, rows in contents(store).items() if name not in WHEN}
    outputs = ask(store, "select * exclude (run_id, run, reused) from step_output")
    tables["step_output"] = sorted(outputs, key=repr)
    return tables


def ask(path: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows of a query on a store file."""
    with reading(path) as connection:
        return connection.execute(sql, values).fetchall()


@cache
def first_run(base: Path) -> tuple[Path, Ended]:
    """`starloop run` in a project that uses our names for its own files; its folder, its end."""
    folder = base / "project"
    folder.mkdir()
    for name in ("configs", "stages", "report"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(POISON)
    for name in ("store.py", "stages.py", "flows.py", "starloop.py", "prefect.py", "torch.py"):
        (folder / name).write_text(POISON)
    shutil.copy(TRY, folder / "configs" / "mine.yaml")
    given = ("run", "configs/mine.yaml", "--name", "try")
    return folder, starloop(*given, cwd=folder, PREFECT_API_URL="")


def finished_store(factory: pytest.TempPathFactory) -> Path:
    """The store of that run, which must have ended well."""
    folder, ended = first_run(factory.getbasetemp())
    assert ended.code == 0, ended.err
    return folder / "runs" / "store.duckdb"
