# SPDX-License-Identifier: Apache-2.0
"""What the store holds of a run, as typed rows for figures: counted in SQL, texts cut there."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from configs.load import check
from report.diagnosis import EVERYTHING
from report.pages import paired
from store.db import Store
from store.transaction import Transaction, read

CLASSES = ("right", "wrong", "unjudged", "rationalized", "leaked", "top reward")
CLASS_SIZE = 10
CHARACTERS = 2000  # of a text's beginning, and as many of its end


@dataclass(frozen=True, slots=True)
class Measured:
    """A number of a round's evaluation with its 95 % interval, where it has one."""

    round: int
    name: str
    slice: str
    k: int | None
    value: float
    low: float | None
    high: float | None
    problems: int


@dataclass(frozen=True, slots=True)
class Gain:
    """Pass@1 of one round less that of another on the same questions, with its 95 % interval."""

    value: float
    low: float
    high: float
    questions: int


@dataclass(frozen=True, slots=True)
class Timing:
    """Optimizer steps, policies that sampled, and the mean steps between them; s None: offline."""

    steps: int
    policies: int
    s: float | None


@dataclass(frozen=True, slots=True)
class Lengths:
    """Held-out answers of `tokens` to under twice as many tokens."""

    round: int
    tokens: int
    answers: int
    correct: int


@dataclass(frozen=True, slots=True)
class Flow:
    """Rows of a round's training set that `origin_round` made, and those the optimizer visited."""

    round: int
    origin_round: int
    origin: str
    rows: int
    visited: int


@dataclass(frozen=True, slots=True)
class Moves:
    """Problems solved for the first time, again, no more, and not yet."""

    round: int
    held_out: bool
    new: int
    kept: int
    lost: int
    never: int


@dataclass(frozen=True, slots=True)
class Hints:
    """What the hint brought at a difficulty: problems tried, answers right, kept, and leaks."""

    round: int
    difficulty: float | None
    tried: int
    correct: int
    kept: int
    leaks: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What a refresh's answers look like: a monitor's value."""

    round: int
    refresh: int
    name: str
    slice: str
    value: float


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm that sounded at a refresh: the series that it watches, and its sentence."""

    round: int
    refresh: int
    watch: str
    then: str
    message: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What a stage took in a round; tokens are sampled, or trained on in an update."""

    round: int
    stage: str
    wall_s: float
    gpu_s: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Fate:
    """Trajectories that were judged and decided alike."""

    round: int
    purpose: str
    origin: str
    status: str
    reason: str
    kept: bool
    why: str
    trajectories: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """A trajectory to read: its text's beginning and end, and the rounds that it trained."""

    trajectory_id: UUID
    classes: tuple[str, ...]
    round: int
    origin: str
    hinted: bool
    status: str | None
    score: float | None
    reason: str | None
    kept: bool
    why: str
    trained: tuple[int, ...]
    question: str
    answer: str
    head: str
    tail: str
    characters: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """A run's config and manifest, and its rows in the order of its rounds."""

    name: str
    config: Any
    manifest: Mapping[str, Any]
    metrics: Sequence[Measured] = ()
    gain: Gain | None = None
    timing: Timing | None = None
    lengths: Sequence[Lengths] = ()
    flows: Sequence[Flow] = ()
    moves: Sequence[Moves] = ()
    hints: Sequence[Hints] = ()
    readings: Sequence[Reading] = ()
    alarms: Sequence[Alarm] = ()
    costs: Sequence[Cost] = ()
    fates: Sequence[Fate] = ()
    chosen: Sequence[Chosen] = ()

    def measured(self, name: str, slice_: str = "all") -> list[Measured]:
        """One measure of one slice, by round."""
        return [m for m in self.metrics if (m.name, m.slice) == (name, slice_)]

    @property
    def rounds(self) -> list[int]:
        """Rounds that were measured or trained."""
        return sorted({row.round for rows in (self.metrics, self.flows) for row in rows})


def evidence(store: Store, name: str) -> Evidence:
    """What a run has to show; `gain` is its last measured round against its first."""
    with store.reader() as connection:
        tx = Transaction(connection)
        (run,) = tx.ask("run_by_name", name=name)
        chosen: dict[str, Any] = {"count": CLASS_SIZE, "characters": CHARACTERS}
        metrics = tx.rows(Measured, "run_metrics", run=name)
        found = Evidence(
            name=name,
            config=check(json.loads(run["config"])),
            manifest=json.loads(run["manifest"]),
            metrics=metrics,
            timing=next(iter(tx.rows(Timing, "timing_of", run=name)), None),
            lengths=tx.rows(Lengths, "answer_lengths", run=name),
            flows=tx.rows(Flow, "lineage_flows", run=name),
            moves=tx.rows(Moves, "moves_by_split", run=name),
            hints=tx.rows(Hints, "hint_yield", run=name),
            readings=tx.rows(Reading, "monitor_history", run=name, **EVERYTHING),
            alarms=_alarms(connection, run["run_id"]),
            costs=tx.rows(Cost, "step_costs", run=name),
            fates=tx.rows(Fate, "fates", run=name),
            chosen=tx.rows(Chosen, "chosen_trajectories", run=name, **chosen),
        )
    return replace(found, gain=_gain(store, found))


def _gain(store: Store, told: Evidence) -> Gain | None:
    measured = [m.round for m in told.measured("pass_at_1")]
    if len(measured) < 2:
        return None
    difference = paired(store, (told.name, measured[0]), (told.name, measured[-1]))
    return None if difference is None else Gain(*difference)


def _alarms(connection: Any, run_id: UUID) -> list[Alarm]:
    """A run's alarms; those that held or ended it are the same ones, heeded."""
    found = []
    for row in read(connection, "alarms", run_id=run_id):
        if row["kind"] == "alarm":
            rule = json.loads(row["detail"])["rule"]
            then = rule.get("then", "warn")
            found.append(Alarm(row["round"], row["refresh"], rule["watch"], then, row["message"]))
    return found
