# SPDX-License-Identifier: Apache-2.0
"""The mix by hand: who is kept, who is left out and why, and what a training set is."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from stage_candidates import ALL, a_candidate, kept_of, reasons
from stage_rows import STEP, a_problem, a_prompt

from stages import ids
from stages.mix import MixConfig, loss_tokens, mix, rationalized_share
from stages.settings import identity_json


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


def test_one_answer_is_kept_for_each_list_of_equations_of_a_problem() -> None:
    found = [
        a_candidate("She has 1 + 11 = 12. #12"),
        a_candidate("so 1+11=12 #12", slot=1),
        a_candidate("11+1=12 #12", slot=2),
        a_candidate("1+10=11\n11+1=12 #12", slot=3),
        a_candidate("<<1+11=12>> #12", slot=4),
        a_candidate("1+11=12 #12", slot=5, problem=2),
        a_candidate("no work #12", slot=6),
        a_candidate("none either #12", slot=7),
    ]
    why = reasons(found, MixConfig(dedup="equations"))
    assert Counter(why[n] for n in (0, 1, 4)) == {"kept": 1, "duplicate": 2}
    assert [why[n] for n in (2, 3, 5)] == ["kept"] * 3
    assert Counter(why[6:]) == {"kept": 1, "duplicate": 1}


@pytest.mark.parametrize("seed", range(8))
def test_of_equal_equations_the_answer_farthest_from_those_kept_stays(seed: int) -> None:
    # a worked example is tried last: of two like it the kept answer of this round decides
    found = [
        a_candidate("1+11=12 #12"),
        a_candidate("1 + 11 = 12 #12 ", slot=1, source="earlier", problem=2),
        a_candidate("6+6=12 #12", slot=2, source="earlier"),
        a_candidate("Twice six: 6+6=12 #12", slot=3, source="earlier"),
        a_candidate("6 + 6=12 #12", slot=4, source="earlier"),
    ]
    why = reasons(found, MixConfig(dedup="equations"), seed)
    assert why == ["kept", "kept", "duplicate", "kept", "duplicate"]


def test_of_equal_equations_the_source_that_comes_first_is_kept() -> None:
    found = [
        a_candidate("2+10=12 #12", slot=0),
        a_candidate("a long and other way: 1+11=12 #12", slot=1, source="earlier"),
        a_candidate("1+11=12 #12", slot=2),
    ]
    assert reasons(found, MixConfig(dedup="equations")) == ["kept", "duplicate", "kept"]


def test_answers_that_may_not_train_take_no_place_of_their_equations() -> None:
    found = [
        a_candidate("1+11=12 #12"),
        a_candidate("5+7=12 #12", slot=2, status="wrong"),
        a_candidate("the long way: 5+7=12 #12", slot=3, finish_reason="length"),
        a_candidate("5+7=12#12", slot=4),
    ]
    why = reasons(found, MixConfig(dedup="equations"))
    assert why == ["kept", "wrong", "truncated", "kept"]


def test_false_equations_are_left_out_where_asked() -> None:
    found = [
        a_candidate("1+11=12 #12"),
        a_candidate("1+10=12 #12", slot=1),
        a_candidate("1+10=12 #13", slot=2, status="wrong"),
        a_candidate("worked: <<1+1=3>> #12", slot=3, source="seed"),
        a_candidate("no work #12", slot=4),
    ]
    asked = MixConfig(dedup="none", seed_rows=9, check_equations=True)
    assert reasons(found, asked) == ["kept", "false_equation", "wrong", "false_equation", "kept"]
    assert reasons(found, ALL) == ["kept", "kept", "wrong", "kept", "kept"]


def test_a_mix_that_checks_no_equations_is_the_mix_it_was() -> None:
    plain = identity_json(MixConfig())
    assert "check_equations" not in plain
    assert identity_json(MixConfig(check_equations=False)) == plain
    assert '"check_equations":true' in identity_json(MixConfig(check_equations=True))


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


def test_rollouts_are_weighed_by_their_reward_and_other_rewards_are_other_rows() -> None:
    found = [a_candidate(), a_candidate("so #13", slot=1, status="wrong")]
    arm = [replace(one, score=score) for one, score in zip(found, (0.25, 1.0), strict=True)]
    plain, other = (mix(some, ALL, 0, STEP, "rollout") for some in (found, arm))
    for made, scores in ((plain, (1.0, 0.0)), (other, (0.25, 1.0))):
        expected = {c.trajectory.trajectory_id: s for c, s in zip(found, scores, strict=True)}
        weights = {row.training_row_id: row.weight for row in made.rows}
        assert {link.trajectory_id: link.reward for link in made.trajectories} == expected
        assert all(weights[link.training_row_id] == link.reward for link in made.trajectories)
    assert plain.training_set.training_set_id != other.training_set.training_set_id
    assert {row.weight for row in mix(found[:1], ALL, 0, STEP).rows} == {1.0}
    assert mix(arm[:1], ALL, 0, STEP).training_set == mix(found[:1], ALL, 0, STEP).training_set
