# SPDX-License-Identifier: Apache-2.0
"""What an import took in and what it left out, as people read it."""

from collections.abc import Mapping, Sequence
from typing import Any

from report.text import visible

MOST = 12


def import_lines(kind: str, detail: Mapping[str, Any]) -> list[str]:
    """What was imported, then a line for each thing that was not mapped."""
    parts = [f"{count:,} {_noun(name, count)}" for name, count in detail["counts"]]
    lines = [f"imported {kind}: {', '.join(parts)}"]
    if detail["columns"]:
        lines.append(f"columns not mapped: {_some(detail['columns'])}")
    if detail["rewards"]:
        lines.append(
            f"reward columns not mapped: {_some(detail['rewards'])} (--correct-at X makes verdicts "
            "of them)"
        )
    for reason, found in detail["refused"].items():
        more = ", …" if found["rows"] > len(found["first"]) else ""
        lines.append(
            f"rows left out, {reason}: {found['rows']:,} "
            f"({visible('; '.join(found['first']))}{more})"
        )
    return [*lines, *detail["notes"]]


def import_section(
    config: Mapping[str, Any], detail: Mapping[str, Any]
) -> tuple[str, Sequence[str], list[list[str]]]:
    """The page of an import: a text, a head and rows of what it holds."""
    files = _some([file["name"] for file in config["files"]])
    _, *left = import_lines(config["as"], detail)
    text = "\n".join(
        [
            f"Imported as {config['as']} from {files}, format {config['format']}, task "
            f"{visible(config['task'])}, split {config['split']}, origin {config['origin']}.",
            *left,
        ]
    )
    rows = [[name, f"{count:,}"] for name, count in detail["counts"]]
    return text, ("what", "rows"), rows


def _noun(name: str, count: int) -> str:
    return name.removesuffix("s") if count == 1 else name


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(visible(name) for name in names[:MOST])
    return shown + (f" and {len(names) - MOST} more" if len(names) > MOST else "")
