# SPDX-License-Identifier: Apache-2.0
"""Trackers: each file has its name in the config, and one that is not installed is told of."""

from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import get_args

import pytest

from stages import trackers
from stages.errors import ConfigError
from stages.trackers import TrackerName, check_tracker

FILES = {path.stem for path in Path(trackers.__file__).parent.glob("*.py")} - {"__init__", "base"}


def test_every_tracker_file_is_named_and_begins() -> None:
    assert set(get_args(TrackerName)) == FILES
    for name in FILES:
        assert callable(import_module(f"stages.trackers.{name}").begin)


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_tracker_that_is_not_installed_names_its_extra(
    name: TrackerName, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(package: str) -> ModuleSpec | None:
        assert package == name
        return None

    check_tracker(name)
    monkeypatch.setattr(trackers, "find_spec", absent)
    with pytest.raises(ConfigError, match=rf"tracking: '{name}' .* pip install -e '\.\[{name}\]'"):
        check_tracker(name)
    check_tracker(None)
