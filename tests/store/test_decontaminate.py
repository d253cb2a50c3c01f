# SPDX-License-Identifier: Apache-2.0
"""Overlaps by rule: worked by hand, against a plain oracle, on hostile text, within limits."""

import re
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from benchmarks.contamination import COPIES, corpus
from stages.decontaminate import Overlap
from stages.errors import StoreError
from stages.shards import from_table
from store import decontaminate
from store.decontaminate import find_duplicates, find_overlaps, texts

RULES = ("exact", "template", "13-gram", "10-gram", "8-gram")
OTHER = 1000  # what an item's number is raised by in its id
WORDS = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen",
]  # fmt: skip


def numbered(given: list[str], first: int = 0) -> list[tuple[UUID, str]]:
    return [(UUID(int=first + i), text) for i, text in enumerate(given)]


def found(
    folder: Path, ours: list[str], items: list[str], *rules: str, share: float = 0.5
) -> list[tuple[int, int, str, float]]:
    """Overlaps as (candidate, item, rule, share) by place."""
    table = find_overlaps(
        texts(numbered(ours)), texts(numbered(items, OTHER)), rules or RULES, share, folder,
        threads=1,
    )  # fmt: skip
    return [
        (o.problem_id.int, o.other_id.int - OTHER, o.rule, o.share)
        for o in from_table(Overlap, table)
    ]


def alike(folder: Path, ours: str, item: str, rule: str) -> bool:
    return bool(found(folder, [ours], [item], rule))


# ── by hand ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("ours", "item", "expected"),
    [
        ("Tom has a dog, a cat; and a red hat!", "tom has A dog a cat and a red hat", True),
        ("What is 3 + 5?", "what is 3+5", True),
        ("What is 3+5?", "What is 3-5?", False),
        ("Evaluate (2+3)*4", "Evaluate 2+3*4", False),
        ("sort 1 23", "sort 12 3", False),
        ("c4b7a8+c5b6a9", "c4b7a9+c5b6a8", False),
        (
            "State the final answer to the following sum: 7 - 9 =",
            "State the final answer to the following sum: 7 + 9 =",
            False,
        ),
        (
            "State the final answer to the following sum: 7 - 9 =",
            "state the final answer, to the following sum 7-9",
            True,
        ),
        (
            "A five-year plan of 2 towns, for all who live in it",
            "A five year plan of 2 towns for all who live in it",
            True,
        ),
        ("STRASSE Ärger", "strasse ärger", True),
        ("cafe\u0301 noir", "caf\u00e9 noir", True),
        ("你好,世界", "你好世界", True),
        ("?!", "...", False),
        ("", "", False),
        ("🙂", "🙂", False),
    ],
)
def test_exact_takes_case_and_punctuation_off_and_keeps_what_makes_a_sum(
    tmp_path: Path, ours: str, item: str, expected: bool
) -> None:
    assert alike(tmp_path, ours, item, "exact") is expected


@pytest.mark.parametrize(
    ("ours", "item", "expected"),
    [
        ("Tom buys 3 red apples and gives 1 to Ann", "Tom buys 12 red apples and gives 7 to Ann",
         True),
        ("Tom pays 1,000 coins for his old car from Ann", "Tom pays 7 coins for his old car from "
         "Ann", True),
        ("2+3=?", "4+5=?", False),
        ("How much is 2 and 3 when taken together", "How much is 9 and 8 when taken together",
         False),  # seven words without a number
        ("How much is 2 and 3 when both taken together", "How much is 9 and 8 when both taken "
         "together", True),  # eight
    ],
)  # fmt: skip
def test_template_masks_numbers_where_at_least_eight_words_remain(
    tmp_path: Path, ours: str, item: str, expected: bool
) -> None:
    assert alike(tmp_path, ours, item, "template") is expected


@pytest.mark.parametrize(("rule", "n"), [("13-gram", 13), ("10-gram", 10)])
def test_one_run_of_n_words_is_a_hit_and_one_less_is_none(
    tmp_path: Path, rule: str, n: int
) -> None:
    run = WORDS[:n]
    whole = [" ".join(["before", "it", *run, "after"]), " ".join(["ahead", *run, "behind", "it"])]
    assert found(tmp_path, whole[:1], whole[1:], rule) == [(0, 0, rule, n / (n + 3))]
    shorter = [" ".join(["x", *run[1:], "y"]), " ".join(["p", *run[1:], "q"])]
    assert found(tmp_path, shorter[:1], shorter[1:], rule) == []


