# SPDX-License-Identifier: Apache-2.0
"""Models measured, and which run used what."""

from stages.ids import Id
from stages.keyed import keyed


@keyed("evaluation_id")
class Evaluation:
    """A model measured on held-out problems, `n` samples each."""

    evaluation_id: Id
    model_id: Id
    task: str
    split: str
    sampling_id: Id
    verifier_id: Id
    n: int
    problems: int


@keyed("evaluation_id", "name", "slice")
class Metric:
    """One number of an evaluation. `slice` is `all` or a part such as `difficulty=3`.

    `value` counts unjudged samples out, `bound` counts them as wrong; `low … high` is the 95 %
    interval over problems.
    """

    evaluation_id: Id
    name: str
    slice: str
    k: int | None
    value: float | None
    low: float | None
    high: float | None
    bound: float | None
    problems: int
    samples: int


@keyed("run_id", "round", "refresh", "step", "kind", "id")
class StepOutput:
    """A run's use of an artefact; `reused`: not new to the store, `first`: new to the run."""

    run_id: Id
    run: str
    round: int
    refresh: int
    step: str
    kind: str
    id: Id
    reused: bool
    first: bool


@keyed("step_key", "name", "slice")
class Monitor:
    """What a refresh's answers look like: one number, of all of them or of a `slice`."""

    step_key: Id
    name: str
    slice: str
    value: float
