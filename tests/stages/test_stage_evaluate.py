# SPDX-License-Identifier: Apache-2.0
"""Held-out problems, answers gathered into votes, and metrics worked by hand."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from stage_rows import (
    MODEL,
    SAMPLING,
    VERIFIER,
    a_problem,
    a_prompt,
    a_trajectory,
    a_verdict,
    by_trajectory,
)

from stages.evaluate import (
    Answers,
    EvaluateConfig,
    evaluation_row,
    gather,
    held_out,
    measure,
)
from stages.rows import Metric, Problem
from stages.verifiers import Answer, Judgement, exact

EXACT = exact.Config(type="exact").build()
EVALUATION = evaluation_row(MODEL, "tests", [], SAMPLING, VERIFIER, EvaluateConfig(n=4, k=2), "s")


class Numbers:
    """Takes 012 and 12 for the same answer."""

    name, version, config, trust, isolation = "numbers", "1", "{}", "strong", "none"
    decides = True

    def judge(self, answers: Sequence[Answer]) -> list[Judgement]:
        return EXACT.judge(answers)

    def same_answer(self, one: str, other: str) -> bool:
        return one.lstrip("0") == other.lstrip("0")


def answers_of(
    number: int, votes: dict[str, int], silent: int = 0, unjudged: int = 0, difficulty: float = 1.0
) -> Answers:
    """Answers to a problem whose right answer is 12; right votes are right answers."""
    return Answers(
        problem=a_problem(number, "12", difficulty),
        n=sum(votes.values()) + silent + unjudged,
        correct=votes.get("12", 0),
        unjudged=unjudged,
        votes=votes,
        right_votes=frozenset(votes.keys() & {"12"}),
        silent=silent,
        truncated=0,
        tokens=0,
    )


def metrics(*answers: Answers, k: int = 2, **extra: list[Answers]) -> dict[tuple[str, str], Metric]:
    """The metrics by slice and name."""
    return {(m.slice, m.name): m for m in measure(EVALUATION, answers, k, extra)}


# Held-out problems.


def test_the_first_problems_of_each_difficulty_are_held_out() -> None:
    problems = [a_problem(n, difficulty=float(n % 3)) for n in range(12)]
    # 0 1 2, then 3 4 5: two of each of the difficulties 0, 1, 2
    assert held_out(problems, 2) == problems[:6]
    assert held_out(problems, 99) == problems


def test_problems_without_a_difficulty_are_a_group_of_their_own() -> None:
    problems = [a_problem(n, difficulty=None if n % 2 else 1.0) for n in range(6)]
    assert held_out(problems, 1) == problems[:2]


@given(st.lists(st.sampled_from([1.0, 2.0, None]), max_size=12), st.integers(1, 4))
def test_held_out_problems_keep_the_order_of_the_split(
    difficulties: list[float | None], per_difficulty: int
) -> None:
    problems = [a_problem(n, difficulty=d) for n, d in enumerate(difficulties)]
    chosen = held_out(problems, per_difficulty)
    assert chosen == [p for p in problems if p in chosen]
    for difficulty in set(difficulties):
        available = difficulties.count(difficulty)
        found = sum(p.difficulty == difficulty for p in chosen)
        assert found == min(available, per_difficulty)


# Gathering.


def gathered(problem: Problem, *answers: tuple[str, str, str | None, str]) -> Answers:
    """Answers (text, status, extracted, reason) to a problem, gathered."""
    prompt = a_prompt(problem)
    made = [a_trajectory(prompt, text, slot) for slot, (text, *_) in enumerate(answers)]
    verdicts = by_trajectory(
        *(
            a_verdict(trajectory, status, extracted, reason)
            for trajectory, (_, status, extracted, reason) in zip(made, answers, strict=True)
        )
    )
    return gather([problem], made, verdicts, Numbers())[0]


def test_answers_are_counted_by_what_they_say() -> None:
    found = gathered(
        a_problem(1),
        ("#12", "correct", "12", "match"),
        ("#12", "correct", "12", "match"),
        ("#13", "wrong", "13", "mismatch"),
        ("none", "wrong", None, "no_answer"),
        ("#1#2", "wrong", "2", "two_answers"),
        ("#12", "unjudged", None, "spawn_failed"),
    )
    assert (found.n, found.correct, found.unjudged, found.silent) == (6, 2, 1, 2)
    assert found.votes == {"12": 2, "13": 1}
    assert found.right_votes == {"12"}
    # lengths 3, 3, 3, 4, 4, 3
    assert found.tokens == 20


def test_equivalent_answers_vote_together() -> None:
    found = gathered(
        a_problem(1),
        ("#012", "correct", "012", "match"),
        ("#12", "correct", "12", "match"),
        ("#13", "wrong", "13", "mismatch"),
    )
    assert found.votes == {"012": 2, "13": 1}
    assert found.right_votes == {"012"}


def test_truncated_answers_are_counted_and_silent() -> None:
    prompt = a_prompt(a_problem(1))
    cut = a_trajectory(prompt, "1+", finish_reason="length")
    verdicts = by_trajectory(a_verdict(cut, "wrong", None, "truncated"))
    (found,) = gather([a_problem(1)], [cut], verdicts, EXACT)
    assert (found.truncated, found.silent, found.n) == (1, 1, 1)


def test_answers_are_joined_to_problems_by_id() -> None:
    problems = [a_problem(n) for n in (1, 2)]
    made = [a_trajectory(a_prompt(p), slot=n) for p in problems[::-1] for n in range(3)]
    verdicts = by_trajectory(*(a_verdict(t, "correct") for t in made))
    found = gather(problems, made[:4], verdicts, EXACT)
    assert [(a.problem, a.n) for a in found] == [(problems[0], 1), (problems[1], 3)]


# Measuring.


def test_pass_at_1_and_pass_at_k_are_means_over_difficulties() -> None:
    found = metrics(
        answers_of(1, {"12": 2, "13": 2}),
        answers_of(2, {"12": 4}),
        answers_of(3, {"13": 4}, difficulty=2.0),
    )
    # pass@1: difficulty 1 has (2/4 + 4/4) / 2 = 3/4, difficulty 2 has 0; (3/4 + 0) / 2 = 3/8,
    # where the mean over problems would be 1/2
    assert found["all", "pass_at_1"].value == pytest.approx(3 / 8)
    # pass@2: 1 − C(2,2)/C(4,2) = 5/6; ((5/6 + 1) / 2 + 0) / 2 = 11/24
    assert found["all", "pass_at_k"].value == pytest.approx(11 / 24)
    assert found["difficulty=1", "pass_at_1"].value == pytest.approx(3 / 4)
    assert found["difficulty=1", "pass_at_k"].value == pytest.approx(11 / 12)
    assert found["difficulty=2", "pass_at_1"].value == 0
    assert found["all", "pass_at_1"].k is None and found["all", "pass_at_k"].k == 2
    assert (found["all", "pass_at_1"].problems, found["all", "pass_at_1"].samples) == (3, 12)
    assert (found["difficulty=1", "length"].problems, found["difficulty=2", "length"].samples) == (
        2,
        4,
    )


def test_maj_at_k_shares_a_tie() -> None:
    # 6 pairs of 12 12 13 13: one 12-12 earns 1, four ties earn 1/2: 3 / 6
    found = metrics(answers_of(1, {"12": 2, "13": 2}))
    assert found["all", "maj_at_k"].value == pytest.approx(0.5)


def test_unjudged_answers_count_out_for_the_value_and_wrong_for_the_bound() -> None:
    # 12, 13 and two that nobody could judge
    found = metrics(answers_of(1, {"12": 1, "13": 1}, unjudged=2))
    pass_at_1, pass_at_2 = found["all", "pass_at_1"], found["all", "pass_at_k"]
    # 1 of 2 and 1 of 4; 1 − C(1,2)/C(2,2) = 1 and 1 − C(3,2)/C(4,2) = 1/2
    assert (pass_at_1.value, pass_at_1.bound) == (pytest.approx(1 / 2), pytest.approx(1 / 4))
    assert (pass_at_2.value, pass_at_2.bound) == (pytest.approx(1), pytest.approx(1 / 2))
    # the pair 12-13 is a tie: 1/2; of 6 pairs with two silent: 1/2 + 2 × 1, over 6
    maj = found["all", "maj_at_k"]
    assert (maj.value, maj.bound) == (pytest.approx(1 / 2), pytest.approx(2.5 / 6))


def test_with_too_few_judged_answers_there_is_a_bound_and_no_value() -> None:
    # 2 of 4 are judged, k is 3: 1 − C(3,3)/C(4,3) = 3/4
    found = metrics(answers_of(1, {"12": 1, "13": 1}, unjudged=2), k=3)["all", "pass_at_k"]
    assert (found.value, found.low, found.high) == (None, None, None)
    assert found.bound == pytest.approx(3 / 4)


def test_a_problem_that_nobody_could_judge_is_left_out_of_the_value_only() -> None:
    found = metrics(answers_of(1, {"12": 4}), answers_of(2, {}, unjudged=4))["all", "pass_at_1"]
    assert (found.value, found.bound) == (1.0, pytest.approx(0.5))


def test_shares_of_truncated_and_silent_answers_and_the_mean_length() -> None:
    one = replace(answers_of(1, {"12": 2}, silent=2), truncated=1, tokens=40)
    other = replace(answers_of(2, {"12": 2}), tokens=2)
    found = metrics(one, other)
    # (1/4 + 0) / 2, (2/4 + 0) / 2, and 42 tokens in 6 samples
    assert found["all", "truncated"].value == pytest.approx(1 / 8)
    assert found["all", "no_answer"].value == pytest.approx(1 / 4)
    assert found["all", "length"].value == pytest.approx(7)
    assert found["all", "length"].low is None


def test_one_difficulty_has_no_slice_of_its_own() -> None:
    assert {slice_ for slice_, _ in metrics(answers_of(1, {"12": 4}))} == {"all"}


def test_problems_without_a_difficulty_are_measured_beside_those_with_one() -> None:
    without = replace(answers_of(2, {"13": 4}), problem=a_problem(2, difficulty=None))
    found = metrics(answers_of(1, {"12": 4}), without)
    assert found["all", "pass_at_1"].value == pytest.approx(0.5)
    assert len({slice_ for slice_, _ in found}) == 3


def in_domain(answers: Answers, domain: str | None) -> Answers:
    return replace(answers, problem=replace(answers.problem, domain=domain))


def test_each_domain_is_a_slice_and_the_problems_of_none_are_one_too() -> None:
    found = metrics(
        in_domain(answers_of(1, {"12": 1, "13": 3}), "algebra"),
        in_domain(answers_of(2, {"12": 4}), "algebra"),
        in_domain(answers_of(3, {"13": 4}, difficulty=2.0), "sets"),
        in_domain(answers_of(4, {"12": 2, "13": 2}), None),
    )
    domains = {slice_ for slice_, _ in found if slice_.startswith("domain")}
    assert domains == {"domain=algebra", "domain=none", "domain=sets"}
    assert found["domain=algebra", "pass_at_1"].value == pytest.approx(5 / 8)
    assert found["domain=algebra", "pass_at_1"].problems == 2
    assert found["domain=sets", "pass_at_1"].value == 0
    assert found["domain=none", "pass_at_1"].value == pytest.approx(1 / 2)
    # difficulty 1 has (1/4 + 1 + 1/2) / 3, difficulty 2 has 0
    assert found["all", "pass_at_1"].value == pytest.approx(7 / 24)


def test_two_domains_are_enough_for_slices() -> None:
    found = metrics(
        in_domain(answers_of(1, {"12": 4}), "algebra"), in_domain(answers_of(2, {"13": 4}), "sets")
    )
    assert {slice_ for slice_, _ in found} == {"all", "domain=algebra", "domain=sets"}


@pytest.mark.parametrize("domain", [None, "algebra"])
def test_one_domain_has_no_slice_of_its_own(domain: str | None) -> None:
    found = metrics(*(in_domain(answers_of(n, {"12": 4}), domain) for n in (1, 2)))
    assert {slice_ for slice_, _ in found} == {"all"}


def test_an_extra_slice_stands_apart() -> None:
    found = metrics(answers_of(1, {"12": 4}), easy=[answers_of(2, {"12": 1, "13": 3})])
    assert found["easy", "pass_at_1"].value == pytest.approx(1 / 4)
    assert found["all", "pass_at_1"].value == 1.0
    assert found["all", "pass_at_1"].problems == found["easy", "pass_at_1"].problems == 1


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4), st.integers(0, 4), st.integers(0, 3), st.integers(0, 3),
            st.sampled_from([1.0, 2.0]),
        ).filter(lambda t: sum(t[:4]) > 0),
        min_size=1, max_size=6,
    ),
    st.integers(1, 3),
)  # fmt: skip
def test_values_lie_in_their_intervals_and_no_row_is_there_twice(
    found: list[tuple[int, int, int, int, float]], k: int
) -> None:
    answers = [
        answers_of(n, {"12": right, "13": wrong}, silent, unjudged, difficulty)
        for n, (right, wrong, silent, unjudged, difficulty) in enumerate(found)
    ]
    rows = measure(EVALUATION, answers, k, {})
    assert len({(m.evaluation_id, m.name, m.slice) for m in rows}) == len(rows)
    for m in rows:
        if m.low is not None and m.high is not None and m.value is not None:
            assert 0 <= m.low <= m.value <= m.high <= 1


# The row.


def test_an_evaluation_does_not_depend_on_the_order_of_its_problems() -> None:
    problems = [a_problem(n) for n in range(3)]
    one = evaluation_row(
        MODEL, "tests", problems, SAMPLING, VERIFIER, EvaluateConfig(n=4, k=2), "s"
    )
    assert one == evaluation_row(
        MODEL, "tests", problems[::-1], SAMPLING, VERIFIER, EvaluateConfig(n=4, k=2), "s"
    )
    assert one != evaluation_row(
        MODEL, "tests", problems, SAMPLING, VERIFIER, EvaluateConfig(n=4, k=2), "other"
    )
    assert (one.problems, one.n, one.split) == (3, 4, "dev")


def test_fewer_samples_than_k_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"k is 3, n is 2: pass@k needs at least k samples"):
        EvaluateConfig(n=2, k=3)
