# SPDX-License-Identifier: Apache-2.0
"""Verdicts: one for every try, truncated answers wrong, what is ours unjudged."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage_rows import a_problem, a_prompt, a_trajectory, a_verdict

from stages import ids
from stages.errors import VerifierError
from stages.rows import VerdictComponent
from stages.verifiers import Answer, Judgement, exact
from stages.verify import RETRIES, final_verdicts, verifier_row, verify

EXACT = exact.Config(type="exact").build()
PROBLEM = a_problem(1, answer="12")
PROMPT = a_prompt(PROBLEM)


class Unsteady:
    """Judges at the second try, in two parts."""

    name, version, config, trust, isolation = "unsteady", "1", "{}", "weak", "process"
    decides = True

    def __init__(self) -> None:
        self.tries = 0

    def judge(self, answers: Sequence[Answer]) -> list[Judgement]:
        self.tries += 1
        if self.tries % 2:
            return [Judgement("unjudged", None, None, "spawn_failed") for _ in answers]
        parts = (("answer", 1.0, 1.0), ("form", 0.5, 0.0))
        return [Judgement("correct", 1.0, one.completion, "match", parts) for one in answers]

    def same_answer(self, one: str, other: str) -> bool:
        return one == other


def test_each_answer_gets_its_verdict() -> None:
    right, wrong = a_trajectory(PROMPT, "#12"), a_trajectory(PROMPT, "#13", slot=1)
    verdicts, components = verify([right, wrong], {PROBLEM.problem_id: PROBLEM}, EXACT)
    assert [(v.trajectory_id, v.status, v.score, v.extracted, v.attempt) for v in verdicts] == [
        (right.trajectory_id, "correct", 1.0, "12", 0),
        (wrong.trajectory_id, "wrong", 0.0, "13", 0),
    ]
    assert {v.verifier_id for v in verdicts} == {verifier_row(EXACT).verifier_id}
    assert {(v.trust, v.isolation) for v in verdicts} == {("strong", "none")}
    assert components == []


def test_a_truncated_answer_is_wrong_even_where_it_shows_the_answer() -> None:
    cut = a_trajectory(PROMPT, "#12", finish_reason="length")
    (verdict,), _ = verify([cut], {PROBLEM.problem_id: PROBLEM}, EXACT)
    assert (verdict.status, verdict.reason, verdict.score) == ("wrong", "truncated", 0.0)


def test_an_empty_reference_is_tried_four_times_and_stays_unjudged() -> None:
    problem = replace(PROBLEM, answer=" ")
    verdicts, _ = verify([a_trajectory(PROMPT)], {problem.problem_id: problem}, EXACT)
    assert RETRIES == 3
    assert [(v.attempt, v.status, v.score) for v in verdicts] == [
        (attempt, "unjudged", None) for attempt in (0, 1, 2, 3)
    ]
    assert len({v.verdict_id for v in verdicts}) == 4


def test_trying_stops_at_the_first_judgement_and_keeps_the_tries_before_it() -> None:
    answer = a_trajectory(PROMPT)
    verdicts, components = verify([answer], {PROBLEM.problem_id: PROBLEM}, Unsteady())
    assert [(v.attempt, v.status) for v in verdicts] == [(0, "unjudged"), (1, "correct")]
    assert final_verdicts(verdicts) == {answer.trajectory_id: verdicts[1]}
    assert components == [
        VerdictComponent(verdicts[1].verdict_id, "answer", 1.0, 1.0),
        VerdictComponent(verdicts[1].verdict_id, "form", 0.5, 0.0),
    ]


def test_the_last_try_counts_whatever_the_order() -> None:
    first = a_verdict(a_trajectory(PROMPT), "unjudged")
    last = replace(first, attempt=3, status="wrong")
    assert final_verdicts([last, first]) == {first.trajectory_id: last}


def test_a_verifier_is_its_name_version_and_config() -> None:
    row = verifier_row(EXACT)
    assert (row.name, row.version, row.config) == ("exact", "1", '{"mark":"#","type":"exact"}')
    assert row.verifier_id == ids.verifier_id("exact", "1", row.config)
    other = verifier_row(exact.Config(type="exact", mark="=").build())
    assert other.verifier_id != row.verifier_id


@given(st.lists(st.text(), max_size=6))
def test_every_answer_has_one_final_verdict_and_a_fresh_id(completions: list[str]) -> None:
    answers = [a_trajectory(PROMPT, text, slot=n) for n, text in enumerate(completions)]
    verdicts, _ = verify(answers, {PROBLEM.problem_id: PROBLEM}, EXACT)
    assert len({v.verdict_id for v in verdicts}) == len(verdicts) == len(completions)
    assert final_verdicts(verdicts).keys() == {a.trajectory_id for a in answers}
    again, _ = verify(answers, {PROBLEM.problem_id: PROBLEM}, EXACT)
    assert again == verdicts


class Broken(Unsteady):
    """Gives rewards that are no numbers."""

    def __init__(self, score: float, part: float) -> None:
        self.given = score, part

    def judge(self, answers: Sequence[Answer]) -> list[Judgement]:
        score, part = self.given
        return [Judgement("correct", score, None, "match", (("form", part, 0.0),)) for _ in answers]


@pytest.mark.parametrize(
    ("score", "part", "said"),
    [(float("nan"), 1.0, "score is nan"), (1.0, float("-inf"), "form is -inf")],
)
def test_a_reward_that_is_no_number_is_refused_with_its_trajectory(
    score: float, part: float, said: str
) -> None:
    answer = a_trajectory(PROMPT)
    with pytest.raises(VerifierError, match=rf"{said} for trajectory {answer.trajectory_id}.*mend"):
        verify([answer], {PROBLEM.problem_id: PROBLEM}, Broken(score, part))


class Seen(Unsteady):
    """Remembers which answers it was given together."""

    def __init__(self) -> None:
        self.groups: list[list[Answer]] = []

    def judge(self, answers: Sequence[Answer]) -> list[Judgement]:
        self.groups.append(list(answers))
        return [Judgement("wrong", 0.0, None, "mismatch") for _ in answers]


def test_answers_to_one_prompt_are_judged_together_with_length_and_slot() -> None:
    other = a_problem(2, "13")
    answers = [
        a_trajectory(PROMPT, "#12"),
        a_trajectory(a_prompt(other), "#1", slot=1),
        a_trajectory(PROMPT, "#123", slot=2, finish_reason="length"),
        a_trajectory(a_prompt(PROBLEM, hinted=True), "#12", slot=3),
    ]
    seen = Seen()
    verdicts, _ = verify(answers, {p.problem_id: p for p in (PROBLEM, other)}, seen)
    assert [v.trajectory_id for v in verdicts] == [a.trajectory_id for a in answers]
    assert seen.groups == [
        [
            Answer("12", "#12", 3, False, str(answers[0].trajectory_id)),
            Answer("12", "#123", 4, True, str(answers[2].trajectory_id)),
        ],
        [Answer("13", "#1", 2, False, str(answers[1].trajectory_id))],
        [Answer("12", "#12", 3, False, str(answers[3].trajectory_id))],
    ]
