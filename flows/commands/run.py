# SPDX-License-Identifier: Apache-2.0
"""`starloop run`: begin a run, or go on with it."""

import math
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.common import (
    NameOption,
    OverridesArgument,
    StoreOption,
    named_run,
    store_path,
    typed,
)

EXAMPLES = (
    "starloop run configs/star.yaml --rounds 5",
    "starloop run configs/star.yaml --name plain rationalize.enabled=false",
    "starloop run configs/star.yaml --fork star@2 --name bent mix.history=new_only",
    "starloop run configs/star.yaml --json > events.jsonl",
)


def run(
    config: Annotated[Path, typer.Argument(help="YAML file, e.g. configs/star.yaml.")],
    overrides: OverridesArgument = None,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds in all: a target, not so many more.")
    ] = None,
    name: NameOption = None,
    fork: Annotated[
        str | None,
        typer.Option("--fork", help="RUN@ROUND: a new run that goes on from there; needs --name."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the resolved config as JSON, a forecast on stderr, stop."
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Events as JSON, one a line, and nothing else.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Begin a run, or go on with it where it stopped."""
    from configs.load import load
    from flows.fork import parse
    from stages.errors import ConfigError, Interrupted

    forked = parse(fork) if fork is not None else None
    if forked is not None and name is None:
        raise ConfigError("--fork: a fork is a run of its own: give it a --name")
    path = store_path(store)
    given = [*(overrides or []), *([f"rounds={rounds}"] if rounds is not None else [])]
    resolved = load(config, given)
    run_name = named_run(name, config, resolved)
    if dry_run:
        from flows.forecast import forecast
        from report.forecast import forecast_page
        from store.db import Store

        typer.echo(resolved.model_dump_json(indent=2))
        typer.echo(forecast_page(forecast(run_name, resolved, Store(path), forked)), err=True)
        return
    from flows.environment import settle

    settle(path)
    from flows.screen import Screen
    from flows.views import Json

    try:
        with Screen(view=Json() if json else None, command=typed()) as screen:
            from flows.loop import run_rounds
            from store.db import Store

            run_rounds(run_name, resolved, Store(path, screen.say, math.inf), screen, forked)
    except KeyboardInterrupt as stop:
        raise Interrupted("interrupted: the same command goes on from here") from stop
