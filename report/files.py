# SPDX-License-Identifier: Apache-2.0
"""Files that a report is written to: looked at before the work, written whole or not at all."""

import os
from collections.abc import Sequence
from pathlib import Path

from stages.errors import ConfigError


def check_target(option: str, path: Path, form: str, endings: Sequence[str]) -> None:
    """ConfigError where a path cannot be a file of that form."""
    if path.is_dir():
        example = path / f"report{endings[0]}"
        raise ConfigError(f"{option}: {path} is a folder: name a file in it, such as {example}")
    if path.suffix and path.suffix.lower() not in endings:
        raise ConfigError(
            f"{option}: {path.name} ends in {path.suffix}, and {option} writes {form}: name a file "
            f"that ends in {endings[0]}"
        )


def write_whole(path: Path, text: str) -> None:
    """Write a file under another name and give it its own at the end; devices are written to."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
