# SPDX-License-Identifier: Apache-2.0
"""Schedules of a run: served by a process in the foreground, or deployed to a work pool.

Both register the flow of `flows/firing.py` as the deployment `starloop/NAME`, one firing at a
time: one that comes while another works is cancelled by Prefect.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import cast
from uuid import UUID
from zoneinfo import ZoneInfo

import httpx
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
    WorkerFilter,
    WorkerFilterStatus,
)
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.runner import Runner
from prefect.runner.storage import LocalStorage
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_LOGGING_TO_API_ENABLED,
    temporary_settings,
)

from flows.dead import mark_dead
from flows.firing import starloop
from flows.plan import Plan, check
from flows.server import prefect_server
from stages.errors import ConfigError, Interrupted, LoopError

ROOT = Path(__file__).resolve().parents[1]
POLL_S = 5.0
# What a served firing says goes to Prefect's page, and to the terminal as plain lines.
LOGGED = {
    "PREFECT_LOGGING_LEVEL": "INFO",
    "PREFECT_LOGGING_TO_API_ENABLED": "true",
    "PREFECT_LOGGING_FORMATTERS_STANDARD_FLOW_RUN_FMT": "  %(message)s",
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "ERROR",
}
REFUSED = "Deployment concurrency limit reached."  # Prefect's words for a firing too many
Say = Callable[[str], None]


def check_server() -> None:
    """ConfigError where PREFECT_API_URL is not set, LoopError where nothing answers there."""
    url = os.environ.get("PREFECT_API_URL")
    if not url:
        raise ConfigError(
            "PREFECT_API_URL is not set: start a server with `prefect server start` and set it to "
            "the server's address, such as http://127.0.0.1:4200/api"
        )
    with get_client(sync_client=True) as client:
        error = client.api_healthcheck()
    if error is not None:
        raise LoopError(
            f"PREFECT_API_URL: no Prefect server answers at {url} ({error}): start it with "
            "`prefect server start`, or name another"
        )


def _check_owner(plan: Plan) -> None:
    """ConfigError where the server has this deployment for a run of another store."""
    with get_client(sync_client=True) as client:
        try:
            found = client.read_deployment_by_name(plan.full_name)
        except ObjectNotFound:
            return
    owner = found.parameters.get("store", str(plan.store))
    if owner != str(plan.store):
        raise ConfigError(
            f"--name: the server has a schedule of run {plan.name} of store {owner} already: give "
            "another --name, or delete that one with "
            f"`prefect deployment delete {plan.full_name}`"
        )


def deploy(plan: Plan, pool: str, say: Say) -> None:
    """Register the schedule on a work pool, whose workers run its firings from this checkout."""
    check(plan)
    if plan.caution:
        say(plan.caution)
    check_server()
    _check_owner(plan)
    with get_client(sync_client=True) as client:
        pools = sorted(found.name for found in client.read_work_pools())
        if pool not in pools:
            known = f"there are {', '.join(pools)}" if pools else "there is none yet"
            raise ConfigError(
                f"--pool: {pool!r} is no work pool of the server, {known}: name one, or make it "
                f"with `prefect work-pool create {pool} --type process`"
            )
        online = client.read_workers_for_work_pool(
            pool, worker_filter=WorkerFilter(status=WorkerFilterStatus(any_=["ONLINE"]))
        )
    deployment = RunnerDeployment.from_flow(starloop, **plan.terms)
    deployment.storage = LocalStorage(str(ROOT))
    made = cast("UUID", deployment.apply(work_pool_name=pool))
    mark_dead(made, plan.folder, plan.name)
    say(f"deployed to work pool {pool} as {plan.full_name}: {plan.says}")
    if not online:
        say(
            f"no worker of pool {pool} is online, so nothing fires yet: start one with "
            f"`prefect worker start --pool {pool}`"
        )
    say(f"fire it now with `prefect deployment run {plan.full_name}`")


def serve(plan: Plan, say: Say) -> None:
    """Serve the schedule until its last round or Ctrl-C, on a server of its own if none is set."""
    check(plan)
    say(plan.says)
    if plan.caution:
        say(plan.caution)
    if not os.environ.get("PREFECT_API_URL"):
        say("starting Prefect's server (some seconds, longer the first time)")
    with prefect_server(plan.store.parent / ".prefect", schedules=True):
        url = os.environ["PREFECT_API_URL"]
        with temporary_settings({PREFECT_API_URL: url, PREFECT_LOGGING_TO_API_ENABLED: True}):
            check_server()
            _check_owner(plan)
            os.environ.update(LOGGED)
            say(f"Prefect's page: {url.removesuffix('/api')}; Ctrl-C ends the schedule")
            try:
                ended = asyncio.run(_serve(plan, say))
            except KeyboardInterrupt:
                ended = False
    if not ended:
        raise Interrupted(
            "the schedule is stopped and fires no more: the same command goes on with it, "
            "`starloop run` with the run alone"
        )


async def _serve(plan: Plan, say: Say) -> bool:
    """Whether the schedule came to its last round."""
    runner = Runner(name=plan.name, query_seconds=POLL_S, limit=None)
    deployment_id = await runner.aadd_flow(starloop, **plan.terms)
    await asyncio.to_thread(mark_dead, deployment_id, plan.folder, plan.name)
    watching = asyncio.create_task(_watch(plan, deployment_id, runner, say))
    try:
        await runner.start()
    finally:
        watching.cancel()
    return watching.done() and not watching.cancelled() and watching.result()


async def _watch(plan: Plan, deployment_id: UUID, runner: Runner, say: Say) -> bool:
    """Say what each firing came to and when the next one is; end after the last round."""
    seen: set[UUID] | None = None
    told: datetime | None = None
    async with get_client() as client:
        while True:
            await asyncio.sleep(1.0)
            try:
                ended = await _ended(client, deployment_id)
                coming = await _next(client, deployment_id)
            except httpx.HTTPError:
                continue
            new = [] if seen is None else [run for run in ended if run.id not in seen]
            seen = {run.id for run in ended}
            for run in reversed(new):
                say(outcome(run))
            if new and plan.until is not None and await asyncio.to_thread(_is_done, plan):
                say(f"round {plan.until} is done: the schedule ends")
                await runner.astop()
                return True
            if coming is not None and coming != told:
                told = coming
                here = coming.astimezone(ZoneInfo(plan.timezone))
                say(f"next firing: {here:%a %Y-%m-%d %H:%M %Z}")
            await asyncio.sleep(POLL_S - 1.0)


async def _ended(client: PrefectClient, deployment_id: UUID) -> list[FlowRun]:
    """The firings that came to an end, the newest first."""
    return await client.read_flow_runs(
        flow_run_filter=FlowRunFilter(
            deployment_id=FlowRunFilterDeploymentId(any_=[deployment_id]),
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=list(TERMINAL_STATES))),
        ),
        sort=FlowRunSort.END_TIME_DESC,
        limit=50,
    )


async def _next(client: PrefectClient, deployment_id: UUID) -> datetime | None:
    """When the schedule fires next; None while Prefect has not planned it."""
    coming = await client.read_flow_runs(
        flow_run_filter=FlowRunFilter(
            deployment_id=FlowRunFilterDeploymentId(any_=[deployment_id]),
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED])),
            expected_start_time=FlowRunFilterExpectedStartTime(after_=datetime.now(UTC)),
        ),
        sort=FlowRunSort.EXPECTED_START_TIME_ASC,
        limit=1,
    )
    return coming[0].expected_start_time if coming else None


def _is_done(plan: Plan) -> bool:
    with suppress(LoopError):
        return plan.until is not None and plan.done >= plan.until
    return False


def outcome(run: FlowRun) -> str:
    """What a firing came to, in a line."""
    state = run.state
    assert state is not None
    message = " ".join((state.message or "").split())
    if state.is_cancelled() and message == REFUSED:
        message = "a firing of this schedule was still at work"
    if state.is_crashed():
        message = f"{message.rstrip('.')}; the next firing finishes the round that was cut"
    return f"firing {run.name}: {state.type.value.lower()}{': ' * bool(message)}{message}"
