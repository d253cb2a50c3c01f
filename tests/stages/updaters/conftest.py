# SPDX-License-Identifier: Apache-2.0
"""A reference that is not the policy."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def other_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Like `tiny_folder`, with other weights."""
    from stages.policies import tiny

    config = tiny.Config(type="tiny", digits=3, hidden_size=16, layers=1, heads=1, steps=0, seed=1)
    return config.build().prepare(tmp_path_factory.mktemp("other"), lambda done, total: None)
