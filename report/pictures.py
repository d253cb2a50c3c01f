# SPDX-License-Identifier: Apache-2.0
"""The report as Markdown with PNGs beside it."""

import re
from pathlib import Path

import vl_convert

from report.figures.base import Figure, Panel
from report.files import write_whole
from report.gathered import Report
from report.html import VEGA_LITE
from report.pages import as_markdown
from report.text import visible
from report.themes import THEMES

WIDTH = 640  # pixels, of which each is drawn as 2 × 2


def write_markdown(report: Report, file: Path) -> Path:
    """Write the report to `file` and its pictures into a folder beside it, which is returned."""
    folder = file.with_name(f"{file.stem}-figures")
    folder.mkdir(parents=True, exist_ok=True)
    parts = [as_markdown(report.sections)]
    if report.together is not None:
        parts.append(_figure(report.together, report.together.name, folder))
    for run in report.runs:
        parts.append(f"## {run.name}: figures\n")
        parts += [_figure(f, f"{run.name}-{f.name}", folder) for f in run.figures.values()]
    write_whole(file, "\n".join(parts))
    return folder


def png(panel: Panel) -> bytes:
    """A panel's picture on white."""
    spec = {**panel.spec, "width": WIDTH, "config": {**THEMES["light"], "background": "white"}}
    drawn: bytes = vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=2)
    return drawn


def _figure(figure: Figure, name: str, folder: Path) -> str:
    """A figure's title, pictures and note, the pictures written."""
    lines = [f"### {_plain(figure.title)}"]
    for number, panel in enumerate(figure.panels):
        picture = f"{name}{f'-{number}' if number else ''}.png"
        (folder / picture).write_bytes(png(panel))
        lines.append(f"![{_plain(panel.says or figure.title)}]({folder.name}/{picture})")
    return "\n\n".join([*lines, _plain(figure.note)]) + "\n"


def _plain(text: str) -> str:
    """Text that Markdown reads as text."""
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", visible(text))
