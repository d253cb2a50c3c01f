# SPDX-License-Identifier: Apache-2.0
"""What a tracker is: somewhere that a run's numbers and alarms are shown beside other runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

PROJECT = "starloop"


@dataclass(frozen=True, slots=True)
class Tracked:
    """A run to be shown: the same id means the same run there, however often it goes on.

    `folder` is where files of a tracker's own may lie. `config` is sent once, where the run begins.
    """

    id: str
    name: str
    folder: Path
    config: Mapping[str, Any]


class Tracker(Protocol):
    """A run that is open in a tracker."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Send numbers of a step; steps never fall, and a name comes once a step."""
        ...

    def alarm(self, step: int, text: str) -> None:
        """Send an alarm."""
        ...

    def close(self) -> None:
        """Send what is left."""
        ...


Begin = Callable[[Tracked], Tracker]
