# SPDX-License-Identifier: Apache-2.0
"""Verdicts over trajectories, and what was decided about each."""

from typing import Literal

from stages.ids import Id
from stages.keyed import keyed

Status = Literal["correct", "wrong", "unjudged"]
Source = Literal["round", "rationalized", "earlier", "seed"]


@keyed("verifier_id")
class Verifier:
    """A checker: name, version and config make its id."""

    verifier_id: Id
    name: str
    version: str
    config: str


@keyed("verdict_id")
class Verdict:
    """A judgement. `wrong` is the model's doing; `unjudged` is ours and is tried again."""

    verdict_id: Id
    trajectory_id: Id
    verifier_id: Id
    attempt: int
    status: Status
    score: float | None
    extracted: str | None
    reason: str
    trust: str
    isolation: str


@keyed("verdict_id", "component")
class VerdictComponent:
    """One named part of a composed score; weight 0 makes it a metric only."""

    verdict_id: Id
    component: str
    value: float
    weight: float


@keyed("step_key", "trajectory_id")
class Decision:
    """What a step did with a candidate of a declared source, and why."""

    step_key: Id
    trajectory_id: Id
    source: Source
    kept: bool
    why: str
