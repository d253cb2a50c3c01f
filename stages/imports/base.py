# SPDX-License-Identifier: Apache-2.0
"""What an import format is: a function from the records of a file to typed rows.

A record is one line of JSONL or one row of Parquet. A format says what it could not map: columns
that have no place here, and rows that it refuses, each with its line and a reason. A file that
breaks its own form (a number where text was, a list of another length) is a TaskDataError.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from stages.rows import Finish

Kind = Literal["rollouts", "demonstrations", "problems", "pairs"]
Component = tuple[str, float, float]


@dataclass(frozen=True, slots=True)
class Message:
    """A chat message: role and text."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Said:
    """A completion as the file has it; `finish` is None where the file does not tell."""

    text: str
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    finish: Finish | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a file. `said` holds no completion for a problem, chosen and rejected for a pair.

    A prompt is text as the policy read it, or chat messages. `question` is the problem's text
    where it is not the prompt. `score` is what `--correct-at` judges by, `components` its parts
    (name, value, weight).
    """

    line: int
    prompt: str | tuple[Message, ...]
    said: tuple[Said, ...] = ()
    prompt_token_ids: tuple[int, ...] | None = None
    question: str | None = None
    answer: str = ""
    score: float | None = None
    components: tuple[Component, ...] = ()
    group: str | None = None
    domain: str | None = None
    difficulty: float | None = None
    weight: float = 1.0


@dataclass(slots=True)
class Reading:
    """A file as rows, with what was not mapped: columns, and refused rows (reason → lines).

    `rewards` are the columns behind `components`; `decides` is the one that is the score.
    """

    rows: list[Row] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    refused: dict[str, list[int]] = field(default_factory=dict)
    rewards: list[str] = field(default_factory=list)
    decides: str | None = None

    def refuse(self, line: int, reason: str) -> None:
        """Leave a row out."""
        self.refused.setdefault(reason, []).append(line)


@dataclass(frozen=True, slots=True)
class Source:
    """A file's records: `where` names file and unit, as in `a.jsonl, line`."""

    where: str
    records: Iterable[tuple[int, Mapping[str, Any]]]


class Format(Protocol):
    """A format by name; `fields` are those that `--map FIELD=COLUMN` may set."""

    @property
    def name(self) -> str: ...
    @property
    def kinds(self) -> Sequence[Kind]: ...
    @property
    def fields(self) -> Sequence[str]: ...

    def read(self, source: Source, kind: Kind, mapping: Mapping[str, str]) -> Reading:
        """The rows of a file; TaskDataError where the file breaks its form."""
        ...
