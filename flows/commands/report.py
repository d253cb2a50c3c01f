# SPDX-License-Identifier: Apache-2.0
"""`starloop report`: runs as tables, as one HTML page, or as Markdown with pictures."""

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.common import StoreOption, age_line, store_path

EXAMPLES = (
    "starloop report",
    "starloop report star plain --markdown runs/report.md",
    "starloop report star --out runs/report.html",
)


def report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Runs; the newest if left out; two are compared.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write the report with its figures as one HTML file."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", help="Write it as Markdown, pictures in a folder beside it."),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Show the round table of one or more runs; two or more are compared with the first."""
    from report.files import check_target, write_whole
    from report.pages import as_text, pages
    from store.db import Store

    if out is not None:
        check_target("--out", out, "HTML", (".html", ".htm"))
    if markdown is not None:
        check_target("--markdown", markdown, "Markdown", (".md", ".markdown"))
    place = Store(store_path(store))
    found = pages(place, runs or [])
    age = age_line(place.copy)
    typer.echo(as_text(found))
    typer.echo(age)
    if out is None and markdown is None:
        return
    from report.gathered import gather

    whole = gather(place, runs or [], found)
    if out is not None:
        from report.html import page

        write_whole(out, page(whole, age))
        typer.echo(f"written to {out}")
    if markdown is not None:
        from report.pictures import write_markdown

        folder = write_markdown(whole, markdown)
        typer.echo(f"written to {markdown}, pictures in {folder}")