def test_ten_gram_compares_items_of_three_to_nine_words_whole(tmp_path: Path) -> None:
    items = ["Where is it", "Who sings", " ".join(WORDS[:9])]
    ours = ["where is it?", "who sings?", " ".join(WORDS[:9]), "so where is it"]
    assert found(tmp_path, ours, items, "10-gram") == [(0, 0, "10-gram", 1), (2, 2, "10-gram", 1)]


def test_eight_gram_share_is_of_the_words_in_runs_that_one_item_has(tmp_path: Path) -> None:
    eight, tail = " ".join(WORDS[:8]), " ".join(f"t{i}" for i in range(8))
    assert found(tmp_path, [f"{eight} {tail}"], [eight], "8-gram") == [(0, 0, "8-gram", 0.5)]
    assert found(tmp_path, [f"{eight} {tail} x"], [eight], "8-gram") == []
    # two items have half each: neither reaches three quarters
    both = [f"{eight} a", f"b {tail}"]
    assert found(tmp_path, [f"{eight} {tail}"], both, "8-gram", share=0.75) == []
    # nine words in a row are two runs that overlap: nine words, not sixteen
    nine = " ".join(WORDS[:9])
    assert found(tmp_path, [f"{nine} x"], [nine], "8-gram") == [(0, 0, "8-gram", 0.9)]


def test_the_item_that_shares_most_is_named_and_the_first_of_equals(tmp_path: Path) -> None:
    ours = " ".join(WORDS)
    items = [" ".join(WORDS[:9]), ours, ours, "nothing of it"]
    rows = found(tmp_path, [ours], items)
    assert [row[:3] for row in rows] == [
        (0, 1, rule) for rule in ("exact", "template", "13-gram", "10-gram", "8-gram")
    ]


def test_boilerplate_of_many_items_leads_to_the_first_of_them_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decontaminate, "LEADING", 3)
    boiler = " ".join(WORDS[:8])
    items = [f"{boiler} item{i}" for i in range(6)]
    tail = " ".join(f"t{i}" for i in range(7))
    assert found(tmp_path, [f"x {boiler} y"], items, "8-gram") == [(0, 0, "8-gram", 0.8)]
    # the last item is reached by the text of its own, and then all that is shared counts
    items[5] = f"{boiler} {tail}"
    assert found(tmp_path, [f"{boiler} {tail}"], items, "8-gram") == [(0, 5, "8-gram", 1.0)]


def test_a_long_completion_that_recites_an_item_is_found_one_way(tmp_path: Path) -> None:
    item = " ".join(WORDS)
    completion = " ".join([*(f"a{i}" for i in range(60)), item, *(f"z{i}" for i in range(60))])
    rules = ("13-gram", "8-gram")
    assert [row[2] for row in found(tmp_path, [completion], [item], *rules)] == ["13-gram"]
    assert [row[2] for row in found(tmp_path, [item], [completion], *rules)] == list(rules)


def test_duplicates_name_the_first_of_their_kind(tmp_path: Path) -> None:
    def twins(rule: str, *given: str) -> list[tuple[int, int]]:
        table = find_duplicates(texts(numbered(list(given))), rule, tmp_path, threads=1)
        return [(o.problem_id.int, o.other_id.int) for o in from_table(Overlap, table)]

    apples = "Tom buys {} red apples and gives some to Ann"
    given = [apples.format(3), "2+3", apples.format(4), "2 + 3", "?", "?", apples.format(3) + "!"]
    assert twins("exact", *given) == [(3, 1), (6, 0)]
    assert twins("template", *given) == [(2, 0), (6, 0)]


# ── against a plain oracle ──────────────────────────────────────────────────────────────────


def oracle(ours: str, items: list[str], rule: str, least: float) -> tuple[int, float] | None:
    """The best item and its share, by the docstring of store/decontaminate.py; no signs of sums."""

    def words(text: str) -> list[str]:
        return re.findall(r"[a-z0-9]+", text.lower())

    def template(text: str) -> str | None:
        masked = re.sub(r"[0-9]+( [0-9]+)*", "#", " ".join(words(text)))
        return masked if sum("#" not in word for word in masked.split()) >= 8 else None

    mine = words(ours)
    shares = []
    for item in items:
        theirs = words(item)
        if rule == "template":
            share = float(template(ours) is not None and template(ours) == template(item))
        elif rule == "exact":
            share = float(bool(mine) and mine == theirs)
        else:
            n = int(rule.removesuffix("-gram"))
            covered = {
                place
                for i in range(len(mine) - n + 1)
                for j in range(len(theirs) - n + 1)
                if mine[i : i + n] == theirs[j : j + n]
                for place in range(i, i + n)
            }
            share = len(covered) / max(1, len(mine))
            if rule == "10-gram" and 3 <= len(theirs) <= 9:
                share = float(mine == theirs)
        shares.append(share)
    best = max(shares, default=0.0)
    enough = best > 0 and (rule != "8-gram" or best >= least)
    return (shares.index(best), best) if enough else None


