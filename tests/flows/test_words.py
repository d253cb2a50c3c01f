# SPDX-License-Identifier: Apache-2.0
"""What people read: one vocabulary, examples that can be typed, exit codes, encodings."""

import ast
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import ROOT, clean_environment, starloop
from typer.main import get_command

from flows.cli import COMMANDS, EXIT_CODES, app, examples
from flows.lock import run_lock
from flows.terminal import PLAIN
from stages import errors

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
# What other tools call a thing, and our word for it. `ITER` is make's alone.
OTHER_WORDS = {
    r"iterations?": "round",
    r"epoch number": "round",
    r"experiments?": "run",
    r"sub-?iterations?": "refresh",
    r"ground.?truths?": "answer, or reference",
    r"datapoints?": "row",
    r"graders?": "verifier",
    r"reward functions?": "verifier, or reward",
}
WRONG = re.compile(rf"(?<![\w`])({'|'.join(OTHER_WORDS)})(?![\w`])", re.I)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)
TYPED = get_command(app)


def messages(path: Path) -> list[str]:
    """The texts of a source that a person may read: its strings, docstrings left out."""
    tree = ast.parse(path.read_text())
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


def helps() -> dict[str, str]:
    """The help of every command, its options and arguments."""
    found = {"starloop": TYPED.help or ""}
    for name, command in {**TYPED.commands, **TYPED.commands["lineage"].commands}.items():  # type: ignore[attr-defined]
        options = [getattr(param, "help", None) or "" for param in command.params]
        found[name] = " ".join([command.help or "", command.epilog or "", *options])
    return found


def test_one_word_for_one_thing_in_help_pages_and_messages() -> None:
    texts = [(path.name, CODE.sub("", path.read_text())) for path in PAGES]
    texts += list(helps().items())
    for folder in ("flows", "stages", "store", "report", "configs"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            texts += [(path.name, text) for text in messages(path) if " " in text]
    texts += [(path.name, path.read_text()) for path in (ROOT / "configs").rglob("*.yaml")]
    said = {(name, word[0]) for name, text in texts for word in WRONG.finditer(text)}
    assert said == set()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_every_example_of_a_commands_help_can_be_typed(command: object) -> None:
    lines = [line[2:] for line in examples(command).splitlines() if line.startswith("  ")]
    assert lines
    for line in lines:
        program, name, *arguments = shlex.split(line.partition(" > ")[0])
        assert (program, name) == ("starloop", command.__name__.rstrip("_"))  # type: ignore[attr-defined]
        TYPED.commands[name].make_context(name, arguments)  # type: ignore[attr-defined]


def test_exit_codes_are_the_same_in_help_docs_and_errors() -> None:
    said = dict(re.findall(r"(\d+) (\w+)", EXIT_CODES))
    page = (ROOT / "docs" / "terminal.md").read_text()
    table = dict(re.findall(r"^\| (\d+) \| (\w+)", page, re.M))
    assert set(said) == set(table)
    raised = {
        str(found.exit_code)
        for found in vars(errors).values()
        if isinstance(found, type) and issubclass(found, errors.LoopError)
    }
    assert raised | {"0"} == set(said)
    assert all(
        EXIT_CODES in (TYPED.commands[c.__name__.rstrip("_")].epilog or "") for c in COMMANDS
    )  # type: ignore[attr-defined]


def test_every_command_is_on_the_page_about_the_terminal_or_in_the_readme() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    assert [n for n in TYPED.commands if f"starloop {n}" not in text] == []  # type: ignore[attr-defined]


def test_help_answers_in_half_a_second_at_the_best_of_three() -> None:
    def seconds() -> float:
        begun = time.monotonic()
        assert starloop("--help").code == 0
        return time.monotonic() - begun

    assert min(seconds() for _ in range(3)) < 0.5


def test_the_version_is_told() -> None:
    from importlib.metadata import version

    ended = starloop("--version")
    assert (ended.code, ended.out) == (0, f"starloop {version('starloop')}\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_has_few_characters_gets_plain_ones(encoding: str) -> None:
    for given in (["--help"], ["describe"]):
        done = subprocess.run(
            [Path(sys.executable).with_name("starloop"), *given], capture_output=True, cwd=ROOT,
            env=clean_environment(PYTHONIOENCODING=encoding),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        text = done.stdout.decode(encoding)
        assert "Traceback" not in text and len(text) > 500
    assert all(value.isascii() and len(key) == 1 for key, value in PLAIN.items())


def test_help_fits_sixty_columns_and_has_no_colour_where_it_is_not_wanted() -> None:
    ended = starloop("run", "--help", COLUMNS="60", TERMINAL_WIDTH="60", NO_COLOR="1")
    assert max(map(len, ended.out.splitlines())) <= 60
    assert "\x1b" not in ended.out


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("starloop samples pl", ["plain"]), ("starloop watch ", ["plain", "star"]),
     ("starloop diff st", ["star"]), ("starloop sta", ["status"])],
)  # fmt: skip
def test_the_shell_completes_commands_and_names_of_runs(
    tmp_path: Path, typed: str, expected: list[str]
) -> None:
    for name in ("star", "plain"):
        with run_lock(tmp_path / name, name):
            pass
    (tmp_path / "models").mkdir()
    done = subprocess.run(
        [Path(sys.executable).with_name("starloop")], capture_output=True, text=True,
        env={**os.environ, "_STARLOOP_COMPLETE": "complete_bash", "COMP_WORDS": typed,
             "COMP_CWORD": str(typed.count(" ")), "STARLOOP_STORE": str(tmp_path / "s.duckdb")},
    )  # fmt: skip
    assert done.stdout.split() == expected, done.stderr
