# SPDX-License-Identifier: Apache-2.0
"""The face for notebooks: `import starloop; db = starloop.open(); db.sql("from round_summary")`."""

from pathlib import Path
from typing import Any

__all__ = ["open"]


def open(store: str | Path | None = None) -> Any:
    """A read-only DuckDB connection to the readers' copy of a store.

    It never stops a run, however long it stays open. `store` is the store file; else
    STARLOOP_STORE, else `runs/store.duckdb` in the nearest parent folder. Raises StoreError.
    """
    from flows.commands.common import store_path
    from store.db import Store

    return Store(store_path(Path(store) if store is not None else None)).reader()
