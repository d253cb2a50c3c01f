# SPDX-License-Identifier: Apache-2.0
"""Which problems a round takes, the slots it plans, and filling them without a remainder."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage_rows import MODEL, PROMPT_SET, a_problem, a_prompt, tokens

from stages import ids
from stages.chat import Messages
from stages.errors import ConfigError, SamplerError
from stages.generate import (
    Draw,
    choose_problems,
    generate,
    plan_slots,
    sampling_row,
)
from stages.policies.checkpoint import load_tokenizer
from stages.prompts import write_prompts
from stages.rows import Problem, Prompt
from stages.samplers import Completion, Request, SamplingConfig

PROBLEMS = [a_problem(number) for number in range(10)]
IDS = [problem.problem_id for problem in PROBLEMS]
DRAW = Draw(MODEL, SamplingConfig(max_tokens=5), "train", n=2, seed=3, round=1)


class Echo:
    """Answers every request with its own seed, in an order of its own."""

    name, version, dtype, weight_version, deterministic = "echo", "9", "none", "w", True

    def __init__(self) -> None:
        self.batches: list[list[ids.Id]] = []

    def sample(self, requests: Sequence[Request], sampling: SamplingConfig) -> Iterator[Completion]:
        self.batches.append([request.trajectory_id for request in requests])
        replies = [self.reply(request) for request in requests]
        Random(0).shuffle(replies)
        yield from replies

    def render(self, messages: Messages) -> tuple[int, ...] | None:
        return None

    def close(self) -> None:
        """Nothing is held."""

    def reply(self, request: Request) -> Completion:
        text = str(request.seed)
        logprobs = (-0.25,) * len(text)
        return Completion(request.trajectory_id, tokens(text), text, logprobs, "stop")


class Forgetful(Echo):
    """Leaves the last request without an answer."""

    def sample(self, requests: Sequence[Request], sampling: SamplingConfig) -> Iterator[Completion]:
        return super().sample(requests[:-1], sampling)


class Miscounting(Echo):
    """Gives a log-probability too few."""

    def reply(self, request: Request) -> Completion:
        whole = super().reply(request)
        return replace(whole, logprobs=whole.logprobs[1:])


def prompts_of(problems: Sequence[Problem]) -> list[Prompt]:
    return [a_prompt(problem) for problem in problems]


# Which problems.


def test_all_takes_every_problem_once() -> None:
    for order in ("seeded", "split", "unsolved_first"):
        chosen = choose_problems(PROBLEMS, "all", order, 0, 3)
        assert sorted(p.problem_id for p in chosen) == sorted(IDS)


def test_more_than_there_are_is_all_of_them() -> None:
    assert len(choose_problems(PROBLEMS, 99, "seeded", 0, 1)) == 10


def test_split_order_walks_through_the_split_and_begins_again() -> None:
    # 10 problems, 4 a round: 0-3, 4-7, 8 9 0 1
    rounds = [choose_problems(PROBLEMS, 4, "split", 0, round_) for round_ in (1, 2, 3)]
    assert rounds == [PROBLEMS[:4], PROBLEMS[4:8], PROBLEMS[8:] + PROBLEMS[:2]]


@given(st.integers(1, 20), st.integers(1, 25), st.integers(1, 12), st.integers(0, 3))
def test_a_seeded_walk_covers_everything_before_it_repeats(
    count: int, per_round: int, rounds: int, seed: int
) -> None:
    problems = [a_problem(number) for number in range(count)]
    visits = Counter(dict.fromkeys((p.problem_id for p in problems), 0))
    for round_ in range(1, rounds + 1):
        chosen = choose_problems(problems, per_round, "seeded", seed, round_)
        assert len({p.problem_id for p in chosen}) == len(chosen) == min(per_round, count)
        visits.update(p.problem_id for p in chosen)
    assert max(visits.values()) - min(visits.values()) <= 1


def test_another_seed_walks_another_way() -> None:
    one, other = (choose_problems(PROBLEMS, "all", "seeded", seed, 1) for seed in (0, 1))
    assert one != other
    assert one == choose_problems(PROBLEMS, "all", "seeded", 0, 1)


@pytest.mark.parametrize("order", ["seeded", "split", "unsolved_first"])
def test_later_turns_take_the_problems_that_come_after_until_there_are_none(order: str) -> None:
    turns = [choose_problems(PROBLEMS, 4, order, 1, 2, turn=turn) for turn in range(4)]  # type: ignore[arg-type]
    assert [len(chosen) for chosen in turns] == [4, 4, 2, 0]
    assert {p.problem_id for chosen in turns for p in chosen} == set(IDS)
    assert turns[0] == choose_problems(PROBLEMS, 4, order, 1, 2)  # type: ignore[arg-type]


def test_the_answers_to_a_prompt_share_a_group_of_their_refresh() -> None:
    prompts = [a_prompt(problem) for problem in PROBLEMS[:3]]
    slots = plan_slots(prompts, DRAW)
    groups = {(slot.prompt.prompt_id, slot.group) for slot in slots}
    assert len(groups) == 3 and all(group for _, group in groups)
    later = plan_slots(prompts, replace(DRAW, refresh=1))
    assert not {slot.group for slot in slots} & {slot.group for slot in later}
    assert {slot.group for slot in plan_slots(prompts, replace(DRAW, purpose="eval"))} == {None}
    assert {slot.group for slot in plan_slots(prompts, replace(DRAW, n=1))} == {None}


def test_unsolved_first_takes_the_lowest_rates_and_what_was_never_tried() -> None:
    rates = dict(zip(IDS, (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1), strict=False))
    chosen = choose_problems(PROBLEMS, 3, "unsolved_first", 0, 2, rates)
    # the tenth has no rate, then 0.1 and 0.2
    assert chosen == [PROBLEMS[9], PROBLEMS[8], PROBLEMS[7]]


def test_a_band_takes_the_rates_within_it_and_what_was_never_tried() -> None:
    rates = dict(zip(IDS, (0.0, 0.2, 0.5, 0.8, 1.0), strict=False))
    chosen = choose_problems(PROBLEMS, "all", "split", 0, 1, rates, (0.2, 0.8))
    assert chosen == PROBLEMS[1:4] + PROBLEMS[5:]


def test_a_band_that_leaves_nothing_is_refused() -> None:
    rates = dict.fromkeys(IDS, 1.0)
    with pytest.raises(ConfigError, match=r"generate\.problems\.band: \(0\.1, 0\.9\) leaves no"):
        choose_problems(PROBLEMS, "all", "split", 0, 1, rates, (0.1, 0.9))


# Prompts.


def test_hinted_and_plain_prompts_differ_and_one_is_hinted(tiny_folder: Path) -> None:
    tokenizer = load_tokenizer(tiny_folder)
    problem = replace(PROBLEMS[0], question="a1+a2", answer="3")
    (plain,) = write_prompts([problem], PROMPT_SET, tokenizer, hinted=False)
    (hinted,) = write_prompts([problem], PROMPT_SET, tokenizer, hinted=True)
    assert (plain.text, plain.hinted) == ("<bos>a1+a2=\n", False)
    assert (hinted.text, hinted.hinted) == ("<bos>a1+a2 (hint 3)=\n", True)
    assert plain.prompt_id != hinted.prompt_id
    assert plain.problem_id == hinted.problem_id == problem.problem_id


def test_a_prompt_begins_with_one_start_token_and_says_what_its_text_says(
    tiny_folder: Path,
) -> None:
    tokenizer = load_tokenizer(tiny_folder)
    problem = replace(PROBLEMS[0], question="a1+a2")
    (prompt,) = write_prompts([problem], PROMPT_SET, tokenizer, hinted=False)
    assert prompt.token_ids.count(tokenizer.bos_token_id) == 1
    assert tokenizer.decode(prompt.token_ids) == prompt.text


def test_a_question_that_holds_a_placeholder_does_not_show_the_answer(tiny_folder: Path) -> None:
    problem = replace(PROBLEMS[0], question="what is {answer}", answer="42")
    (prompt,) = write_prompts([problem], PROMPT_SET, load_tokenizer(tiny_folder), hinted=False)
    assert "42" not in prompt.text


def test_a_prompt_set_without_a_hint_cannot_hint(tiny_folder: Path) -> None:
    plain_only = replace(PROMPT_SET, hint=None)
    with pytest.raises(ConfigError, match="'tests' has no hint: switch rationalize off"):
        write_prompts(PROBLEMS, plain_only, load_tokenizer(tiny_folder), hinted=True)


# Slots.


@given(st.integers(0, 8), st.integers(1, 4), st.randoms(use_true_random=False))
def test_slots_do_not_depend_on_the_order_of_the_prompts(
    count: int, n: int, random: Random
) -> None:
    prompts = prompts_of(PROBLEMS[:count])
    shuffled = random.sample(prompts, count)
    draw = replace(DRAW, n=n)
    slots = plan_slots(prompts, draw)
    assert slots == plan_slots(shuffled, draw)
    assert len({slot.trajectory_id for slot in slots}) == len(slots) == count * n
    assert len({slot.seed for slot in slots}) == len(slots)


def test_every_prompt_gets_the_slots_from_zero() -> None:
    slots = plan_slots(prompts_of(PROBLEMS), replace(DRAW, n=3))
    numbers = Counter((slot.prompt.problem_id, slot.slot) for slot in slots)
    assert numbers == Counter((problem, number) for problem in IDS for number in range(3))


def test_long_prompts_come_last() -> None:
    problems = [replace(a_problem(n), question="q" * (9 - n)) for n in range(9)]
    lengths = [len(slot.prompt.token_ids) for slot in plan_slots(prompts_of(problems), DRAW)]
    assert lengths == sorted(lengths) and lengths[0] < lengths[-1]


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 4},
        {"round": 2},
        {"refresh": 1},
        {"purpose": "eval"},
    ],
)
def test_another_draw_has_other_slots_and_other_seeds(change: dict[str, object]) -> None:
    prompts = prompts_of(PROBLEMS)
    one = plan_slots(prompts, DRAW)
    other = plan_slots(prompts, replace(DRAW, **change))  # type: ignore[arg-type]
    assert not {s.trajectory_id for s in one} & {s.trajectory_id for s in other}
    assert not {s.seed for s in one} & {s.seed for s in other}


def test_another_policy_or_other_sampling_has_other_slots_on_the_same_seeds() -> None:
    prompts = prompts_of(PROBLEMS)
    one = plan_slots(prompts, DRAW)
    for draw in (
        replace(DRAW, model_id=ids.mint("m", 2)),
        replace(DRAW, sampling=SamplingConfig(max_tokens=6)),
    ):
        other = plan_slots(prompts, draw)
        assert not {s.trajectory_id for s in one} & {s.trajectory_id for s in other}
        assert [s.seed for s in one] == [s.seed for s in other]


def test_more_slots_keep_the_first_ones() -> None:
    prompts = prompts_of(PROBLEMS)
    few = {slot.trajectory_id for slot in plan_slots(prompts, replace(DRAW, n=1))}
    assert few < {slot.trajectory_id for slot in plan_slots(prompts, replace(DRAW, n=2))}


# Filling.


@given(st.integers(0, 10), st.integers(1, 3), st.integers(1, 9), st.data())
def test_every_slot_is_accounted_for_whatever_the_shard_size(
    count: int, n: int, shard_size: int, data: st.DataObject
) -> None:
    draw = replace(DRAW, n=n)
    slots = plan_slots(prompts_of(PROBLEMS[:count]), draw)
    filled = {s.trajectory_id for s in slots if data.draw(st.booleans(), label="filled")}
    shards = list(generate(slots, Echo(), draw, filled, shard_size))
    made = [trajectory.trajectory_id for shard in shards for trajectory in shard]
    left = [s.trajectory_id for s in slots if s.trajectory_id not in filled]
    assert sorted(made) == sorted(left)
    assert all(len(shard) == shard_size for shard in shards[:-1])
    assert all(1 <= len(shard) <= shard_size for shard in shards)


@given(st.integers(1, 7), st.data())
def test_batches_stay_those_of_the_whole_plan(shard_size: int, data: st.DataObject) -> None:
    slots = plan_slots(prompts_of(PROBLEMS), DRAW)
    filled = {s.trajectory_id for s in slots if data.draw(st.booleans(), label="filled")}
    whole, cut = Echo(), Echo()
    list(generate(slots, whole, DRAW, set(), shard_size, shard_size))
    list(generate(slots, cut, DRAW, filled, shard_size, shard_size))
    left = [[slot for slot in batch if slot not in filled] for batch in whole.batches]
    assert cut.batches == [batch for batch in left if batch]


def test_replies_are_joined_by_id_and_complete() -> None:
    slots = plan_slots(prompts_of(PROBLEMS), DRAW)
    (shard,) = generate(slots, Echo(), DRAW, set(), 99, origin="rationalized")
    by_slot = {trajectory.trajectory_id: trajectory for trajectory in shard}
    assert by_slot.keys() == {slot.trajectory_id for slot in slots}
    for slot in slots:
        trajectory = by_slot[slot.trajectory_id]
        assert trajectory.completion == str(slot.seed)  # Echo says the seed it was given
        assert trajectory.content_id == ids.content_id(
            slot.prompt.token_ids, tokens(str(slot.seed))
        )
        assert trajectory.problem_id == slot.prompt.problem_id
        assert (trajectory.seed, trajectory.slot) == (slot.seed, slot.slot)
        assert (trajectory.purpose, trajectory.origin) == ("train", "rationalized")
        assert trajectory.model_id == MODEL
        assert trajectory.sampling_id == sampling_row(DRAW.sampling).sampling_id
        assert trajectory.engine == "echo"
        assert trajectory.engine_version == "9"
        assert trajectory.weight_version == "w"
        assert trajectory.logprobs == (-0.25,) * len(str(slot.seed))


def test_a_slot_left_empty_is_an_error_that_names_it() -> None:
    slots = plan_slots(prompts_of(PROBLEMS[:2]), DRAW)
    with pytest.raises(SamplerError, match=f"left 1 of 4 slots empty .*{slots[-1].trajectory_id}"):
        list(generate(slots, Forgetful(), DRAW, set(), 9))


class Twice(Echo):
    """Answers the first request twice."""

    def sample(self, requests: Sequence[Request], sampling: SamplingConfig) -> Iterator[Completion]:
        yield from super().sample(requests, sampling)
        yield self.reply(requests[0])


class TextAlone(Echo):
    """A server that gives text and no log-probabilities."""

    def reply(self, request: Request) -> Completion:
        said = super().reply(request)
        return replace(said, logprobs=None, from_text=True)


def test_a_slot_answered_twice_is_an_error_that_names_it() -> None:
    slots = plan_slots(prompts_of(PROBLEMS[:2]), DRAW)
    with pytest.raises(SamplerError, match=f"answered slot {slots[0].trajectory_id}, which"):
        list(generate(slots, Twice(), DRAW, set(), 9))


def test_ids_read_from_text_are_marked_and_need_no_log_probabilities() -> None:
    slots = plan_slots(prompts_of(PROBLEMS[:2]), DRAW)
    (shard,) = generate(slots, TextAlone(), DRAW, set(), 9)
    assert [(row.from_text, row.logprobs) for row in shard] == [(True, None)] * 4
    (shard,) = generate(slots, Echo(), DRAW, set(), 9)
    assert {row.from_text for row in shard} == {None}


def test_a_missing_log_probability_is_an_error() -> None:
    slots = plan_slots(prompts_of(PROBLEMS[:1]), DRAW)
    with pytest.raises(SamplerError, match=r"gave \d+ log-probabilities for \d+ tokens of slot"):
        list(generate(slots, Miscounting(), DRAW, set(), 9))


def test_a_sampling_row_has_its_parameters() -> None:
    row = sampling_row(SamplingConfig(temperature=0.5, top_p=0.9, top_k=3, max_tokens=7))
    assert (row.temperature, row.top_p, row.top_k, row.max_tokens) == (0.5, 0.9, 3, 7)
    assert row.config == '{"max_tokens":7,"temperature":0.5,"top_k":3,"top_p":0.9}'
    assert row.sampling_id == ids.sampling_id(row.config)
