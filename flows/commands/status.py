# SPDX-License-Identifier: Apache-2.0
"""`starloop status`: the runs of the store, where each stands, and what to do next."""

from typing import TYPE_CHECKING, Any

import typer

from flows.commands.common import JsonOption, StoreOption, age_line, store_path

if TYPE_CHECKING:
    from pathlib import Path

    from report.progress import Standing
    from report.status import State

EXAMPLES = ("starloop status", "starloop status --store /data/runs/store.duckdb --json")
HEAD = ["run", "recipe", "rounds", "state", "since"]
DROPPED = ("recipe", "since")  # columns that a narrow terminal goes without


def status(json: JsonOption = False, store: StoreOption = None) -> None:
    """List the runs of the store: where each stands, why, and the command that comes next."""
    from flows.lock import holder_of
    from flows.terminal import columns
    from report.status import notes_of, state_of, target_of
    from report.text import narrowed, visible
    from store.db import Store
    from store.transaction import read

    place = Store(store_path(store))
    with place.reader() as connection:
        runs = read(connection, "run_list")
    told = {run["name"]: _told(place.folder / run["name"]) for run in runs}
    states = {
        name: state_of(run, told[name], holder_of(place.folder / name))
        for run in runs
        for name in [run["name"]]
    }
    if json:
        for run in runs:
            typer.echo(_as_json(run, states[run["name"]], target_of(run, told[run["name"]])))
        return
    rows = []
    for run in runs:
        target = max(run["rounds"], target_of(run, told[run["name"]]))
        rounds = "–" if run["recipe"] == "import" else f"{run['rounds']} of {target}"
        since = f"{run['last_at']:%Y-%m-%d %H:%M %Z}" if run["last_at"] else "–"
        rows.append([run["name"], run["recipe"], rounds, states[run["name"]].word, since])
    typer.echo(visible(f"{place.path} {age_line(place.copy)}"))
    typer.echo(narrowed(HEAD, rows, columns(), DROPPED))
    for run in runs:
        state, notes = states[run["name"]], notes_of(run)
        if state.why or notes or state.word not in ("complete", "imported"):
            said = "; ".join(part for part in (state.why, notes) if part)
            typer.echo(f"\n{run['name']}: {state.word}{f': {said}' if said else ''}")
            typer.echo(f"  next: {state.next}")
    if any(state.word == "complete" for state in states.values()):
        typer.echo("\ncomplete: starloop report RUN shows it, a higher --rounds goes on")
    if not runs:
        typer.echo("no run yet: starloop run CONFIG begins one")


def _told(folder: "Path") -> "Standing | None":
    """What a run told last; None where it has no progress file."""
    from flows.progress import FILE, glance
    from report.progress import Standing

    events = glance(folder / FILE)
    at = Standing()
    for event in events:
        at.take(event)
    return at if at.run else None


def _as_json(run: dict[str, Any], state: "State", target: int) -> str:
    from report.text import json_line

    fields = {name: run[name] for name in ("recipe", "rounds", "forked_from", "forked_at_round")}
    since = run["last_at"].isoformat() if run["last_at"] else None
    said = {"state": state.word, "why": state.why, "next": state.next, "since": since}
    return json_line({"run": run["name"], "target": target, **fields, **said})