TEXT = st.lists(st.sampled_from(["a", "b", "c?", "D", " "]), max_size=26).map(" ".join)
LONG = st.lists(st.sampled_from(["a", "b", "12", "7"]), min_size=12, max_size=30).map(" ".join)


@given(
    st.lists(TEXT | LONG, max_size=5),
    st.lists(TEXT | LONG, max_size=5),
    st.sampled_from([0.1, 0.3, 0.5, 0.9, 1.0]),
)
@example(["a a a a a a a a a b"], ["a a a a a a a a a a a"], 0.5)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_overlaps_are_those_of_a_plain_oracle(
    tmp_path: Path, ours: list[str], items: list[str], share: float
) -> None:
    # eight letters in front: no text is so short that its signs count
    ours = [f"p q r s t u v w {text}" if re.search(r"\d", text) else text for text in ours]
    items = [f"p q r s t u v w {text}" if re.search(r"\d", text) else text for text in items]
    expected = [
        (place, *best, rule)
        for place, text in enumerate(ours)
        for rule in RULES
        if (best := oracle(text, items, rule, share)) is not None
    ]
    rows = found(tmp_path, ours, items, share=share)
    assert [(a, b, pytest.approx(s), rule) for a, b, rule, s in rows] == expected


# ── many, hostile, bounded ──────────────────────────────────────────────────────────────────


def test_planted_copies_are_found_each_by_its_rule(tmp_path: Path) -> None:
    ours, items, planted = corpus(600, 200, seed=3)
    table = find_overlaps(ours, items, RULES, 0.5, tmp_path, threads=1)
    rows = {(o.problem_id, o.other_id, o.rule) for o in from_table(Overlap, table)}
    bars = dict(zip(COPIES, ("exact", "template", "8-gram", "13-gram"), strict=True))
    for kind, copies in planted.items():
        assert len(copies) == 60
        assert {(ours, item, bars[kind]) for ours, item in copies.items()} <= rows
    assert {ours for ours, _, _ in rows} == {ours for copies in planted.values() for ours in copies}


def test_batches_and_threads_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, items, _ = corpus(200, 60, seed=4)
    whole = find_overlaps(ours, items, RULES, 0.5, tmp_path, threads=2)
    assert whole.num_rows > 80
    monkeypatch.setattr(decontaminate, "BATCH", 5_000)
    assert find_overlaps(ours, items, RULES, 0.5, tmp_path, threads=1).equals(whole)


@pytest.mark.parametrize(
    "text",
    ["\0" * 9, "a\0b c", "\ud800 half of a pair", "x" * 10**6, "a " * 500_000, "🙂" * 1000,
     "字" * 10**5, "", "1 " * 50_000, "e\u0301 " * 20],
    ids=["nul", "nul inside", "surrogate", "a megabyte", "a million words", "emoji", "no spaces",
         "empty", "numbers", "marks"],
)  # fmt: skip
def test_hostile_text_neither_crashes_nor_fails_to_match_itself(tmp_path: Path, text: str) -> None:
    rows = found(tmp_path, [text, "other"], [text])
    matches = any(c.isalnum() for c in text)
    assert [row[:3] for row in rows if row[2] == "exact"] == [(0, 0, "exact")] * matches
    assert {row[0] for row in rows} <= {0}


def test_too_little_memory_is_an_error_that_says_so_and_the_spill_folder_goes(
    tmp_path: Path,
) -> None:
    ours, items, _ = corpus(3000, 100)
    with pytest.raises(StoreError, match="do not suffice"):
        find_overlaps(ours, items, RULES, 0.5, tmp_path, memory="2MB", threads=1)
    assert list(tmp_path.iterdir()) == []
    assert find_overlaps(ours, items, RULES, 0.5, tmp_path, memory="500MB", threads=1).num_rows
    assert list(tmp_path.iterdir()) == []
