# SPDX-License-Identifier: Apache-2.0
"""`tensorboard`: event files in the run's folder: `tensorboard --logdir runs`."""

from collections.abc import Mapping
from typing import Any

from stages.settings import canonical
from stages.trackers.base import Tracked

FOLDER = "tensorboard"


def begin(tracked: Tracked) -> "TensorBoard":
    return TensorBoard(tracked)


class TensorBoard:
    """Each process that goes on writes one more file into the same folder."""

    def __init__(self, tracked: Tracked) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder = tracked.folder / FOLDER
        begun = folder.is_dir()
        self._writer: Any = SummaryWriter(str(folder))
        if not begun:
            self._text("config", f"    {canonical(tracked.config)}", 0)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def alarm(self, step: int, text: str) -> None:
        self._text("alarm", text, step)

    def close(self) -> None:
        self._writer.close()

    def _text(self, name: str, text: str, step: int) -> None:
        self._writer.add_text(name, text, step)
        self._writer.flush()
