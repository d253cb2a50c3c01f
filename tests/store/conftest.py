# SPDX-License-Identifier: Apache-2.0
"""A store of its own for each test, and a connection in memory that has the schema."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from store.db import Store

SCHEMA = Path(__file__).resolve().parents[2] / "store" / "schema.sql"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store file; it waits two tenths of a second for another process."""
    made = Store(tmp_path / "store.duckdb", patience_s=0.2)
    made.create()
    return made


@pytest.fixture(scope="session")
def schema() -> Iterator[duckdb.DuckDBPyConnection]:
    """The schema in memory: tests that write begin a transaction and roll it back."""
    connection = duckdb.connect()
    connection.execute(SCHEMA.read_text())
    yield connection
    connection.close()
