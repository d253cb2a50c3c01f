# SPDX-License-Identifier: Apache-2.0
"""Formats whose rows are flat: each field is a column, by default or by `--map`.

A column keeps one type through the file. Where a format has a column for each reward, every
column of numbers that no field takes is one.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stages.errors import ConfigError, TaskDataError
from stages.imports import values
from stages.imports.base import Kind, Reading, Row, Said, Source

COMMON = ("prompt", "prompt_token_ids", "question", "answer", "domain", "difficulty", "group")
SAID = ("completion", "token_ids", "logprobs", "finish_reason", "reward")
FIELDS: dict[Kind, tuple[str, ...]] = {
    "rollouts": (*COMMON, *SAID),
    "demonstrations": (*COMMON, *SAID),
    "problems": ("prompt", "question", "answer", "domain", "difficulty"),
    "pairs": (
        *COMMON,
        *("chosen", "chosen_token_ids", "rejected", "rejected_token_ids", "weight"),
    ),
}
NEEDED: dict[Kind, tuple[str, ...]] = {
    "rollouts": ("prompt", "completion"),
    "demonstrations": ("prompt", "completion"),
    "problems": ("prompt", "answer"),
    "pairs": ("prompt", "chosen", "rejected"),
}
FINISH = {"stop": "stop", "eos": "stop", "length": "length", "max_tokens": "length"}


@dataclass(frozen=True, slots=True)
class Columns:
    """A flat format: its name, where its fields stand, and what its other columns are.

    `step` names the column that tells steps apart: rows with one prompt in one step are a group.
    """

    name: str
    defaults: Mapping[str, str]
    step: str | None = None
    numbers_are_rewards: bool = False
    no_rewards: tuple[str, ...] = ()
    kinds: Sequence[Kind] = tuple(FIELDS)

    @property
    def fields(self) -> Sequence[str]:
        return list(dict.fromkeys(name for names in FIELDS.values() for name in names))

    def read(self, source: Source, kind: Kind, mapping: Mapping[str, str]) -> Reading:
        """The rows of a file."""
        unfit = sorted(mapping.keys() - set(FIELDS[kind]))
        if unfit:
            raise ConfigError(
                f"--map: {unfit[0]!r} is no field of {kind}; fields: {', '.join(FIELDS[kind])}"
            )
        where = {f: c for f, c in {**self.defaults, **mapping}.items() if f in FIELDS[kind] and c}
        return _Pass(self, source, kind, mapping, where).run()


@dataclass(slots=True)
class _Pass:
    """One pass over a file."""

    form: Columns
    source: Source
    kind: Kind
    mapping: Mapping[str, str]
    where: dict[str, str]
    types: dict[str, tuple[str, int]] = field(default_factory=dict)
    seen: dict[str, None] = field(default_factory=dict)
    numbers: list[dict[str, float]] = field(default_factory=list)
    reading: Reading = field(default_factory=Reading)

    def run(self) -> Reading:
        taken = {*self.where.values(), *([self.form.step] if self.form.step else [])}
        for line, record in self.source.records:
            self.seen.update(dict.fromkeys(record))
            try:
                row = self._row(line, record)
            except values.NotSayable as refused:
                self.reading.refuse(line, str(refused))
                row = None
            extras = self._extras(line, record, taken)
            if row is not None:
                self.reading.rows.append(row)
                self.numbers.append(extras)
        self._refuse_missing()
        self._settle_rewards(taken)
        return self.reading

    def _at(self, line: int, column: str) -> str:
        return f"{self.source.where} {line}, column {column!r}"

    def _value(self, line: int, record: Mapping[str, Any], name: str) -> Any:
        """A field's value, whose type must be that of the lines before."""
        column = self.where.get(name)
        if column is None or record.get(column) is None:
            return None
        value = record[column]
        self._same_type(line, column, values.kind_of(value), value)
        return value

    def _same_type(self, line: int, column: str, word: str, value: Any) -> None:
        before, first = self.types.setdefault(column, (word, line))
        if before != word:
            unit = self.source.where.rpartition(" ")[2]
            raise TaskDataError(
                f"{self._at(line, column)}: {word} ({values.shown(value)}) where {unit} {first} "
                f"has {before}: mend the file, a column has one type"
            )

    def _row(self, line: int, record: Mapping[str, Any]) -> Row | None:
        found = {name: self._value(line, record, name) for name in self.where if name != "reward"}
        for name in NEEDED[self.kind]:
            if found.get(name) is None:
                raise values.NotSayable(f"no {name}")
        at = {name: self._at(line, column) for name, column in self.where.items()}
        asked = values.prompt(found["prompt"], at["prompt"])
        texts = {
            name: None if found.get(name) is None else values.plain(found[name], at[name])
            for name in ("question", "answer", "group", "domain")
        }
        ids = {
            name: None if found[name] is None else values.token_ids(found[name], at[name])
            for name in found
            if name.endswith("token_ids")
        }
        weight = values.number(found.get("weight"), at.get("weight", ""))
        return Row(
            line=line,
            prompt=asked,
            said=self._said(found, ids, at),
            prompt_token_ids=ids.get("prompt_token_ids"),
            question=texts["question"],
            answer=texts["answer"] or "",
            group=texts["group"] if "group" in self.where else self._group(line, record, asked),
            domain=texts["domain"],
            difficulty=values.number(found.get("difficulty"), at.get("difficulty", "")),
            weight=1.0 if weight is None else weight,
        )

    def _group(self, line: int, record: Mapping[str, Any], asked: Any) -> str | None:
        step = self.form.step
        if step is None or record.get(step) is None or self.kind == "problems":
            return None
        return f"{values.plain(record[step], self._at(line, step))}|{asked!r}"

    def _said(
        self, found: Mapping[str, Any], ids: Mapping[str, Any], at: Mapping[str, str]
    ) -> tuple[Said, ...]:
        if self.kind == "problems":
            return ()
        if self.kind == "pairs":
            pair = tuple(
                Said(values.said(found[role], at[role]), ids.get(f"{role}_token_ids"))
                for role in ("chosen", "rejected")
            )
            if pair[0].text.split() == pair[1].text.split():
                raise values.NotSayable("chosen and rejected are equal")
            return pair
        tokens = ids.get("token_ids")
        finish = found.get("finish_reason")
        if finish is not None and finish not in FINISH:
            raise values.NotSayable(f"ended for another reason than {', '.join(FINISH)}")
        return (
            Said(
                values.said(found["completion"], at["completion"]),
                tokens,
                values.logprobs(found.get("logprobs"), tokens, at.get("logprobs", "")),
                None if finish is None else FINISH[finish],  # type: ignore[arg-type]
            ),
        )

    def _extras(self, line: int, record: Mapping[str, Any], taken: set[str]) -> dict[str, float]:
        """Numbers that are rewards, or may be once the file is read."""
        extras = {}
        reward = self.where.get("reward")
        for column, value in record.items():
            is_extra = self.form.numbers_are_rewards and column not in taken
            is_extra = is_extra and column not in self.form.no_rewards
            if value is None or not (is_extra or column == reward):
                continue
            is_number = isinstance(value, bool | int | float)
            self._same_type(line, column, "a number" if is_number else values.kind_of(value), value)
            if is_number or column == reward:
                found = values.number(value, self._at(line, column))
                if found is not None:
                    extras[column] = found
        return extras

    def _refuse_missing(self) -> None:
        wanted = [*NEEDED[self.kind], *(name for name, column in self.mapping.items() if column)]
        for name in dict.fromkeys(wanted):
            column = self.where.get(name)
            if column in self.seen:
                continue
            near = difflib.get_close_matches(column or name, self.seen, n=1)
            hint = f"; did you mean --map {name}={near[0]}?" if near else ""
            shown = ", ".join(list(self.seen)[:20])
            file = self.source.where.rpartition(",")[0]
            raise TaskDataError(
                f"{file}: {self.kind} need {name}, and no row has a column {column or name!r}; "
                f"columns: {shown}: name it with --map {name}=COLUMN{hint}"
            )

    def _settle_rewards(self, taken: set[str]) -> None:
        decides = self.where.get("reward")
        if decides not in self.seen:
            decides = None
        rewards = [
            column
            for column in self.seen
            if column == decides
            or (
                self.form.numbers_are_rewards
                and column not in taken
                and column not in self.form.no_rewards
                and self.types.get(column, ("",))[0] == "a number"
            )
        ]
        if decides is None and len(rewards) == 1:
            decides = rewards[0]
        self.reading.rewards, self.reading.decides = rewards, decides
        self.reading.columns = [c for c in self.seen if c not in taken and c not in rewards]
        self.reading.rows = [
            replace(
                row,
                score=None if decides is None else numbers.get(decides),
                components=tuple(
                    (column, numbers[column], float(column == decides))
                    for column in rewards
                    if column in numbers
                ),
            )
            for row, numbers in zip(self.reading.rows, self.numbers, strict=True)
        ]
