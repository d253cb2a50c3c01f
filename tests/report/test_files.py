# SPDX-License-Identifier: Apache-2.0
"""Targets of a report: what cannot be one is refused before the work; no half file is left."""

import os
from pathlib import Path

import pytest

from report.files import check_target, write_whole
from stages.errors import ConfigError

HTML = ("HTML", (".html", ".htm"))


@pytest.mark.parametrize("name", ["r.html", "R.HTM", "report", "new/r.html"])
def test_a_file_of_its_ending_or_of_none_may_be_written(tmp_path: Path, name: str) -> None:
    check_target("--out", tmp_path / name, *HTML)


def test_a_folder_is_refused_with_a_file_in_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--out: .* is a folder: .* such as .*/report\.html$"):
        check_target("--out", tmp_path, *HTML)


def test_another_ending_is_refused_with_the_right_one(tmp_path: Path) -> None:
    said = r"--out: r\.pdf ends in \.pdf, and --out writes HTML: name a file that ends in \.html$"
    with pytest.raises(ConfigError, match=said):
        check_target("--out", tmp_path / "r.pdf", *HTML)


def test_what_was_there_stays_where_the_new_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "deep" / "r.html"
    write_whole(file, "old")

    def full(*_: object, **__: object) -> int:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match="No space left"):
            write_whole(file, "new")
    assert (file.read_text(), [each.name for each in file.parent.iterdir()]) == ("old", ["r.html"])
    write_whole(file, "new")
    assert file.read_text() == "new"


def test_a_device_is_written_to_and_stays_one() -> None:
    write_whole(Path(os.devnull), "text")
    assert not Path(os.devnull).is_file()
