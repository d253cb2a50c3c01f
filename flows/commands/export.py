# SPDX-License-Identifier: Apache-2.0
"""`starloop export`: a run's training set, trajectories or tables as files."""

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.common import StoreOption, age_line, choose, run_names, store_path

EXAMPLES = (
    "starloop export star --to out",
    "starloop export star --what trajectories --format jsonl --to out",
)


def export(
    run: Annotated[str, typer.Argument(help="Name of the run.", autocompletion=run_names)],
    to: Annotated[Path, typer.Option("--to", help="Folder to make; it must not hold anything.")],
    what: Annotated[
        str, typer.Option("--what", help="training-set, trajectories or run (all its tables).")
    ] = "training-set",
    format: Annotated[
        str, typer.Option("--format", "-f", help="parquet, jsonl, or datasets (a folder to load).")
    ] = "parquet",
    round: Annotated[
        int | None,
        typer.Option("--round", help="Round; the last training set, or all trajectories."),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Write what a run trained on, sampled or used to a folder, from the read-only copy."""
    from report.runs import newest_run
    from report.text import size
    from store.db import Store
    from store.exporting import FORMATS, WHATS
    from store.exporting import export as write

    choose("--what", what, WHATS)
    choose("--format", format, FORMATS)
    place = Store(store_path(store))
    with place.reader() as connection:
        name = newest_run(connection, run)
        manifest = write(connection, name, what, round, format, to.expanduser().absolute())
    for file, found in manifest["files"].items():
        typer.echo(f"{to / file}: {found['rows']:,} rows, {size(found['bytes'])}")
    typer.echo(f"{to / 'manifest.json'} {age_line(place.copy)}")
