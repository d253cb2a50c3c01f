# SPDX-License-Identifier: Apache-2.0
"""One DuckDB instance that a process keeps, to which its store is attached for a transaction.

To make an instance takes about 25 ms, to attach a file 5 ms. A file is open, and locked, only
while something of this process is connected to it. An instance that has seen an error is not
used again: DuckDB closes for ever what failed to write.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


@dataclass(slots=True)
class _Instance:
    """`clean`: no file is attached, or one that somebody uses."""

    path: Path
    base: "duckdb.DuckDBPyConnection"
    users: int = field(default=0)
    clean: bool = field(default=True)

    def end(self) -> None:
        """Use it no more; it goes with the last connection to it."""
        if not self.ended:
            del _instances[self.path]
        if not self.users:
            self.base.close()

    @property
    def ended(self) -> bool:
        """Whether an error has been seen in it."""
        return _instances.get(self.path) is not self


_instances: dict[Path, _Instance] = {}
_guard = threading.RLock()


class Attached:
    """A connection to a file, which is closed when the last one of this process is.

    `make` makes an instance, given the file that will be attached to it.
    """

    def __init__(self, path: Path, make: Callable[[Path], "duckdb.DuckDBPyConnection"]) -> None:
        with _guard:
            self._instance = instance = _of(path.absolute(), make)
            try:
                if not instance.users:
                    instance.clean = False
                    named = str(instance.path).replace("'", "''")
                    instance.base.execute(f"attach '{named}' as store")
                self.connection = instance.base.cursor()
                self.connection.execute("use store")
                instance.users += 1
            except BaseException:
                instance.end()
                raise

    @property
    def alone(self) -> bool:
        """Whether nothing else of this process is connected to the file."""
        return self._instance.users == 1

    def close(self, failed: bool = False) -> None:
        """Roll back what is not committed and let go of the file; `failed` ends the instance."""
        instance = self._instance
        with _guard:
            instance.users -= 1
            self.connection.close()
            if failed or instance.ended:
                instance.end()
            elif not instance.users:
                instance.base.execute("detach store")
                instance.clean = True


def _of(path: Path, make: Callable[[Path], "duckdb.DuckDBPyConnection"]) -> _Instance:
    """The file's instance; those of other files that nothing uses are ended."""
    for other, found in list(_instances.items()):
        if not found.users and (other != path or not found.clean):
            found.end()
    if path not in _instances:
        _instances[path] = _Instance(path, make(path))
    return _instances[path]
