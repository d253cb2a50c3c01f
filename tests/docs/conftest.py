# SPDX-License-Identifier: Apache-2.0
"""The finished run of tests/flows, and starting `starloop` as those tests do."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "flows"))

import running


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the finished run: for reading only."""
    return running.finished_store(tmp_path_factory)
