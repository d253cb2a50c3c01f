# SPDX-License-Identifier: Apache-2.0
"""The programs that run under fire, and the store of a run that nothing disturbed."""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "flows"))
os.environ["PREFECT_HOME"] = tempfile.mkdtemp(prefix="prefect-")  # not the user's own

import running  # noqa: E402
from firing import Range  # noqa: E402


@pytest.fixture(scope="session")
def shooting_range(tiny_folder: Path) -> Iterator[Range]:
    """The program that forks a child for each run."""
    with Range(tiny_folder) as opened:
        yield opened


@pytest.fixture(scope="session")
def undisturbed(shooting_range: Range, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of two rounds that ran in one go: for reading only."""
    store = tmp_path_factory.mktemp("undisturbed") / "store.duckdb"
    ended = shooting_range.run(store)
    assert (ended.code, ended.errors) == (0, [])
    return store


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the finished run of tests/flows, through the command line."""
    return running.finished_store(tmp_path_factory)
