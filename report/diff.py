# SPDX-License-Identifier: Apache-2.0
"""Two rounds, of one run or of two, on the same problems: what is new, lost and as it was.

A problem is right where more than half of its judged answers are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from report.text import visible
from report.things import run_and_round, thing_of
from stages.errors import StoreError
from store.db import Store
from store.transaction import read

if TYPE_CHECKING:
    from rich.console import RenderableType

ONLY = ("gained", "lost", "changed")
STYLES = {"gained": "green", "lost": "red"}
WIDE = 100  # columns from which answers stand side by side


@dataclass(frozen=True, slots=True)
class Side:
    """A problem's answers in one round: rows with completion, status and reason."""

    answers: Sequence[Mapping[str, Any]]

    @property
    def judged(self) -> int:
        """Answers that could be judged."""
        return sum(row["status"] != "unjudged" for row in self.answers)

    @property
    def correct(self) -> int:
        """Right answers."""
        return sum(row["status"] == "correct" for row in self.answers)

    @property
    def right(self) -> bool:
        """Whether more than half of the judged answers are right."""
        return 2 * self.correct > self.judged

    @property
    def shown(self) -> Mapping[str, Any]:
        """The first answer that is as the most of them are."""
        alike = (row for row in self.answers if (row["status"] == "correct") == self.right)
        return next(alike, self.answers[0])


@dataclass(frozen=True, slots=True)
class Pair:
    """A problem that both rounds answered."""

    problem_id: Any
    question: str
    answer: str
    left: Side
    right: Side

    @property
    def state(self) -> str:
        """gained, lost, both right or both wrong."""
        if self.left.right == self.right.right:
            return "both right" if self.left.right else "both wrong"
        return "gained" if self.right.right else "lost"

    @property
    def changed(self) -> bool:
        """Whether another number of answers is right."""
        before, after = self.left, self.right
        return (before.correct, before.judged) != (after.correct, after.judged)

    def passes(self, only: str | None) -> bool:
        """Whether `--only` shows it."""
        return only is None or (self.changed if only == "changed" else self.state == only)


@dataclass(frozen=True, slots=True)
class Diff:
    """Two sides by name, the problems that both answered, and how many only one did."""

    left: str
    right: str
    purpose: str
    pairs: Sequence[Pair]
    only_left: int
    only_right: int

    def count(self, state: str) -> int:
        """Problems of a state."""
        return sum(pair.state == state for pair in self.pairs)


def diff(store: Store, left: str, right: str, purpose: str, problem: str | None = None) -> Diff:
    """Compare RUN@ROUND with RUN@ROUND (a run alone: its last trained round).

    `purpose` is held-out or training. StoreError where the two share no problem.
    """
    kind = "eval" if purpose == "held-out" else "train"
    with store.reader() as connection:
        places = [run_and_round(connection, text) for text in (left, right)]
        wanted = thing_of(connection, problem, "problem").id if problem else None
        sides = [_answers(connection, run, number, kind, purpose) for run, number in places]
    names = [f"{run}@{number}" for run, number in places]
    before, after = sides
    shared = [id_ for id_ in before if id_ in after]
    if not shared:
        raise StoreError(
            f"{names[0]} and {names[1]} share no problem: {len(before):,} {purpose} problems were "
            f"answered in the one, {len(after):,} others in the other; compare rounds of one task"
        )
    if wanted is not None and wanted not in shared:
        raise StoreError(f"--problem: {wanted} was not answered by both {names[0]} and {names[1]}")
    pairs = [
        Pair(
            id_,
            before[id_][0]["question"],
            before[id_][0]["answer"],
            Side(before[id_]),
            Side(after[id_]),
        )
        for id_ in shared
        if wanted in (None, id_)
    ]
    places_of = {"lost": 0, "gained": 1}
    pairs.sort(key=lambda pair: (places_of.get(pair.state, 2), not pair.changed))
    only_left, only_right = (
        len(a.keys() - b.keys()) for a, b in ((before, after), (after, before))
    )
    return Diff(names[0], names[1], purpose, pairs, only_left, only_right)


def _answers(
    connection: Any, run: str, number: int, kind: str, purpose: str
) -> dict[Any, list[dict[str, Any]]]:
    """The answers of a round by problem; StoreError where it has none."""
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in read(connection, "round_answers", run=run, round=number, purpose=kind):
        found.setdefault(row["problem_id"], []).append(row)
    if not found:
        rounds = read(connection, "answered_rounds", run=run, purpose=kind)
        there = ", ".join(str(row["round"]) for row in rounds) or "none"
        raise StoreError(
            f"{run}@{number} has no {purpose} answer: rounds of {run} that have some: {there}; "
            "--purpose names the other kind"
        )
    return found


def summary(found: Diff) -> str:
    """What is new, lost and as it was, in a line."""
    left_out = [
        f"{count:,} in {name} alone"
        for count, name in ((found.only_left, found.left), (found.only_right, found.right))
        if count
    ]
    alone = f" ({', '.join(left_out)})" if left_out else ""
    return (
        f"{found.left} → {found.right}: {len(found.pairs):,} {found.purpose} problems in both"
        f"{alone}: {found.count('gained'):,} gained, "
        f"{found.count('lost'):,} lost, {found.count('both right'):,} both right, "
        f"{found.count('both wrong'):,} both wrong"
    )


def as_rows(found: Diff, only: str | None) -> Iterator[dict[str, Any]]:
    """The counts, then each problem with all its answers: for programs."""
    states = {name.replace(" ", "_"): found.count(name) for name in
              ("gained", "lost", "both right", "both wrong")}  # fmt: skip
    yield {
        "left": found.left, "right": found.right, "purpose": found.purpose,
        "problems": len(found.pairs), **states, "only_left": found.only_left,
        "only_right": found.only_right,
    }  # fmt: skip
    for pair in found.pairs:
        if pair.passes(only):
            yield {
                "problem_id": pair.problem_id, "question": pair.question, "answer": pair.answer,
                "state": pair.state.replace(" ", "_"), "changed": pair.changed,
                "left": _plain(pair.left), "right": _plain(pair.right),
            }  # fmt: skip


def _plain(side: Side) -> dict[str, Any]:
    columns = ("trajectory_id", "completion", "status", "reason")
    answers = [{column: row[column] for column in columns} for row in side.answers]
    return {"judged": side.judged, "correct": side.correct, "answers": answers}


def as_parts(found: Diff, pairs: Sequence[Pair], width: int | None) -> "Iterator[RenderableType]":
    """Each problem with an answer of either side, side by side where `width` has room for it."""
    from rich.table import Table
    from rich.text import Text

    for pair in pairs:
        head = Text.assemble(
            (pair.state, STYLES.get(pair.state, "dim")),
            f"  {pair.problem_id}\n",
            ("  question  ", "dim"),
            f"{visible(pair.question)}   (answer {visible(pair.answer)})",
        )
        sides = [_side(found.left, pair.left), _side(found.right, pair.right)]
        if width is None or width < WIDE:
            yield Text("\n").join([head, *sides, Text()])
            continue
        yield head
        table = Table.grid(expand=True, padding=(0, 2))
        for _ in sides:
            table.add_column(ratio=1, overflow="fold")
        table.add_row(*sides)
        yield table
        yield Text()


def _side(name: str, side: Side) -> Any:
    from rich.text import Text

    said = side.shown
    style = "green" if side.right else "red"
    return Text.assemble(
        f"  {name}  ",
        (f"{side.correct} of {side.judged} right", style),
        f"  {said['status']} ({visible(said['reason'])})\n    {visible(said['completion'])}",
    )
