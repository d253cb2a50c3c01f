# SPDX-License-Identifier: Apache-2.0
"""`starloop status`: the runs of the store and where each stands."""

from typing import Any

import typer

from flows.commands.common import StoreOption, age_line, store_path


def status(store: StoreOption = None) -> None:
    """List the runs of the store and where each stands."""
    from report.text import text_table
    from store.db import Store
    from store.transaction import read

    place = Store(store_path(store))
    with place.reader() as connection:
        runs = read(connection, "run_list")
    rows = [
        [
            run["name"],
            run["recipe"],
            "–" if run["recipe"] == "import" else _rounds(run),
            _state(run),
            f"{run['last_at']:%Y-%m-%d %H:%M %Z}" if run["last_at"] else "–",
        ]
        for run in runs
    ]
    typer.echo(f"{place.path} {age_line(place.copy)}")
    typer.echo(text_table(["run", "recipe", "rounds", "state", "since"], rows))


def _rounds(run: dict[str, Any]) -> str:
    return f"{run['rounds']} of {max(run['rounds'], run['target'])}"


def _state(run: dict[str, Any]) -> str:
    """Complete, stopped, cut, or under way: what the last event about the run as a whole says."""
    if run["recipe"] == "import":
        return "imported"
    more = f", forked from {run['forked_from']}@{run['forked_at_round']}"
    more = more if run["forked_from"] else ""
    if run["resets"]:
        more += f", reset in round {', '.join(map(str, run['resets']))}"
    if run["rounds"] >= run["target"]:
        return "complete" + more
    if run["stopped"]:
        return "stopped by an alarm" + more
    cut = run["last_event"] == "cut"
    return ("cut: the same command goes on" if cut else "under way or killed") + more
