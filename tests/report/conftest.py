# SPDX-License-Identifier: Apache-2.0
"""The finished run of tests/flows, and the small history of tests/store as a store file."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "flows"), str(HERE.parent / "store")]

import hostile_history  # noqa: E402
import running  # noqa: E402
import small_history  # noqa: E402

from store.db import Store  # noqa: E402


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The store of the finished run: for reading only."""
    return Store(running.finished_store(tmp_path_factory))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The small history with trajectories that attack whoever shows them: for reading only."""
    return hostile_history.stored(tmp_path_factory.mktemp("hostile") / "store.duckdb")


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The small history as a store: for reading only."""
    store = Store(tmp_path_factory.mktemp("told") / "store.duckdb")
    store.create()
    with store.transaction() as tx:
        small_history.write(tx)
    return store
