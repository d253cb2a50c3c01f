# SPDX-License-Identifier: Apache-2.0
"""One firing of a schedule, as a Prefect flow: the same run, carried on by so many rounds.

A firing works up to the last whole round plus `rounds_per_firing`. A round that was cut is not
whole, so it is the first of them: the firing after a kill finishes what was cut, exactly once.
"""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from prefect import flow, get_run_logger
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.runtime import deployment, flow_run
from prefect.settings import PREFECT_API_URL
from prefect.states import Cancelled, Completed, Failed

from configs.load import load
from configs.schema import Config
from flows.dead import mark_dead
from flows.environment import settle
from flows.fork import whole_rounds
from flows.screen import Screen
from flows.views import Plain
from stages.errors import LockedError, LoopError
from stages.ids import run_id
from store.db import Store


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands: its last whole round (None: no base yet) and the last one begun."""

    done: int | None = None
    begun: int | None = None

    @property
    def cut(self) -> bool:
        """Whether a round is begun and not whole."""
        return self.begun is not None and (self.done is None or self.begun > self.done)


def standing(store: Store, name: str, every: int) -> Standing:
    """Where run `name` stands in a store that may not be there yet; `every`: of evaluate."""
    if not store.path.exists():
        return Standing()
    with store.transaction() as tx:
        found = tx.ask("run_by_name", name=name)
        if not found:
            return Standing()
        done = max(whole_rounds(tx, found[0], every), default=None)
        (begun,) = tx.ask("last_begun", run_id=found[0]["run_id"])
    return Standing(done, begun["round"])


def new_problems(store: Store, name: str, config: Config) -> int:
    """How many train problems of the task the run may use and has not sampled yet."""
    known: set[object] = set()
    if store.path.exists():
        with store.transaction() as tx:
            for query in ("asked_problems", "left_out_problems"):
                known |= {row["problem_id"] for row in tx.ask(query, run_id=run_id(name))}
    train = config.task.build().problems("train")
    return len({problem.problem_id for problem in train} - known)


def target(at: Standing, rounds: int, until: int | None, *, only_cut: bool = False) -> int | None:
    """The round that a firing works up to; None where there is nothing for it to do.

    `only_cut` leaves it the round that was cut, if one was.
    """
    if only_cut and not at.cut:
        return None
    done = at.done or 0
    aim = done + (1 if only_cut else rounds)
    aim = aim if until is None else min(aim, until)
    return aim if at.done is None or aim > at.done else None


@flow(name="starloop")
def starloop(
    config: str,
    overrides: list[str] | None = None,
    name: str | None = None,
    store: str | None = None,
    folder: str | None = None,
    rounds_per_firing: int = 1,
    until: int | None = None,
    on_new_problems: bool = False,
) -> "State[None]":
    """Carry a run on by `rounds_per_firing` rounds, to round `until` at most.

    `config` is a YAML file, `overrides` are key=value; relative paths start at `folder`, else at
    the folder that the worker starts in. With `on_new_problems` a firing works only if the task
    has train problems that the run has not sampled. A firing that finds the run or the store held
    by another process is cancelled. One that was killed is marked as crashed by the next one.
    """
    from flows.commands.common import named_run, store_path, typed

    log = get_run_logger()
    os.chdir(folder or ".")
    os.environ.setdefault("PREFECT_API_URL", str(PREFECT_API_URL.value()))
    path = store_path(Path(store) if store else None)
    try:
        settle(path)
        resolved = load(Path(config), overrides or [])
        run = named_run(name, Path(config), resolved)
        said = carry_on(
            run,
            resolved,
            path,
            Screen(view=Plain(log.info), command=typed()),
            rounds_per_firing,
            until,
            on_new_problems,
        )
    except LockedError as error:
        return Cancelled(message=f"{error}; this firing did nothing")
    except LoopError as error:
        log.error(str(error))
        return Failed(message=str(error))
    if deployment.id:
        mark_dead(UUID(deployment.id), path.parent / run, run, UUID(flow_run.id))
    log.info(said)
    return Completed(message=said)


def carry_on(
    name: str,
    config: Config,
    path: Path,
    screen: Screen,
    rounds: int,
    until: int | None,
    on_new_problems: bool,
) -> str:
    """Do a firing's rounds and return what it came to; the last one ends the schedule."""
    from flows.loop import run_rounds

    store = Store(path, screen.say, math.inf)
    at = standing(store, name, config.evaluate.every)
    nothing_new = on_new_problems and new_problems(store, name, config) == 0
    aim = target(at, rounds, until, only_cut=nothing_new)
    if aim is not None:
        rounds_in_all = until or max(config.rounds, aim)
        raised = config.model_copy(update={"rounds": rounds_in_all})
        run_rounds(name, raised, store, screen, until=aim)
    now = standing(store, name, config.evaluate.every).done or 0
    if until is not None and now >= until:
        _end_schedule()
        return f"round {now} of run {name} is done, the schedule was until round {until}: it ends"
    if aim is None:
        return (
            f"run {name} has sampled every train problem of its task, there is no new one: "
            f"nothing to do after round {now}"
        )
    return f"round {now} of run {name} is done"


def _end_schedule() -> None:
    """Pause the deployment that fired, if one did: it fires no more."""
    if deployment.id:
        with get_client(sync_client=True) as client:
            client.pause_deployment(deployment.id)
