# SPDX-License-Identifier: Apache-2.0
"""Ids name content: equal inputs give equal ids, and what differs, differs."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages import ids

KIND = st.sampled_from(sorted(ids.KINDS))
# Free text goes through hash_text first, so a part never holds the separator.
PARTS = st.lists(
    st.uuids() | st.integers() | st.none() | st.text("abc-0123 ", min_size=2), max_size=4
)
UUIDS = st.lists(st.uuids(), min_size=2, max_size=6, unique=True)
PURPOSES = ("train", "rationalize", "eval", "seed")


@given(KIND, PARTS)
def test_equal_parts_give_equal_ids(kind: str, parts: list[ids.Part]) -> None:
    assert ids.mint(kind, *parts) == ids.mint(kind, *list(parts))


@given(PARTS)
def test_kinds_never_share_an_id(parts: list[ids.Part]) -> None:
    assert len({ids.mint(kind, *parts) for kind in ids.KINDS}) == len(ids.KINDS)


@given(KIND, PARTS, PARTS)
def test_other_parts_give_another_id(kind: str, one: list[ids.Part], other: list[ids.Part]) -> None:
    written = [["-" if part is None else str(part) for part in parts] for parts in (one, other)]
    assert (ids.mint(kind, *one) == ids.mint(kind, *other)) == (written[0] == written[1])


@given(KIND, st.text(), st.text())
def test_a_part_with_the_separator_is_refused(kind: str, before: str, after: str) -> None:
    with pytest.raises(ValueError, match=r"holds '\|': hash free text first"):
        ids.mint(kind, f"{before}|{after}")


def test_an_unknown_kind_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match="unknown id kind 'z'; allowed: c, e, g, i, j"):
        ids.mint("z", 1)


def test_known_ids_stay_what_they_are() -> None:
    # printf 'c|1|-' | sha256sum | cut -c1-32
    assert ids.mint("c", 1, None).hex == "f32b01a324b66ce5b186ce7a2dab9acd"
    assert ids.hash_tokens([]) == ids.hash_text("")
    assert ids.hash_tokens([1, 23]) == ids.hash_text("1,23")


@given(st.text(), st.text(), st.text())
def test_text_with_separators_moves_no_border(one: str, two: str, three: str) -> None:
    assert ids.problem_id(one, f"{two}|{three}", "a") != ids.problem_id(f"{one}|{two}", three, "a")


@given(st.lists(st.integers(0, 99), min_size=1), st.lists(st.integers(0, 99), min_size=1))
def test_content_tells_prompt_from_completion(prompt: list[int], completion: list[int]) -> None:
    content = ids.content_id(prompt, completion)
    assert content != ids.content_id(prompt + completion[:1], completion[1:])
    assert content == ids.content_id(tuple(prompt), tuple(completion))


def test_token_ids_are_not_run_together() -> None:
    assert ids.hash_tokens([1, 23]) != ids.hash_tokens([12, 3]) != ids.hash_tokens([123])


@given(UUIDS, st.randoms(use_true_random=False))
def test_the_order_of_problems_means_nothing_to_an_evaluation(
    problems: list[ids.Id], random: Random
) -> None:
    shuffled = random.sample(problems, len(problems))
    model, sampling, verifier = problems[0], problems[0], problems[1]
    assert ids.evaluation_id(model, problems, sampling, verifier, 4, 2, "s") == ids.evaluation_id(
        model, shuffled, sampling, verifier, 4, 2, "s"
    )


def test_an_evaluation_is_named_by_samples_k_and_seeds() -> None:
    part = ids.mint("m", 1)
    changes = [(4, 2, "s"), (8, 2, "s"), (4, 1, "s"), (4, 2, "t")]
    found = {ids.evaluation_id(part, [part], part, part, *change) for change in changes}
    assert len(found) == len(changes)


@given(UUIDS)
def test_the_order_of_rows_means_something_to_a_training_set(rows: list[ids.Id]) -> None:
    assert ids.training_set_id(rows) != ids.training_set_id(rows[::-1])


@given(UUIDS)
def test_the_roles_of_a_training_row_are_in_order(contents: list[ids.Id]) -> None:
    prompt = contents[0]
    one = ids.training_row_id("pair", prompt, contents, 1.0, 0)
    assert one != ids.training_row_id("pair", prompt, contents[::-1], 1.0, 0)
    assert one != ids.training_row_id("pair", prompt, contents, 0.5, 0)
    assert one != ids.training_row_id("pair", prompt, contents, 1.0, 1)
    assert one == ids.training_row_id("pair", prompt, contents, 1, 0)


@given(UUIDS)
def test_a_step_key_has_its_inputs_in_order(inputs: list[ids.Id]) -> None:
    key = ids.step_key("mix", 1, inputs, "{}")
    assert key != ids.step_key("mix", 1, inputs[::-1], "{}")
    assert key != ids.step_key("mix", 2, inputs, "{}")
    assert key != ids.step_key("verify", 1, inputs, "{}")
    assert key != ids.step_key("mix", 1, inputs, '{"seed_rows":1}')


def test_a_step_input_with_the_separator_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\|"):
        ids.step_key("mix", 1, ["a|b"], "{}")


def test_an_update_is_named_by_everything_it_had_and_what_it_gave() -> None:
    a, b = ids.mint("m", 1), ids.mint("m", 2)
    changes: list[tuple[Any, ...]] = [
        (a, None, a, "{}", 0, 10, a),
        (b, None, a, "{}", 0, 10, a),
        (a, b, a, "{}", 0, 10, a),
        (a, None, b, "{}", 0, 10, a),
        (a, None, a, '{"x":1}', 0, 10, a),
        (a, None, a, "{}", 1, 10, a),
        (a, None, a, "{}", 0, 12, a),
        (a, None, a, "{}", 0, 10, b),
    ]
    assert len({ids.update_id(*change) for change in changes}) == len(changes)


def test_a_slot_is_named_by_everything_that_fills_it() -> None:
    problem, prompt, model, sampling = (ids.mint("p", n) for n in range(4))
    one = ids.trajectory_id(problem, prompt, model, sampling, "train", 3, 0)
    others = [
        ids.trajectory_id(prompt, prompt, model, sampling, "train", 3, 0),
        ids.trajectory_id(problem, problem, model, sampling, "train", 3, 0),
        ids.trajectory_id(problem, prompt, prompt, sampling, "train", 3, 0),
        ids.trajectory_id(problem, prompt, model, model, "train", 3, 0),
        ids.trajectory_id(problem, prompt, model, sampling, "eval", 3, 0),
        ids.trajectory_id(problem, prompt, model, sampling, "train", 4, 0),
        ids.trajectory_id(problem, prompt, model, sampling, "train", 3, 1),
        ids.outside_trajectory_id("train", 0),
    ]
    assert len({one, *others}) == 9


def test_no_two_slots_of_a_seed_share_a_seed() -> None:
    problems = [ids.problem_id("tests", str(n), "") for n in range(5)]
    seeds = [
        ids.slot_seed(0, round_, refresh, purpose, problem, slot)
        for round_ in range(6)
        for refresh in range(3)
        for purpose in PURPOSES
        for problem in problems
        for slot in range(4)
    ]
    assert len(set(seeds)) == len(seeds) == 6 * 3 * 4 * 5 * 4


@given(
    st.integers(0, 2**31), st.integers(0, 10**6), st.integers(0, 10**6),
    st.sampled_from(PURPOSES), st.uuids(), st.integers(0, 10**6),
)  # fmt: skip
def test_a_slot_seed_fits_a_signed_64_bit_integer(
    seed: int, round_: int, refresh: int, purpose: str, problem: ids.Id, slot: int
) -> None:
    found = ids.slot_seed(seed, round_, refresh, purpose, problem, slot)
    assert 0 <= found <= 2**63 - 1
    assert found != ids.slot_seed(seed + 1, round_, refresh, purpose, problem, slot)
