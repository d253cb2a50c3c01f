# SPDX-License-Identifier: Apache-2.0
"""The face for notebooks: `import starloop; db = starloop.open(); db.sql("from round_summary")`."""

from pathlib import Path
from typing import Any

__all__ = ["open"]


def open(
    store: str | Path | None = None, memory: str | None = None, threads: int | None = None
) -> Any:
    """A read-only DuckDB connection to the readers' copy of a store.

    It never stops a run, however long it stays open. `store` is the store file; else
    STARLOOP_STORE, else `runs/store.duckdb` in the nearest parent folder. `memory` (`8GB`) bounds
    what its queries take, 4 GB or half of the machine if left out, and nothing spills to disk;
    `threads` is every core if left out. No query is stopped for its time: `interrupt()` of the
    connection does that. Raises StoreError, or ConfigError for `memory`.
    """
    from flows.commands.common import store_path
    from store.db import Store
    from store.limits import default_memory, memory_of

    limit = default_memory() if memory is None else memory_of(memory)
    place = Store(store_path(Path(store) if store is not None else None))
    return place.reader(f"{limit}B", threads)
