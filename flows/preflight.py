# SPDX-License-Identifier: Apache-2.0
"""Before round 1: what the base's first answers say about the rounds to come.

Nothing is sampled for it: round 0 measures the base, and its answers are what is read.
"""

from dataclasses import dataclass

from flows.context import Run
from report.text import visible
from stages.errors import HeldError
from stages.ids import Id
from stages.preflight import Outlook, outlook
from store.db import Store


@dataclass(frozen=True, slots=True)
class Pace:
    """What round 0 cost: mean tokens of an answer, and tokens sampled in a second."""

    tokens: float
    per_second: float


def read_outlook(store: Store, run_id: Id, k: int) -> Outlook | None:
    """The outlook from round 0's answers, None where round 0 measured nothing."""
    with store.transaction() as tx:
        rows = tx.ask("round_tallies", run_id=run_id, round=0)
    return outlook([(row["n"], row["correct"]) for row in rows], k) if rows else None


def read_pace(store: Store, run_id: Id) -> Pace | None:
    """Tokens and seconds of round 0's answers, None where they were taken over."""
    with store.transaction() as tx:
        (row,) = tx.ask("round_pace", run_id=run_id, round=0)
    if not row["answers"] or not row["tokens"] or not row["work_s"]:
        return None
    return Pace(row["tokens"] / row["answers"], row["tokens"] / row["work_s"])


def check_outlook(run: Run) -> None:
    """Say what is to be expected; HeldError where nothing can climb, unless the config goes on."""
    found = read_outlook(run.store, run.run_id, run.config.evaluate.k)
    if found is None or found.verdict == "go":
        return
    seen = f"pass@1 {found.pass_at_1:.3f} and pass@{found.k} {found.pass_at_k:.3f} of the base"
    text = f"{seen} on {found.problems} problems: {found.advice}"
    if found.verdict == "hold" and run.config.gates.preflight == "hold":
        raise HeldError(visible(f"run {run.name} is held before round 1: {text}"))
    run.screen.say(visible(f"warning: {text}"))
