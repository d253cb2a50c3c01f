# SPDX-License-Identifier: Apache-2.0
"""What an updater is: training items and a start checkpoint in, a checkpoint and visits out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stages.ids import Id
from stages.settings import Settings

Progress = Callable[[int, float | None], None]


class UpdaterSettings(Settings):
    """What every updater's config has: the number format and device it computes in."""

    @property
    def precision(self) -> tuple[str, str]:
        """Number format (`auto` included) and device."""
        return "float32", "cpu"


@dataclass(frozen=True, slots=True)
class Item:
    """A training row as tokens: loss falls on the completion.

    `loss_mask` has one flag per completion token; None puts loss on all of them.
    """

    training_row_id: Id
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    loss_mask: tuple[bool, ...] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do: optimizer steps, seed, the start checkpoint, and a folder of our own.

    `work` keeps intermediate checkpoints over a kill; `draft` is where the result must lie.
    """

    steps: int
    seed: int
    init: Path
    work: Path
    draft: Path


@dataclass(frozen=True, slots=True)
class Trained:
    """What was done: steps, visits of the optimizer by row, mean loss over the last tenth."""

    steps_done: int
    visits: Mapping[Id, int]
    loss: float | None


class Updater(Protocol):
    """A built updater; `deterministic` means equal items and plan give equal weights."""

    @property
    def name(self) -> str: ...
    @property
    def deterministic(self) -> bool: ...

    def update(self, items: Sequence[Item], plan: Plan, progress: Progress) -> Trained:
        """Train from `plan.init` and leave a checkpoint in `plan.draft`.

        Calls `progress(steps_done, loss)`. Raises UpdaterError.
        """
        ...
