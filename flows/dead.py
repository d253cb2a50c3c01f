# SPDX-License-Identifier: Apache-2.0
"""Firings whose process was killed: Prefect goes on showing them as running.

Who marks one takes it off the page and, where Prefect still counts it, gives back its slot (the
deployment's limit is one). Prefect itself gives the slot back five minutes after the last sign of
life, unless its server was started anew meanwhile.
"""

from contextlib import suppress
from pathlib import Path
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterParentFlowRunId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import State, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.states import Crashed

from flows.lock import run_lock
from stages.errors import LockedError

NEWEST = 50
RUNNING = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING]))


def mark_dead(deployment_id: UUID, folder: Path, name: str, own: UUID | None = None) -> None:
    """Mark a deployment's firings and their rounds as crashed that run nowhere; `own`: not this.

    Nothing is marked while a process holds the run, whose `folder` is given, or where Prefect does
    not answer.
    """
    with suppress(LockedError, httpx.HTTPError), run_lock(folder, name):
        _mark(deployment_id, own)


def _mark(deployment_id: UUID, own: UUID | None) -> None:
    with get_client(sync_client=True) as client:
        fired = client.read_flow_runs(
            flow_run_filter=FlowRunFilter(
                deployment_id=FlowRunFilterDeploymentId(any_=[deployment_id])
            ),
            sort=FlowRunSort.START_TIME_DESC,
            limit=NEWEST,
        )
        others = [run for run in fired if run.id != own]
        if not others:
            return
        rounds = client.read_flow_runs(
            flow_run_filter=FlowRunFilter(
                parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[run.id for run in others]),
                state=RUNNING,
            )
        )
        firings = [run for run in others if run.state and run.state.is_running()]
        for run in [*rounds, *firings]:
            state: State[None] = Crashed(
                message="Its process is gone; the next firing finishes the round."
            )
            client.set_flow_run_state(run.id, state, force=True)
