# SPDX-License-Identifier: Apache-2.0
"""Addition: scratchpads by hand, splits by unordered pair, and how many problems of each length."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.tasks import addition
from stages.tasks.addition import Config, operands, pairs, question_of, split_of, worked
from stages.tasks.base import Split
from stages.verifiers import exact, judge_text

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
EXACT = exact.Config(type="exact").build()
NUMBERS = st.integers(0, 10**20 - 1)


def lengths(problems: list[tuple[int, int]]) -> Counter[int]:
    return Counter(len(str(a)) for a, _ in problems)


@pytest.mark.parametrize(
    ("a", "b", "scratchpad"),
    [
        (3, 4, "a:3+4+0=7;#7"),
        (9, 9, "a:9+9+0=18;#18"),
        (0, 0, "a:0+0+0=0;#0"),
        # 0 + 0, then 1 + 9: the carry of the last place is only in the answer
        (10, 90, "a:0+0+0=0;b:1+9+0=10;#100"),
        # 8 + 9 = 17 carries 1, 7 + 6 + 1 = 14 carries 1, 4 + 5 + 1 = 10
        (478, 569, "a:8+9+0=17;b:7+6+1=14;c:4+5+1=10;#1047"),
        # a carry through every place
        (999, 111, "a:9+1+0=10;b:9+1+1=11;c:9+1+1=11;#1110"),
    ],
)
def test_a_scratchpad_goes_digit_by_digit(a: int, b: int, scratchpad: str) -> None:
    assert worked(a, b) == scratchpad


def test_a_question_names_the_place_of_every_digit() -> None:
    assert question_of(478, 569) == "c4b7a8+c5b6a9"
    assert question_of(5, 0) == "a5+a0"


@given(NUMBERS, NUMBERS)
def test_a_question_says_its_numbers(a: int, b: int) -> None:
    assert operands(question_of(a, b)) == (a, b)


@given(NUMBERS, NUMBERS)
def test_a_pair_and_its_turned_pair_are_in_one_split(a: int, b: int) -> None:
    assert split_of(a, b) == split_of(b, a)
    assert split_of(a, b) in SPLITS


def test_the_55_sums_of_length_one_are_split_without_rest() -> None:
    found = {split: list(pairs(1, split, 0)) for split in SPLITS}
    assert sorted(pair for part in found.values() for pair in part) == sorted(
        product(range(10), repeat=2)
    )
    unordered = {split: {(min(p), max(p)) for p in part} for split, part in found.items()}
    assert sum(map(len, unordered.values())) == len(set().union(*unordered.values())) == 55
    assert all(unordered[split] for split in SPLITS)


def test_splits_are_about_eight_to_one_to_one() -> None:
    count = Counter(split_of(a, b) for a, b in product(range(100, 200), repeat=2) if a <= b)
    total = sum(count.values())
    # 5050 pairs: three standard deviations of a share of 0.1 are 0.013
    assert count["dev"] / total == pytest.approx(0.1, abs=0.013)
    assert count["test"] / total == pytest.approx(0.1, abs=0.013)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_no_pair_comes_twice_and_the_seed_gives_the_order(length: int) -> None:
    found = [pair for pair, _ in zip(pairs(length, "train", 0), range(300), strict=False)]
    again = [pair for pair, _ in zip(pairs(length, "train", 0), range(300), strict=False)]
    other = [pair for pair, _ in zip(pairs(length, "train", 1), range(300), strict=False)]
    assert len(set(found)) == len(found)
    assert found == again != other
    assert all(len(str(a)) == len(str(b)) == length for a, b in found)
    assert {split_of(a, b) for a, b in found} == {"train"}


def test_train_problems_are_even_over_the_lengths() -> None:
    task = Config(type="addition", digits=3, train=60).build()
    found = [operands(p.question) for p in task.problems("train")]
    assert lengths(found) == {1: 20, 2: 20, 3: 20}
    assert len(set(found)) == 60


def test_where_a_length_runs_out_the_longer_ones_share_the_rest() -> None:
    available = len(list(pairs(1, "train", 0)))
    task = Config(type="addition", digits=3, train=501).build()
    found = [operands(p.question) for p in task.problems("train")]
    counts = lengths(found)
    # 501 / 3 = 167 is more than length 1 has; lengths 2 and 3 share what is left
    assert counts[1] == available < 167
    assert counts[2] == (501 - available) // 2
    assert sum(counts.values()) == len(set(found)) == 501


def test_held_out_problems_are_so_many_of_each_length() -> None:
    task = Config(type="addition", digits=3, held_out=7).build()
    for split in ("dev", "test"):
        found = task.problems(split)
        assert max(Counter(p.difficulty for p in found).values()) == 7
        assert {p.difficulty for p in found} == {1.0, 2.0, 3.0}


@pytest.mark.parametrize("digits", [1, 2, 3, 5])
def test_demonstrations_are_ten_of_each_long_length_and_the_rest_short(digits: int) -> None:
    shown = Config(type="addition", digits=digits, demonstrations=100).build().demonstrations()
    counts = Counter(int(d.problem.difficulty or 0) for d in shown)
    assert all(counts[length] == addition.LONG_EXAMPLES for length in range(3, digits + 1))
    assert set(counts) == set(range(1, digits + 1))
    available = len(list(pairs(1, "train", 1)))
    assert len(shown) == (min(100, available) if digits == 1 else 100)


@pytest.mark.parametrize("wanted", [0, 1, 5, 25])
def test_no_more_demonstrations_than_asked_for(wanted: int) -> None:
    task = Config(type="addition", digits=4, demonstrations=wanted).build()
    assert len(task.demonstrations()) == wanted


def test_the_extra_slice_has_all_sums_of_length_one() -> None:
    ((name, problems),) = Config(type="addition").build().extra_slices().items()
    assert name == "difficulty=1 (all)"
    assert {tuple(sorted(operands(p.question))) for p in problems} == {
        (a, b) for a in range(10) for b in range(a, 10)
    }
    assert len(problems) == 55


@given(st.integers(1, 4), st.integers(1, 40), st.booleans())
def test_base_examples_come_from_the_train_split_and_are_right(
    length: int, count: int, hinted: bool
) -> None:
    found = addition.examples(length, count, hinted, 0)
    assert len(found) == count
    for example in found:
        a, b = operands(example.prompt.split(" ")[0].removesuffix("="))
        assert split_of(a, b) == "train"
        assert (f"(hint {a + b})" in example.prompt) == hinted
        assert judge_text(EXACT, str(a + b), example.completion).status == "correct"
