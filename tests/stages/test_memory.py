# SPDX-License-Identifier: Apache-2.0
"""Freed memory stays with the process: the second large block costs no new pages."""

import subprocess
import sys

import pytest

COUNT = """
import resource, sys
from stages.memory import hold_memory
if sys.argv[1] == "held":
    assert hold_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = bytearray(b"x") * (64 * 2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(sum(faults() for _ in range(4)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of glibc")
def test_large_blocks_are_taken_from_what_was_freed() -> None:
    def count(mode: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", COUNT, mode], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    assert count("held") < 100 < count("default")
