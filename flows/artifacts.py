# SPDX-License-Identifier: Apache-2.0
"""The round table, the progress and the reports of a run as artifacts in Prefect's page.

They are a view of the store, written anew after each round; one that cannot be written fails
nothing.
"""

import re
from pathlib import Path

from prefect import task
from prefect.artifacts import (
    create_link_artifact,
    create_progress_artifact,
    create_table_artifact,
)
from prefect.cache_policies import NO_CACHE

from flows.context import Run
from report.rounds import cells, columns, header, round_lines, slices_of

ENDS = (".html", ".md")
ROWS = 200  # newest rounds that the page shows


def show_round(run: Run, number: int) -> None:
    """Write the artifacts after round `number`; say it where that fails."""
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
    for report in report_files(run):
        create_link_artifact(
            link=report.as_uri(),
            link_text=report.name,
            key=f"{key}-{artifact_key(report.name)}",
            description=f"Report of run {run.name}, as it was written last.",
        )


def report_files(run: Run) -> list[Path]:
    """Reports that lie in the run's folder or beside the store."""
    places = [folder / f"report{end}" for folder in (run.folder, run.store.folder) for end in ENDS]
    return [place.absolute() for place in places if place.is_file()]


def artifact_key(name: str) -> str:
    """A run's name as Prefect takes it in keys: lower case, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
