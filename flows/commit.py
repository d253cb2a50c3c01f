# SPDX-License-Identifier: Apache-2.0
"""Exactly once: a step is looked up by its key, done if it is missing, and committed whole.

A step that this run has committed is not done again; one that another run has committed is taken
over. While a step works, it keeps its shards and checkpoints in a workspace named by its key, so
a killed step goes on from there. The workspace goes when the step is committed.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flows.context import Round
from stages.errors import SlotConflict, StoreError
from stages.ids import Id
from stages.rows import StepOutput
from stages.settings import canonical
from store.transaction import Transaction, unique_table


@dataclass(frozen=True, slots=True)
class Done:
    """A committed step: what later steps build their keys on."""

    step: str
    key: Id


@dataclass(frozen=True, slots=True)
class Output:
    """What a step made: rows to store by type, artefacts it used by kind, events (kind, text)."""

    rows: Sequence[tuple[type, Any]]
    uses: Mapping[str, Sequence[Id]]
    events: Sequence[tuple[str, str]] = ()


@dataclass(slots=True)
class Workspace:
    """A step's folder while it works, and the seconds spent inside sampler, verifier, updater."""

    key: Id
    folder: Path
    work_s: float = field(default=0.0)

    @contextmanager
    def working(self) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self.work_s += time.monotonic() - begun


def once(
    r: Round,
    step: str,
    key: Id,
    make: Callable[[Workspace], Output],
    usable: Callable[[Round, Mapping[str, Any]], bool] = lambda r, source: True,
) -> Done:
    """Have a step done exactly once; `usable` may refuse to take over another run's outputs."""
    space = Workspace(key, r.run.folder / "work" / str(key))
    begun = time.monotonic()
    with r.run.store.transaction() as tx:
        mine = tx.ask("step_committed", **r.place, step=step)
        others = tx.ask("step_by_key", step_key=key)
    place = {"round": r.number, "refresh": r.refresh}
    refreshes = r.run.config.refreshes_of(r.number)
    r.run.screen.tell("step", **place, refreshes=refreshes, step=step)
    if mine and mine[0]["step_key"] != key:
        raise StoreError(
            f"round {r.number}, step {step} was committed with another key ({mine[0]['step_key']}, "
            f"now {key}): the code or its inputs changed; start a run under another --name"
        )
    reused = bool(not mine and others and usable(r, others[0]))
    if reused:
        _take_over(r, step, key, others[0], begun)
    elif not mine:
        try:
            _commit(r, step, key, make(space), time.monotonic() - begun, space.work_s)
        except SlotConflict as conflict:
            _yield_to_other_run(r, step, conflict)
            _commit(r, step, key, make(space), time.monotonic() - begun, space.work_s)
    shutil.rmtree(space.folder, ignore_errors=True)
    seconds = round(time.monotonic() - begun, 3)
    r.run.screen.tell("step_done", **place, step=step, seconds=seconds, reused=reused or bool(mine))
    return Done(step, key)


def _yield_to_other_run(r: Round, step: str, conflict: SlotConflict) -> None:
    """Two runs sampled a slot at once: the first commit stays, this run makes the step from it."""
    with r.run.store.transaction() as tx:
        owners = tx.ask("slot_owners", trajectory_id=conflict.trajectory_id)
        if r.run.run_id in {owner["run_id"] for owner in owners}:
            raise conflict
        tx.append(
            "add_event",
            **r.place,
            kind="slot_taken_over",
            message=f"{step}: another run filled a slot first ({conflict.trajectory_id})",
            detail=None,
        )


def _take_over(r: Round, step: str, key: Id, source: Mapping[str, Any], begun: float) -> None:
    origin = {f"from_{name}": source[name] for name in ("run_id", "round", "refresh", "step")}
    origin["from_run"] = origin.pop("from_run_id")
    with r.run.store.transaction() as tx:
        tx.append("reuse_outputs", **r.place, step=step, **origin)
        wall_s = time.monotonic() - begun
        tx.append(
            "commit_step",
            **r.place,
            step=step,
            step_key=key,
            reused=True,
            wall_s=wall_s,
            work_s=0.0,
        )
        tx.append(
            "add_event",
            **r.place,
            kind="reused",
            message=f"{step} was in the store already: taken over, not done again",
            detail=canonical({"step": step, "key": str(key)}),
        )
    r.run.screen.say(f"round {r.number}: {step} is in the store already, taken over")


def _commit(r: Round, step: str, key: Id, output: Output, wall_s: float, work_s: float) -> None:
    ready = replace(output, rows=[(kind, unique_table(kind, rows)) for kind, rows in output.rows])
    with r.run.store.transaction() as tx:
        store_step(tx, r.run.name, r.place, step, key, ready, wall_s, work_s)


def store_step(
    tx: Transaction,
    run: str,
    place: Mapping[str, Any],
    step: str,
    key: Id,
    output: Output,
    wall_s: float,
    work_s: float,
) -> None:
    """Write a step at `place` (run_id, round, refresh) whole: rows, outputs, events, its mark."""
    new: set[Id] = set()
    for row_type, rows in output.rows:
        fresh = tx.insert(row_type, rows)
        new |= {values[0] for values in fresh if len(values) == 1}
    uses = [(kind, id_) for kind, used in output.uses.items() for id_ in dict.fromkeys(used)]
    asked = tx.ask("used_before", ids=[id_ for _, id_ in uses], run_id=place["run_id"])
    before = {(row["kind"], row["id"]) for row in asked}
    outputs = [
        StepOutput(
            **place,
            run=run,
            step=step,
            kind=kind,
            id=id_,
            reused=id_ not in new,
            first=(kind, id_) not in before,
        )
        for kind, id_ in uses
    ]
    tx.insert(StepOutput, outputs)
    for kind, message in output.events:
        tx.append("add_event", **place, kind=kind, message=message, detail=None)
    tx.append(
        "commit_step",
        **place,
        step=step,
        step_key=key,
        reused=False,
        wall_s=wall_s,
        work_s=work_s,
    )
