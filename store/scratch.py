# SPDX-License-Identifier: Apache-2.0
"""A database in memory for computations of ours that may need more room than memory has."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.errors import StoreError
from store.db import NO_ROOM, in_memory

if TYPE_CHECKING:
    import duckdb


@contextmanager
def scratch(
    folder: Path, memory: str, threads: int | None = None
) -> Iterator["duckdb.DuckDBPyConnection"]:
    """A database in memory for a computation of ours, within `memory` (`4GB`) and `threads`.

    What does not fit is written to a folder of its own in `folder`, which is removed afterwards.
    Raises StoreError where memory or disk do not suffice.
    """
    limits: dict[str, Any] = {"memory_limit": memory, "preserve_insertion_order": False}
    if threads is not None:
        limits["threads"] = threads
    with tempfile.TemporaryDirectory(prefix="scratch-", suffix=".tmp", dir=folder) as spill:
        connection = in_memory({**limits, "temp_directory": spill})
        try:
            yield connection
        except NO_ROOM as error:
            raise StoreError(
                f"{memory} of memory and the disk at {folder} do not suffice "
                f"({str(error).splitlines()[0]}): give it more, or make room"
            ) from error
        finally:
            connection.close()
