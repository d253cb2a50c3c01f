# SPDX-License-Identifier: Apache-2.0
"""What a policy is: something that can be made ready as a complete checkpoint folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

Progress = Callable[[int, int], None]


class Policy(Protocol):
    """A built policy."""

    def check(self) -> None:
        """Raise ConfigError if it can be seen at once that `prepare` would fail."""
        ...

    def prepare(self, models: Path, progress: Progress) -> Path:
        """A complete checkpoint folder, made below `models` if it must be made.

        `progress(done, total)` is called while it takes long.
        """
        ...
