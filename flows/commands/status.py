# SPDX-License-Identifier: Apache-2.0
"""`starloop status`: the runs of the store and where each stands."""

import typer

from flows.commands.common import StoreOption, age_line, store_path


def status(store: StoreOption = None) -> None:
    """List the runs of the store and where each stands."""
    import json

    from report.text import text_table
    from store.db import Store, read

    place = Store(store_path(store))
    with place.reader() as connection:
        runs = read(connection, "run_list")
    rows = [
        [
            run["name"],
            run["recipe"],
            f"{run['rounds']} of {max(run['rounds'], json.loads(run['config'])['rounds'])}",
            run["last_event"] or "–",
            f"{run['last_at']:%Y-%m-%d %H:%M}" if run["last_at"] else "–",
        ]
        for run in runs
    ]
    typer.echo(f"{place.path} {age_line(place.copy)}")
    typer.echo(text_table(["run", "recipe", "rounds", "last event", "at"], rows))
