# SPDX-License-Identifier: Apache-2.0
"""Commands and questions on the pages, asked of the finished run, have the answers shown there."""

import shlex
from pathlib import Path

import pytest
from pages import DOCS, README, blocks
from typer.testing import CliRunner

from flows.cli import app

SHOWN = [
    (page.name, command, answer)
    for page in (README, DOCS / "asking.md")
    for block in blocks(page)
    for part in f"\n{block.text}".split("\n$ starloop ")[1:]
    for command, _, answer in [part.partition("\n")]
]
COOKBOOK = blocks(DOCS / "cookbook.md")
QUESTIONS = list(zip(COOKBOOK[::2], COOKBOOK[1::2], strict=True))


def said(finished: Path, *words: str) -> str:
    """What a command answers, without the age of the copy."""
    done = CliRunner().invoke(app, [*words, "--store", str(finished)])
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stdout.splitlines() if not line.startswith("(from the copy")]
    return "\n".join(lines).strip()


def test_the_pages_show_commands_and_answers() -> None:
    assert {name for name, _, _ in SHOWN} == {"README.md", "asking.md"}
    assert len(QUESTIONS) > 10
    assert all(ask.language == "sql" and not answer.language for ask, answer in QUESTIONS)


@pytest.mark.parametrize(
    ("page", "command", "answer"), SHOWN, ids=[f"{p} {c}" for p, c, _ in SHOWN]
)
def test_a_command_answers_as_shown(page: str, command: str, answer: str, finished: Path) -> None:
    assert said(finished, *shlex.split(command)) == answer.strip()


@pytest.mark.parametrize(
    ("question", "answer"), [(ask.text, answer.text) for ask, answer in QUESTIONS]
)
def test_a_question_in_sql_answers_as_shown(question: str, answer: str, finished: Path) -> None:
    assert said(finished, "sql", question) == answer.strip()
