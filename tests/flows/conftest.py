# SPDX-License-Identifier: Apache-2.0
"""One finished run to read, copies of it to change, and `starloop` in this process."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from running import ROOT, Ended, finished_store

os.environ["PREFECT_HOME"] = tempfile.mkdtemp(prefix="prefect-")  # not the user's own


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the finished run: for reading only."""
    return finished_store(tmp_path_factory)


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """The same store with its models and runs, for a test that changes it."""
    shutil.copytree(finished.parent, tmp_path / "runs", ignore=shutil.ignore_patterns(".prefect"))
    return tmp_path / "runs" / "store.duckdb"


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Callable[..., Ended]]:
    """`starloop` in this process: for commands that end before a step is run."""
    from flows import cli

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["starloop", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return Ended(code, out, err)

    before = dict(os.environ)
    monkeypatch.chdir(ROOT)
    yield run
    os.environ.clear()
    os.environ.update(before)
