# SPDX-License-Identifier: Apache-2.0
"""`starloop samples`: readable trajectories with their fate."""

from typing import Annotated, get_args

import typer

from flows.commands.common import (
    JsonOption,
    PagerOption,
    PurposeOption,
    RunArgument,
    StoreOption,
    age_line,
    choose,
    store_path,
)

EXAMPLES = (
    "starloop samples star",
    "starloop samples star --round 2 --verdict wrong -n 50",
    "starloop samples star --purpose held-out --problem 3fa9 --json",
)
VERDICTS = ("correct", "wrong", "unjudged")


def samples(
    run: RunArgument = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many.")] = 20,
    round: Annotated[
        int | None, typer.Option("--round", help="Of this round alone.", show_default=False)
    ] = None,
    verdict: Annotated[
        str | None, typer.Option("--verdict", help=f"{', '.join(VERDICTS)}.", show_default=False)
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(
            "--origin",
            help="self, rationalized, seed, human, teacher, outside.",
            show_default=False,
        ),
    ] = None,
    problem: Annotated[
        str | None,
        typer.Option(
            "--problem", help="Answers to this: its id or first digits.", show_default=False
        ),
    ] = None,
    purpose: PurposeOption = "training",
    json: JsonOption = False,
    no_pager: PagerOption = False,
    store: StoreOption = None,
) -> None:
    """Show trajectories with their verdict and where they went, some of each kind."""
    from rich.text import Text

    from flows.terminal import page
    from report.samples import Filters, as_text
    from report.samples import samples as found
    from report.text import json_line
    from stages.rows import Origin
    from store.db import Store

    origins = get_args(Origin)
    for option, given, allowed in (("--verdict", verdict, VERDICTS), ("--origin", origin, origins)):
        if given is not None:
            choose(option, given, allowed)
    held_out = choose("--purpose", purpose, ("training", "held-out")) == "held-out"
    place = Store(store_path(store))
    rows, why = found(place, run, count, Filters(held_out, round, verdict, origin, problem))
    if not rows:
        typer.echo(why, err=True)
        return
    if json:
        for row in rows:
            typer.echo(json_line(row))
        return
    parts = [Text("\n\n").join(map(as_text, rows)), Text(f"\n{age_line(place.copy)}")]
    page(list(parts), paged=not no_pager)
