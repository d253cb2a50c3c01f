# SPDX-License-Identifier: Apache-2.0
"""A run and when it is carried on: what `starloop schedule` and `starloop deploy` are told."""

import difflib
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
from prefect.schedules import Schedule
from prefect.types.entrypoint import EntrypointType

from configs.load import load
from flows.firing import standing, starloop
from stages.errors import ConfigError
from stages.tasks import jsonl
from store.db import Store

ONE_AT_A_TIME = ConcurrencyLimitConfig(
    limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW
)


@dataclass(frozen=True, slots=True)
class Plan:
    """A run, how far a firing carries it on, and when."""

    config: Path
    overrides: tuple[str, ...]
    name: str
    store: Path
    cron: str
    timezone: str
    rounds_per_firing: int
    until: int | None
    on_new_problems: bool

    @property
    def full_name(self) -> str:
        """The deployment's name in Prefect."""
        return f"{starloop.name}/{self.name}"

    @property
    def folder(self) -> Path:
        """The run's own files."""
        return self.store.parent / self.name

    @property
    def terms(self) -> dict[str, Any]:
        """The deployment as Prefect takes it."""
        return {
            "name": self.name,
            "schedules": [Schedule(cron=self.cron, timezone=self.timezone)],
            "concurrency_limit": ONE_AT_A_TIME,
            "paused": False,
            "parameters": self.parameters,
            "description": f"Run {self.name} of {self.store}: {self.says}.",
            "entrypoint_type": EntrypointType.MODULE_PATH,
        }

    @property
    def parameters(self) -> dict[str, Any]:
        """What a firing is told: paths are absolute, it may start in another folder."""
        return {
            "config": str(self.config.absolute()),
            "overrides": list(self.overrides),
            "name": self.name,
            "store": str(self.store),
            "folder": str(Path.cwd()),
            "rounds_per_firing": self.rounds_per_firing,
            "until": self.until,
            "on_new_problems": self.on_new_problems,
        }

    @property
    def says(self) -> str:
        """What the schedule does, in a line."""
        rounds = f"{self.rounds_per_firing} round{'s' * (self.rounds_per_firing > 1)}"
        until = f", until round {self.until}" if self.until is not None else ""
        new = ", if there are train problems it has not sampled" if self.on_new_problems else ""
        return (
            f"run {self.name} is carried on by {rounds} at each firing{until}{new}; "
            f"cron {self.cron!r} in {self.timezone}"
        )

    @property
    def caution(self) -> str | None:
        """What keeps new problems from coming, None where nothing does."""
        task = load(self.config, self.overrides).task
        if not (self.on_new_problems and isinstance(task, jsonl.Config) and task.cuts_dev):
            return None
        return (
            "warning: dev is cut from the train file (task.split), so the file may gain no problem "
            "under the run: name dev data of its own, task.files.dev=FILE"
        )

    @property
    def done(self) -> int:
        """The run's last whole round, 0 before there is one."""
        every = load(self.config, self.overrides).evaluate.every
        return standing(Store(self.store), self.name, every).done or 0


def check(plan: Plan) -> None:
    """ConfigError where a plan cannot be kept."""
    if plan.rounds_per_firing < 1:
        raise ConfigError(
            f"--rounds-per-firing: {plan.rounds_per_firing} is not allowed: use 1 or more"
        )
    zones = available_timezones()
    if plan.timezone not in zones:
        near = difflib.get_close_matches(plan.timezone, zones, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(
            f"--timezone: {plan.timezone!r} is no time zone{hint}: use a name such as UTC or "
            "Europe/Berlin"
        )
    try:
        Schedule(cron=plan.cron)
        never = _never_fires(plan.cron)
    except ValueError as error:
        raise ConfigError(
            f"--cron: {plan.cron!r} is no cron line: write minute, hour, day, month and weekday, "
            "quoted: '0 2 * * *' is every night at two"
        ) from error
    if never:
        raise ConfigError(
            f"--cron: {plan.cron!r} names a day that never comes: no firing would ever be"
        )
    done = plan.done
    if plan.until is not None and plan.until <= done:
        raise ConfigError(
            f"--until: {plan.until} is not above {done}, the rounds that run {plan.name} has done: "
            "give a higher one, or leave it out"
        )


def _never_fires(cron: str) -> bool:
    """Whether a cron line has no next date, as 30 February."""
    reading: Any = import_module("prefect._vendor.croniter")
    try:
        reading.croniter(cron, datetime.now(UTC)).get_next()
    except reading.CroniterBadDateError:
        return True
    return False
