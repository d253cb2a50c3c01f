# SPDX-License-Identifier: Apache-2.0
"""Trajectories as people read them: question, answer, completion, verdict, fate."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from report.runs import newest_run
from report.text import visible
from report.things import thing_of
from store.db import Store
from store.transaction import read

if TYPE_CHECKING:
    from rich.text import Text

FILTERS = ("round", "verdict", "origin", "problem")
STYLES = {"correct": "green", "wrong": "red", "unjudged": "yellow"}
COLUMNS = (
    *("trajectory_id", "run", "round", "problem_id", "purpose", "origin", "hinted", "question"),
    *("answer", "prompt", "completion", "status", "score", "reason", "kept", "why"),
    *("training_sets", "trained_models"),
)


@dataclass(frozen=True, slots=True)
class Filters:
    """What is asked for: None is any. `problem` is an id or its first digits."""

    held_out: bool = False
    round: int | None = None
    verdict: str | None = None
    origin: str | None = None
    problem: str | None = None


def samples(
    store: Store, run: str | None, count: int, filters: Filters | None = None
) -> tuple[list[dict[str, Any]], str]:
    """`count` trajectories of a run (the newest if None), in turn from each kind.

    Where there is none: why, with the filter that left none.
    """
    asked = asdict(filters or Filters())
    with store.reader() as connection:
        name = newest_run(connection, run)
        if asked["problem"] is not None:
            asked["problem"] = thing_of(connection, asked["problem"], "problem").id
        rows = read(connection, "samples", run=name, count=count, **asked)
        if rows:
            return [{column: row[column] for column in COLUMNS} for row in rows], ""
        (left,) = read(connection, "samples_left", run=name, **asked)
    return [], visible(_emptied(name, asked, left))


def _emptied(run: str, asked: dict[str, Any], left: dict[str, Any]) -> str:
    if not left["run"]:
        return (
            f"run {run} holds no trajectory yet: a run has some after its first round, an import "
            "if it was one of rollouts (starloop status)"
        )
    if not left["purpose"]:
        other = "training" if asked["held_out"] else "held-out"
        own = "held-out" if asked["held_out"] else "training"
        return f"run {run} holds no {own} answer: --purpose {other} shows {left['run']:,} others"
    name = next(name for name in FILTERS if not left[name])
    before = left[("purpose", *FILTERS)[FILTERS.index(name)]]
    there = ", ".join(map(str, left.get(f"{name}s") or ()))
    return (
        f"run {run}: --{name} {asked[name]} leaves none of {before:,} trajectories"
        f"{f' (there: {there})' if there else ''}: give another, or leave it out"
    )


def as_text(row: dict[str, Any]) -> "Text":
    """A trajectory in four lines; control characters of what the model wrote are made visible."""
    from rich.text import Text

    fate = "kept" if row["kept"] else f"left out ({row['why']})"
    if row["why"] in ("undecided", "evaluation"):
        fate = {"undecided": "not decided yet", "evaluation": "held out"}[row["why"]]
    if row["trained_models"]:
        models = len(row["trained_models"])
        fate += f", trained {models} model{'s' * (models > 1)}"
    verdict = f"{row['status']} ({row['reason']})" if row["status"] else "not judged"
    hint = ", with the answer as a hint" if row["hinted"] else ""
    head = f"{row['run']}, round {row['round']}, {row['origin']}{hint}"
    return Text.assemble(
        (str(row["trajectory_id"]), "cyan"),
        f"  {head}\n",
        ("  question    ", "dim"),
        f"{visible(row['question'])}   (answer {visible(row['answer'])})\n",
        ("  completion  ", "dim"),
        f"{visible(row['completion'])}\n",
        ("  verdict     ", "dim"),
        (visible(verdict), STYLES.get(row["status"] or "", "")),
        f" → {fate}",
    )
