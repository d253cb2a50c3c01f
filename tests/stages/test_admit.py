# SPDX-License-Identifier: Apache-2.0
"""Decisions about a task's problems: each left-out one says why and beside which other."""

from collections.abc import Sequence

import pytest
from stage_rows import STEP, a_problem

from stages import ids
from stages.admit import contaminated, refusals, refused, repeated, unread
from stages.decontaminate import Overlap
from stages.rows import ProblemDecision
from stages.tasks.base import LeftOut
from stages.verifiers import exact, numeric
from stages.verifiers.base import Answer, Judgement

ONE, TWO, THREE = (a_problem(n) for n in (1, 2, 3))
NUMERIC = numeric.Config(type="numeric").build()


def test_rows_that_became_no_problem_are_problems_of_no_split_with_their_lines() -> None:
    rows = [
        LeftOut("train", "a.jsonl:2", "no_answer", "q", ""),
        LeftOut("dev", "b.jsonl:7", "duplicate", "question 1", "12"),
        LeftOut("train", "a.jsonl:9", "not_a_row", "", ""),
    ]
    problems, decisions = unread(rows, "tests", STEP)
    assert {p.split for p in problems} == {"left_out"}
    assert [(p.question, p.answer) for p in problems] == [("q", ""), ("question 1", "12"), ("", "")]
    assert [(d.why, d.place) for d in decisions] == [
        ("no_answer", "a.jsonl:2"),
        ("duplicate", "b.jsonl:7"),
        ("not_a_row", "a.jsonl:9"),
    ]
    assert [d.problem_id for d in decisions] == [p.problem_id for p in problems]
    assert all(d.other_id == d.problem_id and not d.kept for d in decisions)
    assert problems[1].problem_id == ONE.problem_id  # the same question and answer: the same thing


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("12", None), ("1/3", None), ("-2.5e3", None), ("twelve", "reference_no_number"),
     ("x = 12", "reference_no_number")],
)  # fmt: skip
def test_an_answer_that_is_no_number_is_refused_by_numeric(answer: str, reason: str | None) -> None:
    problem = a_problem(1, answer)
    assert refused([problem], NUMERIC) == ({} if reason is None else {problem.problem_id: reason})


def test_another_verifier_may_use_the_same_answer() -> None:
    assert refused([a_problem(1, "twelve")], exact.Config(type="exact").build()) == {}


class Forgetful:
    """Judges everything and takes no answer to be equal to any."""

    name = version = trust = isolation = config = "forgetful"
    decides = True

    def judge(self, answers: Sequence[Answer]) -> list[Judgement]:
        return [Judgement("wrong", 0.0, None, "no_answer") for _ in answers]

    def same_answer(self, one: str, other: str) -> bool:
        return False


def test_an_answer_that_does_not_equal_itself_is_refused() -> None:
    assert refused([ONE], Forgetful()) == {ONE.problem_id: "not_equal_to_itself"}


def test_a_refused_reference_is_a_decision_with_the_verifiers_reason() -> None:
    assert refusals({ONE.problem_id: "reference_no_number"}, STEP) == [
        ProblemDecision(STEP, ONE.problem_id, "reference_refused", "", ONE.problem_id, False,
                        "reference_no_number", None)
    ]  # fmt: skip


ITEM, OTHER = ids.mint("p", "item"), ids.mint("p", "other")
OVERLAPS = [
    Overlap(ONE.problem_id, ITEM, "8-gram", 0.625),
    Overlap(TWO.problem_id, ITEM, "template", 1.0),
    Overlap(ONE.problem_id, ITEM, "13-gram", 0.75),
    Overlap(ONE.problem_id, OTHER, "8-gram", 0.5),
]


def test_a_pair_that_overlaps_is_one_decision_with_all_its_rules_and_its_largest_share() -> None:
    gone = {ONE.problem_id: OVERLAPS[0]}
    assert contaminated(OVERLAPS, gone, STEP) == [
        ProblemDecision(STEP, ONE.problem_id, "contaminated", "", ITEM, False, "8-gram, 13-gram",
                        0.75),
        ProblemDecision(STEP, TWO.problem_id, "contaminated", "", ITEM, True, "template", 1.0),
        ProblemDecision(STEP, ONE.problem_id, "contaminated", "", OTHER, False, "8-gram", 0.5),
    ]  # fmt: skip


def test_a_repeat_is_left_out_for_the_problem_that_it_repeats() -> None:
    found = repeated([Overlap(TWO.problem_id, ONE.problem_id, "exact", 1.0)], STEP)
    assert found == [
        ProblemDecision(STEP, TWO.problem_id, "duplicate", "", ONE.problem_id, False, "exact", 1.0)
    ]
