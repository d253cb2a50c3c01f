# SPDX-License-Identifier: Apache-2.0
"""Reading the pages: their fenced blocks, and the commands and answers in them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title (a file's path), its text."""

    language: str
    title: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = re.findall(r'^```(\w*)(?: title="([^"]*)")?\n(.*?)^```$', page.read_text(), re.M | re.S)
    return [Block(*each) for each in found]
