# SPDX-License-Identifier: Apache-2.0
"""`jsonl`: problems from files (JSON lines, JSON, CSV, Parquet) or a pinned Hub data set.

A row that cannot be a problem is left out, counted and listed; a file that breaks its own form is
a TaskDataError. A question (up to blanks) stands once in all splits: test before dev before train.
One that has two answers is left out everywhere.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from stages import ids
from stages.errors import TaskDataError
from stages.imports.files import file_hash, sayable
from stages.rows import Problem, PromptSet
from stages.settings import Settings, operational
from stages.tasks.base import SPLITS, Demonstration, LeftOut, Split, Task, Why, worked_prompts
from stages.tasks.candidates import Candidate, Cut, cut_dev, once
from stages.tasks.columns import Columns, look
from stages.tasks.files import Rows, check_hash, hub_rows, rows_of

Count = Annotated[int, Field(ge=1, le=10**9)]
Text = Annotated[str, Field(min_length=1)]


class Files(Settings):
    """A path for each split; what is in the files decides, not where they lie."""

    train: str | None = operational(None, min_length=1)
    dev: str | None = operational(None, min_length=1)
    test: str | None = operational(None, min_length=1)


class Hashes(Settings):
    """SHA-256 of each file; taken from the files where left out.

    They are identity, but for a train file that gains problems: a run goes on with it.
    """

    train: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")
    dev: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")
    test: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")


class HubSplits(Settings):
    """The data set's own names of our splits."""

    train: Text | None = None
    dev: Text | None = None
    test: Text | None = None


class Hub(Settings):
    """A data set on the Hub; `revision` is a commit of 40 hex digits. `columns` replace the task's.

    Not read where files are named.
    """

    name: Text
    revision: str | None = Field(None, pattern=r"^[0-9a-f]{40}$")
    config: Text | None = None
    splits: HubSplits
    columns: Columns | None = None


class Limit(Settings):
    """At most so many problems of a split, the first ones."""

    train: Count | None = None
    dev: Count | None = None
    test: Count | None = None


