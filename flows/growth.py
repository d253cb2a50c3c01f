# SPDX-License-Identifier: Apache-2.0
"""A train file that grows under a run.

The files' hashes belong to a run's identity. The one change of them that a run goes on with is a
train file that gains problems: all that the run uses are still there, and the held-out ones are
the same. The first round that begins after it admits the new ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from configs.schema import Config
from report.text import visible
from stages.ids import Id
from stages.rows import Problem
from stages.tasks import jsonl
from stages.tasks.base import SPLITS
from store.db import Store

HASHES, TRAIN = "task.sha256.", "task.sha256.train:"


@dataclass(frozen=True, slots=True)
class Growth:
    """How many problems a run's files have gained, and what makes it no growth (None: it is)."""

    problems: int
    fault: str | None


def growth(store: Store, run_id: Id, changed: Sequence[str], config: Config) -> Growth | None:
    """How the data of a run has changed; `changed` as `differences` gives it.

    None where it has not, where more has changed, or where the run has admitted nothing yet.
    """
    task = config.task
    if not isinstance(task, jsonl.Config) or not changed:
        return None
    if not all(line.startswith(HASHES) for line in changed):
        return None
    built = task.build()
    there = {p.problem_id: p for split in SPLITS for p in built.problems(split)}
    with store.transaction() as tx:
        known = {row["id"] for row in tx.ask("registered_problems", run_id=run_id)}
        unused = {row["problem_id"] for row in tx.ask("left_out_problems", run_id=run_id)}
        gone = tx.rows(Problem, "problems_by_id", ids=sorted(known - unused - there.keys()))
    if not known:
        return None
    new = [p for id_, p in there.items() if id_ not in known]
    fault = None
    if task.cuts_dev:
        fault = "dev is cut from it (task.split), so name dev data of its own"
    elif gone:
        fault = f"{_named(gone[0])} is gone or changed{_more(gone)}"
    elif held_out := [p for p in new if p.split != "train"]:
        fault = f"{_named(held_out[0])} is new{_more(held_out)}"
    elif not all(line.startswith(TRAIN) for line in changed):
        fault = "a held-out file may not change"
    return Growth(len(new), fault)


def _named(problem: Problem) -> str:
    return f"{problem.split} problem {visible(problem.question)[:80]!r}"


def _more(problems: Sequence[Problem]) -> str:
    return f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
