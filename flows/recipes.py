# SPDX-License-Identifier: Apache-2.0
"""The recipes by name, and one round of one of them as a Prefect flow."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import httpx
from prefect import flow
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from flows import resets, steps
from flows.context import Round
from flows.dpo import dpo
from flows.grpo import grpo
from flows.rejection import rejection
from flows.star import star
from stages.errors import ServerGoneError

RECIPES: dict[str, Callable[[Round], None]] = {
    "star": star,
    "rejection": rejection,
    "dpo": dpo,
    "grpo": grpo,
}


GONE = (
    "Prefect's server does not answer ({}): run the same command again, it goes on from here; "
    "unset PREFECT_API_URL if it names one that is not there"
)


def base(r: Round) -> None:
    """Round 0: register the base and the seed rows, admit problems, and measure the base."""
    steps.setup(r)
    steps.admit(r)
    steps.hand_over(r)
    steps.evaluate(r)


def work(r: Round) -> None:
    """Do a round of the run's recipe, or round 0."""
    if r.number:
        resets.take(r)
        steps.admit(r)
        RECIPES[r.run.config.recipe](r)
    else:
        base(r)


def without_heartbeats() -> AbstractContextManager[object]:
    """Flows send none: for a server of our own, where nobody waits for them.

    The end of a flow waits for the thread that sends them, up to a second.
    """
    return temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None})


def run_round(r: Round) -> None:
    """Do a round as a Prefect flow, named after the recipe."""
    named = flow(
        name=r.run.config.recipe if r.number else "base",
        flow_run_name=f"{r.run.name} round {r.number}",
        validate_parameters=False,
    )
    try:
        named(work)(r)
    except httpx.TransportError as error:
        raise ServerGoneError(GONE.format(error)) from error
    except RuntimeError as error:
        if "Failed to reach API" not in str(error):
            raise
        raise ServerGoneError(GONE.format(error)) from error
