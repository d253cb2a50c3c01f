# SPDX-License-Identifier: Apache-2.0
"""Pairs: the guard holds for whatever the answers are, and each rule by hand."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from stage_candidates import a_candidate
from stage_rows import STEP

from stages import ids
from stages.candidates import Candidate, History, Mix
from stages.ids import Id
from stages.pairs import PairsConfig, normalised, pair_up

POLICIES = [ids.mint("m", "one"), ids.mint("m", "two")]
ANSWERS = ["12", "13", "012"]
TEXTS = ["1+2=12;#12", "1+2=12; #12", "1+2=13;#13", "#13", "#12", "so 1+2 is, let us see, 13 #13"]


def same(one: str, other: str) -> bool:
    return int(one) == int(other)


def pairs_of(
    found: list[Candidate],
    config: PairsConfig | None = None,
    seed: int = 0,
    history: str = "accumulate",
    answers: dict[Id, str] | None = None,
) -> Mix:
    settings = config or PairsConfig()
    return pair_up(found, settings, History.parse(history), seed, STEP, answers or {}, same)


def by_role(found: list[Candidate], mixed: Mix) -> list[tuple[Candidate, Candidate]]:
    """Chosen and rejected of each row, in training order."""
    known = {c.trajectory.trajectory_id: c for c in found}
    roles = {(x.training_row_id, x.role): known[x.trajectory_id] for x in mixed.trajectories}
    rows = [row.training_row_id for row in mixed.rows]
    return [(roles[row, "chosen"], roles[row, "rejected"]) for row in rows]


def whys(mixed: Mix) -> Counter[str]:
    return Counter(decision.why for decision in mixed.decisions)


def answer(text: str, slot: int, right: bool, problem: int = 1, **changes: object) -> Candidate:
    return a_candidate(text, slot, problem, status="correct" if right else "wrong", **changes)


@st.composite
def judged(draw: st.DrawFn) -> tuple[list[Candidate], dict[Id, str]]:
    found, answers = [], {}
    for slot in range(draw(st.integers(0, 14))):
        candidate = a_candidate(
            draw(st.sampled_from(TEXTS)),
            slot,
            draw(st.integers(1, 2)),
            draw(st.sampled_from(["round", "round", "earlier"])),
            origin="self",
            status=draw(st.sampled_from(["correct", "correct", "wrong", "wrong", "unjudged"])),
            finish_reason=draw(st.sampled_from(["stop", "stop", "stop", "length"])),
            model_id=draw(st.sampled_from(POLICIES)),
        )
        score = draw(st.sampled_from([0.0, 0.5, 1.0]))
        found.append(replace(candidate, score=score, too_old=draw(st.integers(0, 9)) == 0))
        said = draw(st.none() | st.sampled_from(ANSWERS))
        if said is not None:
            answers[candidate.trajectory.trajectory_id] = said
    return found, answers


configs = st.builds(
    PairsConfig,
    rule=st.sampled_from(["random", "best_worst", "all_capped(3)", "all_capped(50)"]),
    max_length_gap=st.none() | st.integers(0, 8),
    margin=st.sampled_from([0.0, 0.5, 1.0]),
    min_edits=st.none() | st.integers(1, 4),
    across_policies=st.booleans(),
)


@given(judged(), configs, st.integers(0, 3))
def test_the_guard_holds(
    given_: tuple[list[Candidate], dict[Id, str]], config: PairsConfig, seed: int
) -> None:
    found, answers = given_
    for chosen, rejected in by_role(found, pairs_of(found, config, seed, answers=answers)):
        one, other = chosen.trajectory, rejected.trajectory
        assert (chosen.status, rejected.status) == ("correct", "wrong")
        assert one.problem_id == other.problem_id and chosen.prompt == rejected.prompt
        assert {one.finish_reason, other.finish_reason} == {"stop"}
        assert config.across_policies or one.model_id == other.model_id
        assert normalised(one.completion) != normalised(other.completion)
        said = [answers.get(each.trajectory_id) for each in (one, other)]
        assert None in said or not same(*said)  # type: ignore[arg-type]
        assert (chosen.score or 0) - (rejected.score or 0) >= config.margin
        gap = abs(len(one.token_ids) - len(other.token_ids))
        assert config.max_length_gap is None or gap <= config.max_length_gap
        assert not chosen.too_old and not rejected.too_old


@given(judged(), configs, st.integers(0, 3), st.randoms(use_true_random=False))
def test_the_order_of_the_answers_means_nothing(
    given_: tuple[list[Candidate], dict[Id, str]], config: PairsConfig, seed: int, random: Random
) -> None:
    found, answers = given_
    shuffled = random.sample(found, len(found))
    one, other = (pairs_of(each, config, seed, answers=answers) for each in (found, shuffled))
    assert one.rows == other.rows and one.training_set == other.training_set
    assert set(one.trajectories) == set(other.trajectories)
    assert set(one.decisions) == set(other.decisions)


@given(judged(), configs)
def test_every_answer_is_decided_once_and_kept_where_it_is_in_a_row(
    given_: tuple[list[Candidate], dict[Id, str]], config: PairsConfig
) -> None:
    found, answers = given_
    mixed = pairs_of(found, config, answers=answers)
    assert Counter(d.trajectory_id for d in mixed.decisions) == Counter(
        c.trajectory.trajectory_id for c in found
    )
    kept = {d.trajectory_id for d in mixed.decisions if d.kept}
    assert kept == {link.trajectory_id for link in mixed.trajectories}
    assert len({row.training_row_id for row in mixed.rows}) == len(mixed.rows)
    assert mixed.training_set.tokens == sum(row.tokens for row in mixed.rows)
    assert all(row.kind == "pair" for row in mixed.rows)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 40))
def test_all_capped_uses_every_pair_once_and_each_answer_evenly(
    right: int, wrong: int, most: int
) -> None:
    found = [answer(f"{n}+;#12", n, True) for n in range(right)]
    found += [answer(f"{n}+;#13", 50 + n, False) for n in range(wrong)]
    mixed = pairs_of(found, PairsConfig(rule=f"all_capped({most})"))
    pairs = by_role(found, mixed)
    assert len(pairs) == min(most, right * wrong)
    used = Counter(chosen.trajectory.trajectory_id for chosen, _ in pairs)
    assert max(used.values()) - min([*used.values()] if len(used) == right else [0]) <= 1


def test_a_problem_that_is_all_right_or_all_wrong_gives_no_pair() -> None:
    found = [
        *(answer(f"a{n}#12", n, True) for n in range(3)),
        *(answer(f"b{n}#13", n, False, problem=2) for n in range(2)),
        *(answer(f"c{n}#1{2 + n}", n, n == 0, problem=3) for n in range(2)),
    ]
    mixed = pairs_of(found)
    assert len(mixed.rows) == 1
    assert whys(mixed) == {"one_sided": 5, "kept": 2}


def test_best_worst_takes_the_highest_right_and_the_lowest_wrong_reward() -> None:
    scores = [(True, 0.6), (True, 0.9), (False, 0.4), (False, 0.1)]
    found = [
        replace(answer(f"{n};#1{n}", n, right), score=score)
        for n, (right, score) in enumerate(scores)
    ]
    ((chosen, rejected),) = by_role(found, pairs_of(found, PairsConfig(rule="best_worst")))
    assert (chosen.score, rejected.score) == (0.9, 0.1)


def test_the_shortest_right_answer_stands_against_a_long_right_one() -> None:
    config = PairsConfig(rule="shortest_correct_vs_longest_correct")
    texts = ["1+2;#12", "1+2;;;;#12", "1+2;;;;;;;;;;;#12", "1+2;;;;;;;;;;;;;;;;;;;#13"]
    found = [answer(text, n, n < 3) for n, text in enumerate(texts)]
    ((chosen, rejected),) = by_role(found, pairs_of(found, config))
    assert [chosen.trajectory.completion, rejected.trajectory.completion] == [texts[0], texts[2]]
    assert not pairs_of(found[:2], config).rows  # 10 tokens are less than 1.5 × 8


@pytest.mark.parametrize(
    ("config", "texts", "why"),
    [
        (PairsConfig(), ["a #12", "A  #12"], "equal_text"),
        (PairsConfig(max_length_gap=3), ["#12", "1+2=13;#13"], "length_gap"),
        (PairsConfig(min_edits=2), ["#12", "#13"], "too_few_edits"),
        (PairsConfig(margin=2.0), ["#12", "1+2=13;#13"], "margin"),
    ],
)
def test_what_the_guard_refuses_has_its_reason(
    config: PairsConfig, texts: list[str], why: str
) -> None:
    found = [answer(text, n, n == 0) for n, text in enumerate(texts)]
    mixed = pairs_of(found, config)
    assert not mixed.rows and whys(mixed) == {why: 2}


def test_equivalent_answers_are_no_pair() -> None:
    found = [answer("#12", 0, True), answer("so #012", 1, False)]
    answers = {
        c.trajectory.trajectory_id: text for c, text in zip(found, ["12", "012"], strict=True)
    }
    assert whys(pairs_of(found, answers=answers)) == {"equivalent_answers": 2}


def test_answers_of_two_policies_are_a_pair_only_where_asked() -> None:
    found = [answer(f"#1{2 + n}", n, n == 0, model_id=policy) for n, policy in enumerate(POLICIES)]
    assert whys(pairs_of(found)) == {"one_sided": 2}
    assert len(pairs_of(found, PairsConfig(across_policies=True)).rows) == 1


def test_old_pairs_take_no_more_than_their_share() -> None:
    found = [
        answer(f"{n % 2}+{source};#1{2 + n}", n, not n % 2, problem, source=source)
        for problem in range(1, 9)
        for n in range(2)
        for source in (["round"] if problem <= 3 else ["earlier"])
    ]
    mixed = pairs_of(found, history="ratio(0.25)")
    assert Counter(row.source for row in mixed.rows) == {"round": 3, "earlier": 1}
    assert whys(mixed) == {"kept": 8, "over_old_share": 8}


def test_a_row_is_as_old_as_its_older_answer() -> None:
    found = [
        replace(answer(f"#1{2 + n}", n, n == 0), age=age, source="earlier" if age else "round")
        for n, age in enumerate([3, 0])
    ]
    (row,) = pairs_of(found).rows
    assert (row.policy_age, row.source) == (3, "earlier")


@pytest.mark.parametrize("rule", ["worst", "all_capped", "all_capped(0)", "all_capped(x)", ""])
def test_an_unknown_rule_is_refused_with_those_that_are_known(rule: str) -> None:
    with pytest.raises(ValidationError, match=r"all_capped\(10\)"):
        PairsConfig(rule=rule)


@pytest.mark.parametrize(
    ("text", "since", "room"),
    [("window(1)", 5, None), ("window(3)", 3, None),
     ("window(9)", 0, None), ("accumulate", 0, None), ("ratio(0.25)", 0, 2)],
)  # fmt: skip
def test_history_reaches_as_far_as_it_says(text: str, since: int, room: int | None) -> None:
    history = History.parse(text)
    assert (history.since(5), history.room(6)) == (since, room)


def test_new_only_takes_nothing_of_earlier_refreshes() -> None:
    assert [History.parse(text).earlier for text in ("new_only", "window(1)")] == [False, True]


@pytest.mark.parametrize("text", ["window(0)", "window", "ratio(1)", "ratio(0)", "ratio(2)", "all"])
def test_an_unknown_history_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"window\(w\)"):
        History.parse(text)
