# SPDX-License-Identifier: Apache-2.0
"""`starloop deploy`: a schedule whose firings the workers of a Prefect work pool run."""

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

EXAMPLES = ('starloop deploy configs/dpo.yaml --cron "0 2 * * *" --pool gpus',)


def deploy(
    config: Annotated[Path, typer.Argument(help="YAML file, e.g. configs/star.yaml.")],
    cron: CronOption,
    pool: Annotated[str, typer.Option(help="Work pool whose workers run the firings.")],
    overrides: OverridesArgument = None,
    timezone: TimezoneOption = "UTC",
    rounds_per_firing: RoundsPerFiringOption = 1,
    until: UntilOption = None,
    on_new_problems: NewProblemsOption = False,
    name: NameOption = None,
    store: StoreOption = None,
) -> None:
    """Carry a run on at fixed times, by the workers of a Prefect work pool."""
    from configs.load import load
    from flows.environment import settle

    path = store_path(store)
    settle(path)
    from flows.plan import Plan
    from flows.schedule import deploy as register

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
    register(plan, pool, typer.echo)
