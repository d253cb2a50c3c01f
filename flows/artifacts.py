# SPDX-License-Identifier: Apache-2.0
"""The round table and the progress of a run as artifacts in Prefect's page.

They are a view of the store, written anew after each round; one that cannot be written fails
nothing.
"""

import re

from prefect import task
from prefect.artifacts import create_progress_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE

from flows.context import Run
from report.rounds import cells, columns, header, round_lines, slices_of

ROWS = 200  # newest rounds that the page shows


def show_round(run: Run, number: int) -> None:
    """Write both artifacts after round `number`; say it where that fails."""
    try:
        _page(run, number)
    except Exception as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        run.screen.say(f"Prefect's page could not be brought up to round {number} ({why})")


@task(name="page", cache_policy=NO_CACHE, persist_result=False)
def _page(run: Run, number: int) -> None:
    key = artifact_key(run.name)
    lines = round_lines(run.store, run.name)
    slices = slices_of(lines)
    head = columns(lines)
    create_table_artifact(
        table=[dict(zip(head, cells(line, slices), strict=True)) for line in lines[-ROWS:]],
        key=f"{key}-rounds",
        description=f"Rounds of run {run.name}. {header(run.config)}",
    )
    create_progress_artifact(
        progress=100.0 * number / run.config.rounds,
        key=f"{key}-progress",
        description=f"Run {run.name}: round {number} of {run.config.rounds} is done.",
    )


def artifact_key(name: str) -> str:
    """A run's name as Prefect takes it in keys: lower case, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
