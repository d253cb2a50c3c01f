# SPDX-License-Identifier: Apache-2.0
"""A store of its own for each test, and a connection in memory that has the schema."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import settings

from store.db import Store
from store.versions import ddl

# The machines that run this have busy neighbours: a slow example is no fault.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store file as `Store.create` makes it."""
    path = tmp_path_factory.mktemp("empty") / "store.duckdb"
    Store(path).create()
    return path


@pytest.fixture
def store(tmp_path: Path, empty_store: Path) -> Store:
    """An empty store of the test's own; it waits two tenths of a second for other processes."""
    return Store(Path(shutil.copy(empty_store, tmp_path)), patience_s=0.2)


@pytest.fixture(scope="session")
def schema() -> Iterator[duckdb.DuckDBPyConnection]:
    """The schema in memory: tests that write begin a transaction and roll it back."""
    connection = duckdb.connect()
    connection.execute(ddl())
    yield connection
    connection.close()
