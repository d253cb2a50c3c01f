# SPDX-License-Identifier: Apache-2.0
"""`starloop sql` as a process: its limits end it in time, with one line and an exit code."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import clean_environment, starloop

from store.db import Store

COUNT = "select count(*) from range(1000000000000)"
ENDLESS = "select a.range + b.range as n from range(1000000) a, range(1000000) b"
DEAF = "select list_product(range(200000000))"  # DuckDB looks up when it is done


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store with its copy, alone in its folder."""
    path = tmp_path_factory.mktemp("asked") / "store.duckdb"
    Store(path).create()
    Store(path).snapshot()
    return path


def started(store: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [Path(sys.executable).with_name("starloop"), "sql", *arguments, "--store", store],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=store.parent,
        env=clean_environment(),
    )


@pytest.mark.parametrize("sql", [COUNT, ENDLESS, DEAF], ids=["count", "endless", "deaf"])
def test_a_query_that_takes_too_long_ends_the_process_in_one_line(store: Path, sql: str) -> None:
    begun = time.monotonic()
    ended = starloop("sql", sql, "--timeout", "0.5", "--store", store, cwd=store.parent)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "starloop: sql: the query was stopped after 0.5 s: give it more with --timeout SECONDS "
        "(0: no end), or ask for less\n"
    )
    assert time.monotonic() - begun < 20
    assert {path.name for path in store.parent.iterdir()} == {
        "store.duckdb",
        "store.snapshot.duckdb",
    }


@pytest.mark.slow
def test_memory_that_duckdb_does_not_count_is_bounded_too(store: Path) -> None:
    ended = starloop("sql", "select len(repeat('x', 3000000000))", "--memory", "100MB", "--store",
                     store)  # fmt: skip
    assert ended.code == 2
    assert ended.err.startswith("starloop: sql: the query needs more than 0.1 GB of memory: ")


def test_a_reader_that_has_had_enough_is_no_error(store: Path) -> None:
    process = started(store, ENDLESS, "--format", "csv")
    assert process.stdout and process.stderr
    assert [process.stdout.readline() for _ in range(2)] == [b"n\n", b"0\n"]
    process.stdout.close()
    assert process.wait(30) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.parametrize("sql", [COUNT, DEAF], ids=["count", "deaf"])
def test_ctrl_c_ends_a_query(store: Path, sql: str) -> None:
    process = started(store, sql)
    time.sleep(4.0)  # it is at work by then
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert err == b"starloop: interrupted\n"


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--memory", "lots", "--memory: 'lots' is not a size: write for example 2GB or 512MB"),
        ("--memory", "", "--memory: '' is not a size"),
        ("--memory", "1KB", "--memory: 1KB is too little for any query"),
        ("--timeout", "inf", "--timeout: inf is not allowed: give seconds, or 0 for no end"),
    ],
)
def test_a_limit_that_is_none_is_refused(store: Path, option: str, value: str, said: str) -> None:
    ended = starloop("sql", "select 1", option, value, "--store", store)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"starloop: {said}")
    assert ended.err.count("\n") == 1


def test_no_timeout_and_few_rows(store: Path) -> None:
    ended = starloop("sql", "from range(5)", "--timeout", "0", "--rows", "2", "--store", store)
    assert ended.code == 0
    assert "the first 2 of 5 rows: --rows shows more" in ended.out
