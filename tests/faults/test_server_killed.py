# SPDX-License-Identifier: Apache-2.0
"""Prefect's server dies while a run goes on: the run ends in one line and can go on."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from firing import check_equal
from running import TRY, starloop, start
from test_kills import children, wait_until_gone


def server_of(pid: int) -> int:
    """The child of a run that is Prefect's server."""
    listing = subprocess.run(["ps", "-A", "-o", "pid=,args="], capture_output=True, text=True)
    lines = [line.split(maxsplit=1) for line in listing.stdout.splitlines()]
    (found,) = {int(line[0]) for line in lines if "flows.server" in line[1]} & children(pid)
    return found


@pytest.mark.slow
def test_a_run_whose_prefect_server_is_killed_says_so_and_goes_on_when_run_again(
    finished: Path, tmp_path: Path
) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    process = start(store, TRY)
    deadline = time.monotonic() + 120
    while not list(store.parent.glob("try/work/*/shards/*.parquet")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.002)
    helpers = children(process.pid)
    os.kill(server_of(process.pid), signal.SIGKILL)
    code = process.wait(timeout=180)
    said = (tmp_path / "errors").read_text()
    assert code == 1
    assert said.splitlines()[-1].startswith("starloop: Prefect's server does not answer")
    assert "Traceback" not in said
    assert wait_until_gone(helpers) == set()
    last = starloop("run", TRY, "--store", store)
    assert (last.code, last.err) == (0, "")
    check_equal(store, finished)
