# SPDX-License-Identifier: Apache-2.0
"""`starloop preflight`: measure a run's base and say what is to be expected."""

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.common import StoreOption, named_run, store_path, typed

EXAMPLES = ("starloop preflight configs/star-smollm2.yaml",)


def preflight(
    config: Annotated[Path, typer.Argument(help="YAML file, e.g. configs/star.yaml.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value …")] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the run; the config file's name if left out.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Do round 0 of a run, say whether it can climb and what it will take; `run` goes on."""
    from configs.load import load
    from flows.environment import settle
    from stages.errors import HeldError, Interrupted
    from stages.ids import run_id

    path = store_path(store)
    resolved = load(config, overrides or [])
    run_name = named_run(name, config, resolved)
    settle(path)
    from flows.forecast import forecast
    from flows.loop import run_rounds
    from flows.preflight import read_outlook, read_pace
    from flows.screen import Screen
    from report.preflight import preflight_page
    from store.db import Store

    try:
        with Screen(command=typed()) as screen:
            place = Store(path, screen.say)
            run_rounds(run_name, resolved, place, screen, until=0)
    except KeyboardInterrupt as stop:
        raise Interrupted("interrupted: the same command goes on from here") from stop
    found = read_outlook(place, run_id(run_name), resolved.evaluate.k)
    pace = read_pace(place, run_id(run_name))
    numbers = (pace.tokens, pace.per_second) if pace else None
    typer.echo(preflight_page(found, numbers, forecast(run_name, resolved, place)))
    if found and found.verdict == "hold" and resolved.gates.preflight == "hold":
        raise HeldError(f"run {run_name} is held before round 1: {found.advice}")
