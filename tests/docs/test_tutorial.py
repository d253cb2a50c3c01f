# SPDX-License-Identifier: Apache-2.0
"""docs/tutorial.md: its commands, one after the other in a folder of their own, as it says."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pages import DOCS, ROOT, Block, blocks
from running import clean_environment, server

PAGE = [block for block in blocks(DOCS / "tutorial.md") if block.language in ("sh", "output")]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """Each block of commands and all that it said; the first that fails fails the test."""
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "configs").symlink_to(ROOT / "configs")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = clean_environment(PATH=path, PREFECT_API_URL=server())
    found = []
    for block in PAGE:
        if block.language == "sh":
            done = subprocess.run(
                ["bash", "-ec", block.text], cwd=folder, env=environment,
                capture_output=True, text=True, timeout=300,
            )  # fmt: skip
            assert done.returncode == 0, f"{block.text}{done.stdout}{done.stderr}"
            found.append((block.text, done.stdout))
    return found


def shown() -> list[Block]:
    return [block for block in PAGE if block.language == "output"]


def test_every_block_of_commands_is_followed_by_what_it_says() -> None:
    assert [block.language for block in PAGE] == ["sh", "output"] * (len(PAGE) // 2)


def test_every_command_is_one_of_the_shell_or_starloop() -> None:
    words = {shlex.split(line)[0] for block in PAGE if block.language == "sh"
             for line in block.text.splitlines()}  # fmt: skip
    assert words == {"starloop", "head"}


@pytest.mark.slow
def test_each_command_says_what_the_page_shows(said: list[tuple[str, str]]) -> None:
    for (command, out), block in zip(said, shown(), strict=True):
        for line in block.text.splitlines():
            assert line in out, f"{command}\nsaid\n{out}\nand not\n{line}"
