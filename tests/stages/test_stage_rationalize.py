# SPDX-License-Identifier: Apache-2.0
"""Which problems failed, and which hinted answers may stand as if there had been no hint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage_rows import PROMPT_SET, STEP, a_problem, a_prompt, a_trajectory, a_verdict, by_trajectory

from stages.rationalize import audit, failed_problems, hint_parents, hint_shows, template_marks
from stages.rows import Decision, Trajectory, TrajectoryParent
from stages.tasks import addition

STATUS = st.sampled_from(["correct", "wrong", "unjudged"])
HINT = PROMPT_SET.hint or ""
MARKS = template_marks(HINT)


def tries(number: int, *statuses: str) -> list[tuple[Trajectory, str]]:
    """Answers to one problem with their statuses."""
    prompt = a_prompt(a_problem(number))
    return [(a_trajectory(prompt, slot=slot), status) for slot, status in enumerate(statuses)]


def failed_numbers(*problems: list[tuple[Trajectory, str]]) -> list[int]:
    """The places of the problems that failed."""
    pairs = [pair for answers in problems for pair in answers]
    verdicts = by_trajectory(*(a_verdict(answer, status) for answer, status in pairs))
    failed = failed_problems([answer for answer, _ in pairs], verdicts)
    known = [answers[0][0].problem_id for answers in problems]
    return [known.index(problem) for problem in failed]


@pytest.mark.parametrize(
    ("statuses", "failed"),
    [
        (["wrong"], True),
        (["wrong", "wrong"], True),
        (["wrong", "unjudged"], True),
        (["correct"], False),
        (["wrong", "correct"], False),
        (["correct", "wrong"], False),
        (["unjudged"], False),
        (["unjudged", "unjudged"], False),
        (["unjudged", "correct"], False),
    ],
)
def test_failed_is_no_correct_and_at_least_one_wrong(statuses: list[str], failed: bool) -> None:
    assert failed_numbers(tries(1, *statuses)) == ([0] if failed else [])


@given(st.lists(st.lists(STATUS, min_size=1, max_size=4), max_size=5))
def test_failed_problems_come_once_each_and_in_order(problems: list[list[str]]) -> None:
    expected = [
        place for place, seen in enumerate(problems) if "wrong" in seen and "correct" not in seen
    ]
    answers = [tries(number, *statuses) for number, statuses in enumerate(problems)]
    assert failed_numbers(*answers) == expected


def test_a_hinted_answer_descends_from_the_wrong_tries_of_its_problem() -> None:
    (first, _), (second, _), (third, _) = tries(1, "wrong", "unjudged", "wrong")
    ((other, _),) = tries(2, "wrong")
    verdicts = by_trajectory(
        a_verdict(first, "wrong"),
        a_verdict(second, "unjudged"),
        a_verdict(third, "wrong"),
        a_verdict(other, "wrong"),
    )
    hinted = a_trajectory(a_prompt(a_problem(1), hinted=True), origin="rationalized")
    assert hint_parents([hinted], [first, second, third, other], verdicts) == [
        TrajectoryParent(hinted.trajectory_id, first.trajectory_id, "hint"),
        TrajectoryParent(hinted.trajectory_id, third.trajectory_id, "hint"),
    ]


def test_the_marks_are_the_text_around_question_and_answer() -> None:
    assert MARKS == ("(hint", ")=")
    assert template_marks("Q: {question}\nThe key says {answer}. Explain.") == (
        "Q:",
        "The key says",
        ". Explain.",
    )


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        # words about the hint
        ("As given in the hint;a:5+7+0=12;#12", "12"),
        ("a:5+7+0=12;#12 (HINT)", "12"),
        ("The provided answer is right: 5+7=12 #12", "12"),
        ("We are told that it is so. #12", "12"),
        ("since we know the answer, #12", "12"),
        # the bare answer before any work
        ("12", "12"),
        ("#12", "12"),
        ("  # 12 \n", "12"),
        ("12. because 5+7=12", "12"),
        ("answer is 12. because 5+7 is", "12"),
        ("The final answer is 12, for 5+7=12;#12", "12"),
        ("the answer: 12\na:5+7+0=12;#12", "12"),
        ("#12;a:5+7+0=12;#12", "12"),
        ("X; and then work", "x"),
        # the hint template's own text
        ("a5+a7 (hint 12)=a:5+7+0=12;#12", "12"),
        ("12)=a:5+7+0=12;#12", "12"),
    ],
)
def test_a_hint_that_shows_is_seen(completion: str, answer: str) -> None:
    assert hint_shows(completion, answer, MARKS)


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("a:5+7+0=12;#12", "12"),
        ("a:3+4+0=7;#7", "7"),
        ("5+0=5;#5", "5"),
        ("5 + 0 = 5;#5", "5"),
        ("12+0=12;#12", "12"),
        ("120 is not it; 5+7=12;#12", "12"),
        ("work first. The answer is 12", "12"),
        ("", "12"),
    ],
)
def test_work_before_the_answer_passes(completion: str, answer: str) -> None:
    assert not hint_shows(completion, answer, MARKS)


@given(st.integers(1, 5), st.data())
def test_an_honest_addition_always_passes(length: int, data: st.DataObject) -> None:
    low, high = (0, 9) if length == 1 else (10 ** (length - 1), 10**length - 1)
    a, b = data.draw(st.integers(low, high)), data.draw(st.integers(low, high))
    assert not hint_shows(addition.worked(a, b), str(a + b), template_marks(addition.HINT))


def test_the_audit_decides_every_hinted_answer_with_a_reason() -> None:
    problem = a_problem(1, answer="12")
    prompt = a_prompt(problem, hinted=True)
    cases = [
        ("a:5+7+0=12;#12", "correct", "match", "rationalized"),
        ("as given: #12", "correct", "match", "hint_leak"),
        ("a:5+7+0=13;#13", "wrong", "mismatch", "wrong"),
        ("as given: #13", "wrong", "mismatch", "wrong"),
        ("a:5+7+0=", "wrong", "truncated", "truncated"),
        ("a:5+7+0=12;#12", "unjudged", "spawn_failed", "unjudged"),
    ]
    answers = [a_trajectory(prompt, text, slot=slot) for slot, (text, *_) in enumerate(cases)]
    verdicts = by_trajectory(
        *(
            a_verdict(answer, status, reason=reason)
            for answer, (_, status, reason, _) in zip(answers, cases, strict=True)
        )
    )
    decisions = audit(answers, {problem.problem_id: problem}, verdicts, HINT, STEP)
    assert decisions == [
        Decision(STEP, answer.trajectory_id, "rationalized", why == "rationalized", why)
        for answer, (*_, why) in zip(answers, cases, strict=True)
    ]
