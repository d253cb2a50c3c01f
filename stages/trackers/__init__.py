# SPDX-License-Identifier: Apache-2.0
"""Trackers: one file each, one line here. A tracker shows a run elsewhere; the store remembers."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, get_args

from stages.errors import ConfigError
from stages.trackers.base import Begin, Tracked, Tracker

TrackerName = Literal["tensorboard", "trackio", "wandb"]


def check_tracker(name: TrackerName | None) -> None:
    """ConfigError where the tracker's package is not installed."""
    if name is not None and find_spec(name) is None:
        raise ConfigError(
            f"tracking: {name!r} needs a package that is not installed: pip install -e '.[{name}]',"
            f" or use another of {', '.join(get_args(TrackerName))}"
        )


def begin(name: TrackerName, tracked: Tracked) -> Tracker:
    """Begin in a tracker, or go on there."""
    module: Any = import_module(f"stages.trackers.{name}")
    open_: Begin = module.begin
    return open_(tracked)


__all__ = ["Begin", "Tracked", "Tracker", "TrackerName", "begin", "check_tracker"]
