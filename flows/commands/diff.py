# SPDX-License-Identifier: Apache-2.0
"""`starloop diff`: two rounds, of one run or of two, on the same problems."""

from typing import Annotated

import typer

from flows.commands.common import (
    JsonOption,
    PagerOption,
    PurposeOption,
    StoreOption,
    age_line,
    choose,
    run_names,
    store_path,
)

EXAMPLES = (
    "starloop diff star@1 star@2",
    "starloop diff star plain --only lost",
    "starloop diff star@0 star@5 --problem 3fa9 --json",
)
SideArgument = typer.Argument(help="RUN@ROUND, or RUN: its last round.", autocompletion=run_names)


def diff(
    left: Annotated[str, SideArgument],
    right: Annotated[str, SideArgument],
    only: Annotated[
        str | None,
        typer.Option("--only", help="gained, lost or changed alone.", show_default=False),
    ] = None,
    problem: Annotated[
        str | None,
        typer.Option("--problem", help="This alone: its id or first digits.", show_default=False),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=0, help="Most problems to show.")] = 20,
    purpose: PurposeOption = "held-out",
    json: JsonOption = False,
    no_pager: PagerOption = False,
    store: StoreOption = None,
) -> None:
    """Show how two rounds answer the same problems: gained, lost, both right, both wrong."""
    from rich.text import Text

    from flows.terminal import columns, page
    from report.diff import ONLY, as_parts, as_rows, summary
    from report.diff import diff as compared
    from report.text import json_line
    from store.db import Store

    if only is not None:
        choose("--only", only, ONLY)
    choose("--purpose", purpose, ("training", "held-out"))
    place = Store(store_path(store))
    found = compared(place, left, right, purpose, problem)
    if json:
        for row in as_rows(found, only):
            typer.echo(json_line(row))
        return
    passing = [pair for pair in found.pairs if pair.passes(only)]
    more = len(passing) - count
    lines = [summary(found)]
    lines += [f"--only {only} leaves none of them"] if only and not passing else []
    tail = f"{more:,} more: --count shows them\n" if more > 0 else ""
    parts = [
        Text("\n".join([*lines, ""])),
        *as_parts(found, passing[:count], columns()),
        Text(tail + age_line(place.copy)),
    ]
    page(parts, paged=not no_pager)
