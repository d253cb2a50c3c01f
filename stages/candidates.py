# SPDX-License-Identifier: Apache-2.0
"""What a training set is chosen from, and how far back it may reach."""

import re
from dataclasses import dataclass

from stages.rows import (
    Decision,
    Prompt,
    Source,
    TrainingRow,
    TrainingRowTrajectory,
    TrainingSet,
    Trajectory,
)

HISTORY = re.compile(
    r"new_only|accumulate|window\((?P<window>[1-9][0-9]{0,5})\)|ratio\((?P<ratio>0\.[0-9]{1,6})\)"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A trajectory with its verdict, the source it would count for, and its plain prompt.

    `contaminated`: its completion recites an evaluation problem. `age`: updates between the policy
    that sampled it and the one to train, None where no policy of the run did; `too_old`: more of
    them than the loss allows. `other_sampling`: drawn from another distribution than the run's own.
    """

    trajectory: Trajectory
    source: Source
    status: str
    score: float | None
    prompt: Prompt
    contaminated: bool = False
    age: int | None = None
    too_old: bool = False
    other_sampling: bool = False


@dataclass(frozen=True, slots=True)
class Mix:
    """A training set with its rows, the trajectories behind them, and all decisions."""

    training_set: TrainingSet
    rows: list[TrainingRow]
    trajectories: list[TrainingRowTrajectory]
    decisions: list[Decision]


def loss_tokens(candidate: Candidate) -> int:
    """Completion tokens that carry loss."""
    mask = candidate.trajectory.loss_mask
    return len(candidate.trajectory.token_ids) if mask is None else sum(mask)


def barred(candidate: Candidate) -> str | None:
    """Why a candidate can never train, whatever its verdict; None where it can."""
    if candidate.prompt.hinted:
        return "hinted_prompt"
    if candidate.trajectory.finish_reason == "length":
        return "truncated"
    if candidate.contaminated:
        return "contaminated"
    if candidate.too_old:
        return "too_old"
    return None


@dataclass(frozen=True, slots=True)
class History:
    """How far back rows are taken: `rounds` with this one (None: all, 0: this refresh), a share."""

    rounds: int | None
    share: float | None = None

    @classmethod
    def parse(cls, text: str) -> "History":
        """`new_only`, `accumulate`, `window(w)`: w rounds with this one, `ratio(x)`: a share x."""
        found = HISTORY.fullmatch(text)
        if found is None:
            raise ValueError(
                f"{text!r} is not allowed: use new_only, accumulate, window(w) with w from 1 on, "
                "or ratio(x) with x between 0 and 1: ratio(0.25)"
            )
        if found["ratio"]:
            return cls(None, float(found["ratio"]))
        if text == "accumulate":
            return cls(None)
        return cls(int(found["window"] or 0))

    @property
    def earlier(self) -> bool:
        """Whether rows of earlier refreshes are taken at all."""
        return self.rounds != 0

    def since(self, round_: int) -> int:
        """The first round whose rows may be taken in a round."""
        return 0 if self.rounds is None else max(0, round_ - self.rounds + 1)

    def room(self, new: int) -> int | None:
        """Earlier rows allowed beside so many new ones; None for no bound."""
        share = self.share
        return None if share is None else int(new * share / (1.0 - share) + 1e-9)
