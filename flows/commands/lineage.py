# SPDX-License-Identifier: Apache-2.0
"""`starloop lineage`: which rounds' trajectories trained the last checkpoint."""

import typer

from flows.commands.common import RunArgument, StoreOption, age_line, store_path


def lineage(run: RunArgument = None, store: StoreOption = None) -> None:
    """Show which rounds' trajectories trained a run's last checkpoint, and what it rests on."""
    from report.lineage import last_checkpoint
    from store.db import Store

    place = Store(store_path(store))
    typer.echo(last_checkpoint(place, run))
    typer.echo(age_line(place.copy))
