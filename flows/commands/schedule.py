# SPDX-License-Identifier: Apache-2.0
"""`starloop schedule`: carry a run on by so many rounds whenever a cron line says."""

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.common import (
    CronOption,
    NameOption,
    NewProblemsOption,
    OverridesArgument,
    RoundsPerFiringOption,
    StoreOption,
    TimezoneOption,
    UntilOption,
    named_run,
    store_path,
)

EXAMPLES = ('starloop schedule configs/dpo.yaml --cron "0 2 * * *" --timezone Europe/Berlin',)


def schedule(
    config: Annotated[Path, typer.Argument(help="YAML file, e.g. configs/star.yaml.")],
    cron: CronOption,
    overrides: OverridesArgument = None,
    timezone: TimezoneOption = "UTC",
    rounds_per_firing: RoundsPerFiringOption = 1,
    until: UntilOption = None,
    on_new_problems: NewProblemsOption = False,
    name: NameOption = None,
    store: StoreOption = None,
) -> None:
    """Carry a run on at fixed times, as long as this process runs."""
    from configs.load import load
    from flows.environment import settle

    path = store_path(store)
    settle(path)
    from flows.plan import Plan
    from flows.schedule import serve

    plan = Plan(
        config=config,
        overrides=tuple(overrides or ()),
        name=named_run(name, config, load(config, overrides or ())),
        store=path,
        cron=cron,
        timezone=timezone,
        rounds_per_firing=rounds_per_firing,
        until=until,
        on_new_problems=on_new_problems,
    )
    serve(plan, typer.echo)
