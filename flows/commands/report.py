# SPDX-License-Identifier: Apache-2.0
"""`starloop report`: the round table of runs, and how two runs differ."""

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.common import StoreOption, age_line, store_path

EXAMPLES = (
    "starloop report",
    "starloop report star plain --markdown runs/report.md",
)


def report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Runs; the newest if left out; two are compared.", show_default=False),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write the report to this file too.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Show the round table of one or more runs; two or more are compared with the first."""
    from report.pages import as_markdown, as_text, pages
    from store.db import Store

    place = Store(store_path(store))
    found = pages(place, runs or [])
    typer.echo(as_text(found))
    typer.echo(age_line(place.copy))
    if markdown is not None:
        markdown.parent.mkdir(parents=True, exist_ok=True)
        markdown.write_text(as_markdown(found))
        typer.echo(f"written to {markdown}")