class Config(Settings):
    """`files` or `hub`, and where the fields stand; `demonstrations`: worked examples at most."""

    type: Literal["jsonl"]
    name: Text = "jsonl"
    files: Files = Files()
    sha256: Hashes = Hashes()
    hub: Hub | None = None
    columns: Columns = Columns()
    split: Cut = Cut()
    limit: Limit = Limit()
    demonstrations: int | None = Field(None, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _files_say_what_they_hold(cls, given: Any) -> Any:
        """Files take the place of the Hub; their hashes join the identity."""
        files = given.get("files") if isinstance(given, dict) else None
        if not isinstance(files, dict) or not any(files.values()):
            return given
        hashes = given.get("sha256") or {}
        if isinstance(hashes, dict):
            paths = {s: Path(f).expanduser() for s, f in files.items() if f and isinstance(f, str)}
            found = {split: file_hash(path) for split, path in paths.items()
                     if split in SPLITS and path.is_file() and not hashes.get(split)}  # fmt: skip
            hashes = {**hashes, **found}
        return {**given, "hub": None, "sha256": hashes}

    @model_validator(mode="after")
    def _data_is_named(self) -> "Config":
        if any(getattr(self.files, split) for split in SPLITS):
            return self
        if self.hub is None:
            raise ValueError("files is empty: name the data, task.files.train=FILE")
        if self.hub.revision is None:
            raise ValueError(
                f"hub.revision is missing: pin a commit of {self.hub.name} (40 hex digits), or "
                "name local copies, task.files.train=FILE"
            )
        return self

    def has(self, split: Split) -> bool:
        """Whether the split has data of its own."""
        return bool(getattr(self.files if self.hub is None else self.hub.splits, split))

    @property
    def cuts_dev(self) -> bool:
        """Whether dev is a share of train, another one when train grows."""
        return bool(self.split.dev) and not self.has("dev")

    def build(self) -> Task:
        return Jsonl(self)


class Jsonl:
    """The built task; data is read when problems are first asked for."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.name = config.name

    @cached_property
    def prompts(self) -> PromptSet:
        return worked_prompts("worked")

    def problems(self, split: Split) -> Sequence[Problem]:
        """A split's problems; TaskDataError where train has none."""
        return [self._problem(row) for row in self._rows(split)]

    def demonstrations(self) -> Sequence[Demonstration]:
        """Rationales of the train split, the first ones."""
        worked = [row for row in self._rows("train") if row.taken.rationale]
        return [
            Demonstration(self._problem(row), row.taken.rationale or "")
            for row in worked[: self._config.demonstrations]
        ]

    def extra_slices(self) -> Mapping[str, Sequence[Problem]]:
        return {}

    def left_out(self) -> Sequence[LeftOut]:
        return self._loaded[1]

    def _rows(self, split: Split) -> Sequence[Candidate]:
        found = self._loaded[0][split]
        if split == "train" and not found:
            raise TaskDataError(
                f"task {self.name} has no train problems ({len(self._loaded[1])} rows left out): "
                "name data to learn from, task.files.train=FILE"
            )
        return found

    @cached_property
    def _loaded(self) -> tuple[dict[Split, list[Candidate]], list[LeftOut]]:
        every: dict[Split, list[Candidate]] = {}
        out: list[LeftOut] = []
        for split in SPLITS:
            every[split], bad = self._read(split)
            out += bad
        kept, repeated = once(every)
        if self._config.cuts_dev:
            kept["train"], kept["dev"] = cut_dev(kept["train"], self._config.split)
        for split in SPLITS:
            kept[split] = kept[split][: getattr(self._config.limit, split)]
        return kept, [*out, *repeated]

    def _source(self, split: Split) -> tuple[str, Rows]:
        """The name of a split's data in messages, and its rows."""
        config = self._config
        if config.hub is not None:
            theirs, revision = getattr(config.hub.splits, split), config.hub.revision or ""
            return theirs, hub_rows(config.hub.name, config.hub.config, theirs, revision)
        path, field = Path(getattr(config.files, split)).expanduser(), f"task.files.{split}"
        check_hash(path, field, getattr(config.sha256, split))
        return sayable(path), rows_of(path, field)

    def _read(self, split: Split) -> tuple[list[Candidate], list[LeftOut]]:
        if not self._config.has(split):
            return [], []
        name, source = self._source(split)
        hub = self._config.hub
        columns = hub.columns if hub is not None and hub.columns else self._config.columns
        rows: list[Candidate] = []
        out: list[LeftOut] = []
        missing, names = columns.specs(), dict[str, None]()
        for number, value in source:
            line = f"{name}:{number}"
            if not isinstance(value, dict):
                out.append(LeftOut(split, line, "not_a_row", "", ""))
                continue
            names.update(dict.fromkeys(map(str, value)))
            missing = {c: f for c, f in missing.items() if look(value, c) is None}
            row = Candidate(split, line, columns.take(value))
            if row.taken.question is None or row.taken.answer is None:
                why: Why = "no_answer" if row.taken.question else "no_question"
                out.append(row.out(why))
            else:
                rows.append(row)
        if not rows and not out:
            raise TaskDataError(f"{name} holds no rows: name a file that has some")
        if missing:
            raise TaskDataError(_no_column(name, *next(iter(missing.items())), list(names)))
        return rows, out

    def _problem(self, row: Candidate) -> Problem:
        return Problem(
            problem_id=ids.problem_id(self.name, row.question, row.answer),
            task=self.name,
            split=row.split,
            question=row.question,
            answer=row.answer,
            domain=row.taken.domain,
            difficulty=row.taken.difficulty,
            template=row.taken.template,
        )


def _no_column(name: str, column: str, field: str, names: Sequence[str]) -> str:
    near = get_close_matches(column, names, n=1)
    hint = f"; did you mean task.columns.{field}={near[0]}?" if near else ""
    return (
        f"{name}: task.columns.{field} names {column!r}, which no row has; columns there: "
        f"{', '.join(names[:20]) or 'none'}{hint}"
    )
