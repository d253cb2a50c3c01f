# SPDX-License-Identifier: Apache-2.0
"""What a task is: problems in fixed splits, worked examples, and the form of its prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from stages.rows import Problem, PromptSet

Split = Literal["train", "dev", "test"]


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A worked example that no policy sampled: a problem of the train split and its completion."""

    problem: Problem
    completion: str


class Task(Protocol):
    """A built task. Equal configs give equal problems in equal order."""

    @property
    def name(self) -> str: ...
    @property
    def prompts(self) -> PromptSet: ...

    def problems(self, split: Split) -> Sequence[Problem]:
        """All problems of a split; no problem is in two splits."""
        ...

    def demonstrations(self) -> Sequence[Demonstration]:
        """Worked examples from the train split (may be empty)."""
        ...

    def extra_slices(self) -> Mapping[str, Sequence[Problem]]:
        """Problems to measure and show apart from the held-out mean, by name."""
        ...
