# SPDX-License-Identifier: Apache-2.0
"""`starloop samples`: readable trajectories with their fate."""

from typing import Annotated

import typer

from flows.commands.common import RunArgument, StoreOption, age_line, store_path


def samples(
    run: RunArgument = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many.")] = 20,
    store: StoreOption = None,
) -> None:
    """Show trajectories with their verdict and where they went, some of each kind."""
    from report.samples import sample_lines
    from store.db import Store

    place = Store(store_path(store))
    typer.echo("\n\n".join(sample_lines(place, run, count)))
    typer.echo(f"\n{age_line(place.copy)}")
