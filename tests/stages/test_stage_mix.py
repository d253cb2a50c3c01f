# SPDX-License-Identifier: Apache-2.0
"""The mix: one decision for each candidate, nothing that may not train, bounds that hold."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage_rows import PROMPT_SET, STEP, a_problem, a_prompt, a_trajectory

from stages import ids
from stages.mix import Candidate, Mix, MixConfig, loss_tokens, mix, rationalized_share
from stages.rationalize import audit, template_marks
from stages.verifiers import exact
from stages.verify import final_verdicts, verify

ALL = MixConfig(dedup="none", seed_rows=99)
TEXTS = ["1+2=12;#12", "1+2 = 12;#12", "1+2=12;#12 ", "other;#12", "#12"]
ORIGINS = {
    "round": ["self"],
    "rationalized": ["rationalized"],
    "earlier": ["self", "rationalized"],
    "seed": ["seed"],
}


def a_candidate(
    text: str = "1+2=12;#12", slot: int = 0, problem: int = 1, source: Any = "round", **changes: Any
) -> Candidate:
    """A right answer; origin and sampled prompt are those of its source."""
    origin = changes.pop("origin", ORIGINS[source][0])
    status = changes.pop("status", "correct")
    plain = a_prompt(a_problem(problem))
    sampled = a_prompt(a_problem(problem), hinted=True) if origin == "rationalized" else plain
    trajectory = a_trajectory(sampled, text, slot, origin=origin, **changes)
    return Candidate(trajectory, source, status, 1.0 if status == "correct" else 0.0, plain)


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    """Candidates of all kinds, some that must never train."""
    found = []
    for slot in range(draw(st.integers(0, 12))):
        source = draw(st.sampled_from(sorted(ORIGINS)))
        candidate = a_candidate(
            draw(st.sampled_from(TEXTS)),
            slot,
            draw(st.integers(1, 3)),
            source,
            origin=draw(st.sampled_from(ORIGINS[source])),
            status=draw(st.sampled_from(["correct", "correct", "correct", "wrong", "unjudged"])),
            finish_reason=draw(st.sampled_from(["stop", "stop", "stop", "length"])),
        )
        if draw(st.sampled_from([False, False, False, True])):
            hinted = a_prompt(a_problem(1), hinted=True)
            candidate = replace(candidate, prompt=hinted)
        found.append(candidate)
    return found


configs = st.builds(
    MixConfig,
    seed_rows=st.integers(0, 3),
    cap_per_problem=st.none() | st.integers(1, 3),
    dedup=st.sampled_from(["none", "exact", "normalised"]),
    max_rationalized_share=st.none() | st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.75, 1.0]),
    max_tokens=st.none() | st.integers(1, 60),
)


def kept_of(found: Sequence[Candidate], mixed: Mix) -> list[Candidate]:
    """The candidates behind the training rows, in training order."""
    known = {c.trajectory.trajectory_id: c for c in found}
    by_row = {link.training_row_id: known[link.trajectory_id] for link in mixed.trajectories}
    return [by_row[row.training_row_id] for row in mixed.rows]


def reasons(found: Sequence[Candidate], config: MixConfig, seed: int = 0) -> list[str]:
    """Why each candidate was kept or left out, in the order given."""
    why = {d.trajectory_id: d.why for d in mix(found, config, seed, STEP).decisions}
    return [why[c.trajectory.trajectory_id] for c in found]


# Properties.


@given(candidates(), configs, st.integers(0, 3))
def test_every_candidate_gets_one_decision_and_what_is_kept_is_a_row(
    found: list[Candidate], config: MixConfig, seed: int
) -> None:
    mixed = mix(found, config, seed, STEP)
    decided = Counter(d.trajectory_id for d in mixed.decisions)
    assert decided == Counter(c.trajectory.trajectory_id for c in found)
    kept = [d.trajectory_id for d in mixed.decisions if d.kept]
    assert Counter(kept) == Counter(link.trajectory_id for link in mixed.trajectories)
    assert all((d.why == "kept") == d.kept and d.step_key == STEP for d in mixed.decisions)
    assert len({row.training_row_id for row in mixed.rows}) == len(mixed.rows) == len(kept)
    assert [row.position for row in mixed.rows] == list(range(len(kept)))
    assert mixed.training_set.rows == len(kept)
    assert mixed.training_set.tokens == sum(row.tokens for row in mixed.rows)


@given(candidates(), configs, st.integers(0, 3), st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_means_nothing(
    found: list[Candidate], config: MixConfig, seed: int, random: Random
) -> None:
    shuffled = random.sample(found, len(found))
    one, other = mix(found, config, seed, STEP), mix(shuffled, config, seed, STEP)
    assert one.rows == other.rows and one.training_set == other.training_set
    assert set(one.decisions) == set(other.decisions)


@given(candidates(), configs)
def test_what_may_not_train_is_never_kept(found: list[Candidate], config: MixConfig) -> None:
    for candidate in kept_of(found, mix(found, config, 0, STEP)):
        assert candidate.status == "correct"
        assert candidate.trajectory.finish_reason == "stop"
        assert not candidate.prompt.hinted


@given(candidates(), configs)
def test_bounds_hold(found: list[Candidate], config: MixConfig) -> None:
    mixed = mix(found, config, 0, STEP)
    kept = kept_of(found, mixed)
    assert sum(c.source == "seed" for c in kept) <= config.seed_rows
    if config.cap_per_problem is not None:
        own = Counter(c.trajectory.problem_id for c in kept if c.source != "seed")
        assert all(count <= config.cap_per_problem for count in own.values())
    if config.max_tokens is not None:
        assert mixed.training_set.tokens <= config.max_tokens
    if config.dedup == "exact":
        texts = [(c.trajectory.problem_id, c.trajectory.token_ids) for c in kept]
        assert len(set(texts)) == len(texts)


@given(candidates(), configs)
def test_rationalized_rows_stay_within_their_share_of_what_the_model_made(
    found: list[Candidate], config: MixConfig
) -> None:
    origins = Counter(c.trajectory.origin for c in kept_of(found, mix(found, config, 0, STEP)))
    made = origins["self"] + origins["rationalized"]
    share = config.max_rationalized_share
    assert share is None or origins["rationalized"] <= share * made + 1e-9


@given(candidates(), st.integers(0, 3))
def test_without_bounds_everything_that_may_train_is_kept(
    found: list[Candidate], seed: int
) -> None:
    never = {"hinted_prompt", "truncated", "wrong", "unjudged"}
    assert set(reasons(found, ALL, seed)) <= never | {"kept"}


ADVERSARIAL = [
    "a:5+7+0=12;#12",
    "1+11=12;#12",
    "as given in the hint;a:5+7+0=12;#12",
    "question 1 (hint 12)=a:5+7+0=12;#12",
    "a:5+7+0=12;)= #12",
    "(HINT 12)= #12",
    "#12",
    "the answer is 12;#12",
    "12. so #12",
    "a:5+7+0=13;#13",
]


@given(
    st.lists(
        st.tuples(st.sampled_from(ADVERSARIAL), st.sampled_from(["stop", "length"])), max_size=8
    ),
    st.booleans(),
    configs,
)
def test_no_hint_is_trained_neither_in_a_prompt_nor_in_a_completion(
    hinted: list[tuple[str, str]], spoilt: bool, config: MixConfig
) -> None:
    problem = a_problem(1, answer="12")
    plain, hint = a_prompt(problem), a_prompt(problem, hinted=True)
    template = PROMPT_SET.hint or ""
    answers = [
        a_trajectory(hint, text, slot, origin="rationalized", finish_reason=finish)
        for slot, (text, finish) in enumerate(hinted)
    ]
    known = {problem.problem_id: problem}
    verdicts, _ = verify(answers, known, exact.Config(type="exact").build())
    final = final_verdicts(verdicts)
    passed = {d.trajectory_id for d in audit(answers, known, final, template, STEP) if d.kept}
    found = [
        # a spoilt store hands over the hinted prompt as the one to train on
        Candidate(a, "rationalized", final[a.trajectory_id].status, 1.0, hint if spoilt else plain)
        for a in answers
        if a.trajectory_id in passed
    ]
    mixed = mix(found, config, 0, STEP)
    prompts = {c.prompt.prompt_id: c.prompt for c in found}
    assert not any(prompts[row.prompt_id].hinted for row in mixed.rows)
    for row, candidate in zip(mixed.rows, kept_of(found, mixed), strict=True):
        trained = prompts[row.prompt_id].text + "\n" + candidate.trajectory.completion
        assert not any(mark in trained for mark in template_marks(template))
        assert "hint" not in trained.lower()


# Cases by hand.


def test_what_may_not_train_says_why() -> None:
    found = [
        a_candidate(),
        a_candidate(slot=1, status="wrong"),
        a_candidate(slot=2, status="unjudged"),
        a_candidate(slot=3, finish_reason="length"),
        replace(a_candidate(slot=4), prompt=a_prompt(a_problem(1), hinted=True)),
    ]
    assert reasons(found, ALL) == ["kept", "wrong", "unjudged", "truncated", "hinted_prompt"]


@pytest.mark.parametrize(
    ("dedup", "kept"),
    [
        # of the same text twice, once with other blanks and case, and once for another problem
        ("none", 4),
        ("exact", 3),
        ("normalised", 2),
    ],
)
def test_dedup(dedup: Any, kept: int) -> None:
    found = [
        a_candidate("So 1 #12"),
        a_candidate("So 1 #12", slot=1),
        a_candidate(" so  1\n#12", slot=2),
        a_candidate("So 1 #12", slot=3, problem=2),
    ]
    why = reasons(found, MixConfig(dedup=dedup))
    assert why.count("kept") == kept and why[3] == "kept"
    assert set(why) <= {"kept", "duplicate"}


def test_of_duplicates_the_one_of_this_round_is_kept() -> None:
    found = [
        a_candidate(slot=1, source="seed"),
        a_candidate(slot=2, source="earlier"),
        a_candidate(slot=3, source="rationalized"),
        a_candidate(slot=4, source="round"),
    ]
    assert reasons(found, MixConfig(seed_rows=1)) == [*["duplicate"] * 3, "kept"]


def test_a_cap_counts_what_the_model_made_and_leaves_seed_rows_alone() -> None:
    found = [a_candidate(f"{n};#12", slot=n) for n in range(3)]
    found.append(a_candidate("worked;#12", slot=9, source="seed"))
    why = reasons(found, MixConfig(cap_per_problem=2, seed_rows=1))
    assert Counter(why[:3]) == {"kept": 2, "over_cap": 1} and why[3] == "kept"


@pytest.mark.parametrize(("wanted", "kept"), [(0, 0), (2, 2), (9, 4)])
def test_as_many_seed_rows_as_asked_for(wanted: int, kept: int) -> None:
    found = [a_candidate(slot=n, problem=n, source="seed") for n in range(4)]
    why = reasons(found, MixConfig(seed_rows=wanted))
    assert Counter(why) == Counter({"kept": kept, "over_seed_rows": 4 - kept})


@pytest.mark.parametrize(
    ("share", "kept"),
    [
        # r of 7 + r rows: 3/10 = 0.3; 1/8 ≤ 0.2 < 2/9; 5/12 ≤ 0.45 < 6/13; all 6 of 13 ≤ 0.5
        (0.3, 3),
        (0.2, 1),
        (0.45, 5),
        (0.5, 6),
        (1.0, 6),
        (None, 6),
    ],
)
def test_as_many_rationalized_rows_as_their_share_allows(share: float | None, kept: int) -> None:
    found = [a_candidate(slot=n, problem=n) for n in range(7)]
    found += [a_candidate(slot=n, problem=n, source="rationalized") for n in range(7, 13)]
    why = reasons(found, MixConfig(max_rationalized_share=share))
    assert why[:7] == ["kept"] * 7
    assert why[7:].count("kept") == kept
    assert set(why[7:]) <= {"kept", "over_rationalized_share"}


def test_rows_that_fall_to_another_rule_give_rationalized_rows_no_room() -> None:
    # four equal answers are one row, so half of the rows is one rationalized row and not four
    found = [a_candidate(slot=n) for n in range(4)]
    found += [a_candidate(slot=n, problem=n, source="rationalized") for n in range(4, 8)]
    mixed = mix(found, MixConfig(max_rationalized_share=0.5), 0, STEP)
    assert Counter(c.trajectory.origin for c in kept_of(found, mixed)) == {
        "self": 1,
        "rationalized": 1,
    }


def test_a_token_budget_is_filled_and_not_passed() -> None:
    # rows of 4, 4 and 4 tokens: two fit into 9
    found = [a_candidate("x#12", slot=n, problem=n) for n in range(3)]
    assert Counter(reasons(found, MixConfig(max_tokens=9))) == {"kept": 2, "over_tokens": 1}


def test_only_tokens_with_loss_are_counted() -> None:
    masked = a_candidate("x#12", loss_mask=(False, True, True, True))
    assert (loss_tokens(masked), loss_tokens(a_candidate("x#12"))) == (3, 4)
    assert mix([masked], ALL, 0, STEP).training_set.tokens == 3


def test_equal_rows_are_told_apart() -> None:
    found = [a_candidate(slot=n) for n in range(3)]
    rows = mix(found, ALL, 0, STEP).rows
    assert len({row.training_row_id for row in rows}) == 3


def test_a_training_set_is_its_contents() -> None:
    one = mix([a_candidate()], ALL, 0, STEP)
    elsewhere = a_candidate(slot=5, engine="other", seed=99, source="earlier")
    other = mix([elsewhere], MixConfig(), 3, ids.step_key("mix", 2, [], ""))
    assert one.training_set == other.training_set
    assert mix([a_candidate("2+1=12;#12")], ALL, 0, STEP).training_set != one.training_set
    assert mix([a_candidate(problem=2)], ALL, 0, STEP).training_set != one.training_set


def test_a_rationalized_row_is_the_content_it_has_under_the_plain_prompt() -> None:
    candidate = a_candidate(source="rationalized")
    (row,) = mix([candidate], ALL, 0, STEP).rows
    plain = ids.content_id(candidate.prompt.token_ids, candidate.trajectory.token_ids)
    prompt_id = candidate.prompt.prompt_id
    assert row.training_row_id == ids.training_row_id("sft", prompt_id, [plain], 1.0, 0)
    assert (row.prompt_id, row.source, row.tokens) == (prompt_id, "rationalized", 10)


def test_another_seed_trains_the_same_rows_in_another_order() -> None:
    found = [a_candidate(slot=n, problem=n) for n in range(9)]
    one, other = mix(found, ALL, 0, STEP), mix(found, ALL, 1, STEP)
    one_ids, other_ids = ([row.training_row_id for row in m.rows] for m in (one, other))
    assert one_ids != other_ids and sorted(one_ids) == sorted(other_ids)
    assert one.training_set.training_set_id != other.training_set.training_set_id


def test_the_share_of_rationalized_rows_counts_every_row() -> None:
    found = [
        a_candidate(),
        a_candidate(slot=1, problem=2, source="rationalized"),
        a_candidate(slot=2, problem=3, source="seed"),
        a_candidate(slot=3, problem=4, source="earlier", origin="rationalized"),
    ]
    # 2 of 4: the one of an earlier round counts too
    assert rationalized_share(found, mix(found, ALL, 0, STEP)) == 0.5


def test_no_candidates_make_an_empty_set() -> None:
    mixed = mix([], ALL, 0, STEP)
    assert (mixed.rows, mixed.decisions, mixed.training_set.tokens) == ([], [], 0)
