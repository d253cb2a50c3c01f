# SPDX-License-Identifier: Apache-2.0
"""A declared map from a row's columns to a problem's fields.

A field's spec is a column (nested ones by dots, places of lists by number: `prompt.0.content`) or
a template over columns: `{question.stem}\\n{choices}`. Nothing in a row is ever evaluated.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Annotated, Any

from pydantic import Field

from stages.settings import Settings

Spec = Annotated[str, Field(min_length=1)]
_MARKS = re.compile(r"\{([^{}]+)\}")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
CHOICES = "choices"


@dataclass(frozen=True, slots=True)
class Taken:
    """What a row says; None where it says nothing that is text."""

    question: str | None
    answer: str | None
    domain: str | None = None
    difficulty: float | None = None
    template: str | None = None
    rationale: str | None = None


class Columns(Settings):
    """Where a problem's fields stand.

    The answer is what follows the last `after` in its column; where `after` ends with `{`, up to
    the brace that closes it. `choices` are a list of {label, text}, an object of two such lists,
    or a list of texts (A, B, …); they are written a line each where the question says
    `{choices}`, else below it. Of `difficulty` the first number counts. `rationale` is a worked
    example as a completion.
    """

    question: Spec = "question"
    answer: Spec = "answer"
    after: str | None = Field(None, min_length=1)
    choices: Spec | None = None
    domain: Spec | None = None
    difficulty: Spec | None = None
    template: Spec | None = None
    rationale: Spec | None = None

    def specs(self) -> dict[str, str]:
        """Which column is needed for which field."""
        fields = [name for name in type(self).model_fields if name != "after"]
        given = [(name, getattr(self, name)) for name in fields]
        return {
            column: name
            for name, spec in given
            if spec is not None
            for column in _columns(spec)
            if not (column == CHOICES and self.choices and name != CHOICES)
        }

    def take(self, row: Mapping[str, Any]) -> Taken:
        """The fields of a row."""
        extra: dict[str, Any] = {}
        if self.choices is not None:
            extra[CHOICES] = _choices(look(row, self.choices))

        def text(spec: str | None) -> str | None:
            return None if spec is None else _text(spec, row, extra)

        question = text(self.question)
        if self.choices is not None and f"{{{CHOICES}}}" not in self.question:
            parts = (question, extra[CHOICES])
            question = None if None in parts else "\n".join(map(str, parts))
        rationale = text(self.rationale)
        return Taken(
            question,
            _after(text(self.answer), self.after),
            text(self.domain),
            _number(text(self.difficulty)),
            text(self.template),
            None if rationale is None else rationale.strip(),
        )


def look(row: Any, column: str) -> Any:
    """The value of a column, nested ones by dots; None where there is none."""
    if isinstance(row, Mapping) and column in row:
        return row[column]
    head, dot, rest = column.partition(".")
    if isinstance(row, Mapping):
        below = row.get(head)
    elif (
        isinstance(row, Sequence) and not isinstance(row, str) and re.fullmatch("[0-9]{1,9}", head)
    ):
        below = row[int(head)] if int(head) < len(row) else None
    else:
        below = None
    return look(below, rest) if dot else below


def as_text(value: Any) -> str | None:
    """A value as text: numbers as written, lists a line each; None for blanks and what is no text.

    Text with a lone surrogate is no text.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        lines = [as_text(item) for item in value]
        return None if None in lines or not lines else "\n".join(map(str, lines))
    if value is None or isinstance(value, Mapping | bytes):
        return None
    text = str(value)
    fits = text.encode("utf-8", "replace").decode() == text
    return text if fits and text.strip() else None


def _columns(spec: str) -> list[str]:
    return _MARKS.findall(spec) or [spec]


def _text(spec: str, row: Mapping[str, Any], extra: Mapping[str, Any]) -> str | None:
    if not _MARKS.search(spec):
        return as_text(look(row, spec))
    parts = {c: as_text(extra[c] if c in extra else look(row, c)) for c in _columns(spec)}
    if None in parts.values():
        return None
    return _MARKS.sub(lambda mark: str(parts[mark[1]]), spec)


def _choices(value: Any) -> str | None:
    """Choices a line each: `A. bank`."""
    if isinstance(value, Mapping):
        labels, texts = value.get("label"), value.get("text")
        if not (isinstance(labels, list) and isinstance(texts, list)):
            return None
        pairs = list(zip(labels, texts, strict=False)) if len(labels) == len(texts) else []
    elif isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        pairs = [(item.get("label"), item.get("text")) for item in value]
    elif isinstance(value, list) and len(value) <= len(ascii_uppercase):
        pairs = list(zip(ascii_uppercase, value, strict=False))
    else:
        return None
    lines = [(as_text(label), as_text(text)) for label, text in pairs]
    if not lines or any(None in line for line in lines):
        return None
    return "\n".join(f"{label}. {text}" for label, text in lines)


def _after(text: str | None, mark: str | None) -> str | None:
    """The answer behind the last mark, blanks off; None where it is empty."""
    if text is None or mark is None:
        return text and text.strip()
    _, found, rest = text.rpartition(mark)
    if found and mark.endswith("{"):
        rest = _to_brace(rest)
    return rest.strip() or None if found else None


def _to_brace(text: str) -> str:
    """Text up to the brace that closes the one before it; empty where none does."""
    depth = 1
    for place, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if depth == 0:
            return text[:place]
    return ""


def _number(text: str | None) -> float | None:
    found = _NUMBER.search(text or "")
    return float(found[0]) if found and len(found[0]) < 300 else None
