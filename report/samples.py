# SPDX-License-Identifier: Apache-2.0
"""Trajectories as people read them: question, answer, completion, verdict, fate."""

from typing import Any

from report.runs import newest_run
from report.text import visible
from store.db import Store
from store.transaction import read


def sample_lines(store: Store, run: str | None, count: int) -> list[str]:
    """`count` trajectories of a run (the newest if None), taken in turn from each kind."""
    with store.reader() as connection:
        name = newest_run(connection, run)
        rows = read(connection, "samples", run=name, count=count)
    return [_lines(row) for row in rows] or [f"run {name} holds no trajectories to show"]


def _lines(row: dict[str, Any]) -> str:
    fate = "kept" if row["kept"] else f"left out ({row['why']})"
    if row["why"] == "undecided":
        fate = "not decided yet"
    if row["trained_models"]:
        models = len(row["trained_models"])
        fate += f", trained {models} model{'s' * (models > 1)}"
    verdict = f"{row['status']} ({row['reason']})" if row["status"] else "not judged"
    hint = ", with the answer as a hint" if row["hinted"] else ""
    return "\n".join(
        [
            f"{row['trajectory_id']}  {row['run']}, round {row['round']}, {row['origin']}{hint}",
            f"  question    {visible(row['question'])}   (answer {visible(row['answer'])})",
            f"  completion  {visible(row['completion'])}",
            f"  verdict     {verdict} → {fate}",
        ]
    )
