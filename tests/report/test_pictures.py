# SPDX-License-Identifier: Apache-2.0
"""`starloop report` to files: one HTML page, or Markdown whose pictures lie beside it."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from report.gathered import gather
from report.pages import pages
from store.db import Store

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def files(finished: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the report of the finished run in both forms, its output in `said`."""
    folder = tmp_path_factory.mktemp("files")
    arguments = ["report", "try", "--store", str(finished.path)]
    out = ["--out", str(folder / "deep" / "r.html"), "--markdown", str(folder / "r.md")]
    ended = CliRunner().invoke(app, [*arguments, *out])
    assert ended.exit_code == 0, ended.output
    (folder / "said").write_text(ended.output)
    return folder


def test_both_files_are_written_and_named(files: Path) -> None:
    said = (files / "said").read_text()
    assert said.startswith("try\nstar: task addition")
    assert f"written to {files / 'deep' / 'r.html'}\n" in said
    assert f"written to {files / 'r.md'}, pictures in {files / 'r-figures'}\n" in said
    assert (files / "deep" / "r.html").read_text().startswith("<!doctype html>")


def test_markdown_shows_every_picture_that_is_written(files: Path, finished: Store) -> None:
    text = (files / "r.md").read_text()
    named = re.findall(r"!\[.*?\]\((.*?)\)", text)
    written = {f"r-figures/{path.name}" for path in (files / "r-figures").iterdir()}
    assert set(named) == written
    assert len(named) == len(set(named))
    (run,) = gather(finished, ["try"], pages(finished, ["try"])).runs
    assert len(named) == sum(len(figure.panels) for figure in run.figures.values())
    for name in named:
        picture = (files / name).read_bytes()
        assert picture.startswith(PNG)
        assert len(picture) > 3000
    for figure in run.figures.values():
        assert figure.title.split(" (")[0] in text.replace("\\", "")


def test_a_page_without_options_is_printed_alone(finished: Store, tmp_path: Path) -> None:
    ended = CliRunner().invoke(app, ["report", "try", "--store", str(finished.path)])
    assert ended.exit_code == 0
    assert "written to" not in ended.output
