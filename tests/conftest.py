# SPDX-License-Identifier: Apache-2.0
"""Shared by all tests: no home, no network, no store of the user's; one small policy folder."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

os.environ.pop("STARLOOP_STORE", None)
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads that wait for each other are slow


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny policy with random weights: an ordinary checkpoint, made in a second."""
    from stages.policies import tiny

    config = tiny.Config(type="tiny", digits=3, hidden_size=16, layers=1, heads=1, steps=0)
    models = tmp_path_factory.mktemp("models")
    return config.build().prepare(models, lambda done, total: None)
