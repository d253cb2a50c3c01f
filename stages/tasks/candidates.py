# SPDX-License-Identifier: Apache-2.0
"""Rows of a task's data that may be problems: each question once, and dev cut from train."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import Field

from stages.errors import TaskDataError
from stages.settings import Settings
from stages.tasks.base import SPLITS, LeftOut, Split, Why
from stages.tasks.columns import Taken


class Cut(Settings):
    """Without dev data, a share of train becomes dev: by problem, or whole templates or domains."""

    dev: float = Field(0.1, ge=0, lt=1)
    by: Literal["seed", "template", "domain"] = "seed"
    seed: int = Field(0, ge=0, lt=2**31)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that may be a problem."""

    split: Split
    line: str
    taken: Taken

    @property
    def question(self) -> str:
        return self.taken.question or ""

    @property
    def answer(self) -> str:
        return self.taken.answer or ""

    @property
    def key(self) -> str:
        return " ".join(self.question.split())

    def out(self, why: Why) -> LeftOut:
        return LeftOut(self.split, self.line, why, self.question, self.answer)


def once(
    every: Mapping[Split, Iterable[Candidate]],
) -> tuple[dict[Split, list[Candidate]], list[LeftOut]]:
    """Each question once, evaluation splits first; those with two answers not at all."""
    answers: dict[str, set[str]] = defaultdict(set)
    for rows in every.values():
        for row in rows:
            answers[row.key].add(row.answer)
    kept: dict[Split, list[Candidate]] = {split: [] for split in SPLITS}
    out: list[LeftOut] = []
    seen: set[str] = set()
    for split in reversed(SPLITS):
        for row in every[split]:
            if len(answers[row.key]) > 1:
                out.append(row.out("two_answers"))
            elif row.key in seen:
                out.append(row.out("duplicate"))
            else:
                seen.add(row.key)
                kept[split].append(row)
    return kept, out


def cut_dev(rows: Sequence[Candidate], cut: Cut) -> tuple[list[Candidate], list[Candidate]]:
    """train and dev: groups in the order of their hash until dev has its share, train keeps one.

    TaskDataError where there are not two groups.
    """

    def group(row: Candidate) -> str:
        named = None if cut.by == "seed" else getattr(row.taken, cut.by)
        return f"problem {row.key}" if named is None else f"group {named}"

    groups: dict[str, int] = defaultdict(int)
    for row in rows:
        groups[group(row)] += 1
    if len(groups) == 1:
        raise TaskDataError(
            f"task.split: train has one {'problem' if cut.by == 'seed' else cut.by}, which cannot "
            "be cut into train and dev: name dev data, or set task.split.dev=0"
        )
    ordered = sorted(
        groups, key=lambda name: hashlib.sha256(f"{cut.seed}|{name}".encode()).digest()
    )
    dev: set[str] = set()
    share = 0
    for name in ordered[:-1]:
        if share >= cut.dev * len(rows):
            break
        dev.add(name)
        share += groups[name]
    chosen = [replace(row, split="dev") for row in rows if group(row) in dev]
    return [row for row in rows if group(row) not in dev], chosen
