# SPDX-License-Identifier: Apache-2.0
"""The pages as a site: it builds strictly, is whole by itself, and a broken link fails it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import DOCS, ROOT


def build(folder: Path) -> "subprocess.CompletedProcess[str]":
    """The site of a copy of the pages, as `make docs-site` builds it."""
    program = Path(sys.executable).with_name("zensical")
    return subprocess.run(
        [program, "build", "--strict", "--clean"],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    return tmp_path


def test_the_site_builds_and_loads_nothing_from_elsewhere(copied: Path) -> None:
    done = build(copied)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.stem for path in DOCS.glob("*.md")}
    assert pages <= {path.stem for path in (copied / "site").glob("*.html")}
    loaded = re.compile(r"<(?:script|img|link)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//")
    for path in (copied / "site").glob("*.html"):
        assert not loaded.search(path.read_text()), path.name


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r'"([\w-]+)\.md"', (ROOT / "zensical.toml").read_text()))
    assert named == {path.stem for path in DOCS.glob("*.md")}


@pytest.mark.parametrize("link", ["nowhere.md", "errors.md#nothing"])
def test_a_broken_link_fails(link: str, copied: Path) -> None:
    (copied / "docs" / "index.md").write_text(f"# starloop\n\n[x]({link})\n")
    done = build(copied)
    assert done.returncode == 1
    assert "does not exist" in done.stdout + done.stderr
