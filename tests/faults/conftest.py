# SPDX-License-Identifier: Apache-2.0
"""The programs that run under fire, and the store of a run that nothing disturbed."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
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
def one_round(shooting_range: Range, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, of one round."""
    store = tmp_path_factory.mktemp("one-round") / "store.duckdb"
    ended = shooting_range.run(store, "rounds=1")
    assert (ended.code, ended.errors) == (0, [])
    return store


@pytest.fixture(scope="session")
def _killed(
    shooting_range: Range, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    found: dict[str, Path] = {}

    def killed(moment: str) -> Path:
        if moment not in found:
            store = tmp_path_factory.mktemp("killed") / "store.duckdb"
            shooting_range.start(store, "rounds=1")
            assert shooting_range.wait_for(moment)
            shooting_range.kill()
            found[moment] = store
        return found[moment]

    return killed


@pytest.fixture
def killed(_killed: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A store of one round, killed when its run told a line: the test's own copy of it."""

    def copy(moment: str) -> Path:
        shutil.copytree(_killed(moment).parent, tmp_path / "killed")
        return tmp_path / "killed" / "store.duckdb"

    return copy


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the finished run of tests/flows, through the command line."""
    return running.finished_store(tmp_path_factory)
