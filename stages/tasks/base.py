# SPDX-License-Identifier: Apache-2.0
"""What a task is: problems in fixed splits, worked examples, and the form of its prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from stages import ids
from stages.rows import Problem, PromptSet

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
Why = Literal["no_question", "no_answer", "duplicate", "two_answers", "not_a_row"]

# The form of a task's prompts where it has no own; `####` is the mark of the numeric verifier.
PLAIN = "{question}\nThink step by step, then write the answer alone on a last line after ####."
HINT = f"{PLAIN}\nThe answer is {{answer}}: show the work that leads to it."


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A worked example that no policy sampled: a problem of the train split and its completion."""

    problem: Problem
    completion: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row of a task's data that is no problem: where it stands (`train.jsonl:17`), and why.

    `question` and `answer` are empty where the row has none.
    """

    split: Split
    line: str
    why: Why
    question: str
    answer: str


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

    def left_out(self) -> Sequence[LeftOut]:
        """Rows of the data that became no problem (may be empty)."""
        ...


def worked_prompts(name: str) -> PromptSet:
    """The prompt set of a task that brings none of its own."""
    return PromptSet(ids.prompt_set_id(name, PLAIN, HINT), name, PLAIN, HINT)
