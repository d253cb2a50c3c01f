# SPDX-License-Identifier: Apache-2.0
"""Finding runs by name."""

import difflib
from collections.abc import Sequence
from typing import Any

from stages.errors import ConfigError, StoreError
from store.transaction import read


def newest_run(connection: Any, run: str | None) -> str:
    """The run of that name, or the newest if None; ConfigError names those that there are."""
    found = read(connection, "newest_run", run=run)
    if found:
        return str(found[0]["name"])
    names = [row["name"] for row in read(connection, "run_list")]
    if run is None or not names:
        raise StoreError("the store holds no run yet: start one with `starloop run CONFIG`")
    raise ConfigError(f"run {run!r} is not in the store{nearest(run, names)}")


def nearest(run: str, names: Sequence[str]) -> str:
    """The end of a message about a run that is not there: those there are, and the likeliest."""
    near = difflib.get_close_matches(run, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"; runs: {', '.join(names) or 'none'}{hint}"
