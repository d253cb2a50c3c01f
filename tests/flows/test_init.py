# SPDX-License-Identifier: Apache-2.0
"""`starloop init`: what it writes loads, is right, and overwrites nothing."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from configs.load import load
from flows.cli import app
from flows.commands.init import data_lines
from stages.errors import ConfigError
from stages.tasks import Task
from stages.verifiers import judge_text


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(app, ["init", "sums"])
    assert ran.exit_code == 0
    assert ran.output.splitlines()[-1] == "  starloop run sums.yaml"
    return tmp_path


def built() -> Task:
    task: Task = load(Path("sums.yaml")).task.build()
    return task


def test_the_config_loads_and_every_line_is_a_problem(begun: Path) -> None:
    task = built()
    assert (len(task.problems("train")), len(task.problems("dev"))) == (40, 10)
    assert list(task.left_out()) == []
    assert {p.domain for p in task.problems("train")} == {"more", "fewer", "boxes"}
    assert {p.difficulty for p in task.problems("dev")} == {1.0, 2.0}


def test_every_answer_is_right_and_verifies(begun: Path) -> None:
    verifier = load(Path("sums.yaml")).verifier.build()
    for problem in (*built().problems("train"), *built().problems("dev")):
        a, b = map(int, re.findall(r"[0-9]+", problem.question))
        expected = {"more": a + b, "fewer": a - b, "boxes": a * b}[problem.domain or ""]
        assert int(problem.answer) == expected >= 0
        assert judge_text(verifier, problem.answer, f"#### {expected}").status == "correct"


def test_every_field_that_the_config_names_says_so_to_the_run(begun: Path) -> None:
    config = load(Path("sums.yaml"), ["generate.n=8"])
    assert config.generate.n == 8
    assert config.policy.type == "folder"
    assert config.policy.path == "models/smollm2-135m-instruct"


def test_the_same_lines_are_written_each_time() -> None:
    assert data_lines() == data_lines()
    assert len(data_lines().splitlines()) == 50


@pytest.mark.parametrize("there", ["sums.yaml", "sums.jsonl"])
def test_nothing_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / there).write_text("mine")
    ran = CliRunner().invoke(app, ["init", "sums"])
    assert isinstance(ran.exception, ConfigError)
    assert f"{there} is there already" in str(ran.exception)
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


@pytest.mark.parametrize("name", ["../sums", "a b", "", "models"])
def test_a_name_that_is_no_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(app, ["init", name])
    assert isinstance(ran.exception, ConfigError)
    assert str(ran.exception).startswith(f"NAME: {name!r} is not allowed")
    assert list(tmp_path.iterdir()) == []
