# SPDX-License-Identifier: Apache-2.0
"""Reports of runs: sections, and the paired difference of two rounds or two runs."""

import re

import pytest

from report.lineage import last_checkpoint, trained_by
from report.pages import as_markdown, as_text, hint_sections, pages, paired
from report.rounds import round_lines
from report.runs import newest_run
from stages.errors import ConfigError, StoreError
from store.db import Store
from store.transaction import read


def test_a_page_has_a_section_for_the_run_and_one_for_its_gains(finished: Store) -> None:
    run, gains, hints = pages(finished, [])
    assert (run.title, gains.title) == ("try", "try: against its base")
    assert run.text.startswith("star: task addition, policy tiny, 1 answer to 60 problems a round")
    assert "Not self-improvement alone" in run.text  # 20 seed rows
    assert [row[0] for row in run.rows] == ["base", "1", "2"]
    assert [row[0] for row in gains.rows] == ["1", "2"]
    assert hints.title == "try: what the hint brought"


def test_what_the_hint_brought_adds_up_to_the_round_table(finished: Store) -> None:
    (section,) = hint_sections(finished, "try")
    for line in round_lines(finished, "try")[1:]:
        of_round = [row for row in section.rows if row[0] == str(line.summary["round"])]
        kept, leaks = (sum(int(row[place]) for row in of_round) for place in (3, 5))
        assert (kept, leaks) == (line.summary["rationalized"], line.summary["hint_leaks"])


def test_text_and_markdown_hold_the_same_cells(finished: Store) -> None:
    sections = pages(finished, ["try"])
    text, markdown = as_text(sections), as_markdown(sections)
    for section in sections:
        for cell in [cell for row in section.rows for cell in row]:
            assert cell in text
            assert f"| {cell} |" in markdown
    assert re.findall(r"^## (.*)$", markdown, re.M) == [section.title for section in sections]


def test_a_run_compared_with_itself_differs_in_nothing(finished: Store) -> None:
    against = pages(finished, ["try", "try"])[-1]
    assert against.title == "try against try"
    assert against.text == "The configs differ in nothing."
    assert [row[:3] for row in against.rows] == [
        [label, "+0.000", "+0.000 – +0.000"] for label in ("base", "1", "2")
    ]


def test_paired_difference_by_hand(told: Store) -> None:
    # D1 is the one question: 1 of 2 right, then 2 of 2, then none. One question of difference d
    # takes d² for its variance, so the interval is d ± 1.96 |d|.
    z = 1.959963984540054
    assert paired(told, ("one", 0), ("one", 1)) == pytest.approx((0.5, 0.5 - z / 2, 0.5 + z / 2, 1))
    assert paired(told, ("one", 1), ("one", 2)) == pytest.approx((-1.0, -1.0 - z, -1.0 + z, 1))
    assert paired(told, ("one", 0), ("two", 0)) == (0.0, 0.0, 0.0, 1)


def test_a_round_without_questions_in_common_has_no_difference(told: Store) -> None:
    assert paired(told, ("one", 1), ("two", 1)) is None


def test_the_paired_difference_is_that_of_the_round_table_and_turns_its_sign(
    finished: Store,
) -> None:
    there, back = (paired(finished, ("try", a), ("try", b)) for a, b in ((0, 2), (2, 0)))
    assert there is not None and back is not None
    with finished.reader() as connection:
        rounds = read(connection, "round_table", run="try")
    assert there[0] == pytest.approx(rounds[2]["pass_at_1"] - rounds[0]["pass_at_1"])
    assert there[1] < there[0] < there[2]
    assert back[:3] == pytest.approx((-there[0], -there[2], -there[1]))


def test_the_newest_run_is_the_one_worked_on_last(told: Store, finished: Store) -> None:
    with finished.reader() as connection:
        assert newest_run(connection, None) == newest_run(connection, "try") == "try"
    with told.reader() as connection, pytest.raises(ConfigError, match="runs: one, two; did you"):
        newest_run(connection, "ones")


def test_a_store_without_a_run_says_how_to_start_one(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    store = Store(tmp_path_factory.mktemp("empty") / "store.duckdb")
    store.create()
    with pytest.raises(StoreError, match="holds no run yet: start one with `starloop run CONFIG`"):
        pages(store, [])


def test_lineage_of_the_last_checkpoint_by_hand(told: Store) -> None:
    lines = [line.split() for line in last_checkpoint(told, "one").splitlines()]
    trained = [line for line in lines if line[3:4] == ["self"]]
    # M2: a1 of round 1, sampled by M0, 3 tokens; b2 of round 2, sampled by M1, 9 tokens
    assert [[row[1], *row[5:]] for row in trained] == [["1", "1", "1", "3"], ["2", "1", "1", "9"]]
    rests = [line for line in lines if line[-1:] and line[-1].startswith("models/")]
    assert sorted((row[0], row[-1]) for row in rests) == [("1", "models/0"), ("1", "models/1")]


def test_lineage_counts_every_visit_of_the_last_update(finished: Store) -> None:
    rows = trained_by(finished, "try", False).table.to_pylist()
    assert sum(row["visits"] for row in rows) == 288  # 36 steps of 8 rows
    assert {row["origin"] for row in rows} == {"self", "rationalized", "seed"}
    assert {row["policy_id"] is None for row in rows if row["origin"] == "seed"} == {True}


def test_lineage_of_a_run_without_an_update_says_so(
    told: Store, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from stages.ids import run_id

    store = Store(tmp_path_factory.mktemp("begun") / "store.duckdb")
    store.create()
    with store.transaction() as tx:
        tx.append(
            "begin_run",
            run_id=run_id("new"), name="new", recipe="star", config="{}", identity="{}",
            manifest="{}", forked_from=None, forked_at_round=None,
        )  # fmt: skip
    with pytest.raises(StoreError, match="run new has no trained checkpoint yet"):
        last_checkpoint(store, "new")
