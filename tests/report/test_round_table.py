# SPDX-License-Identifier: Apache-2.0
"""The round table: cells worked by hand, the same numbers as the store's, safe as Markdown."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.files import FOLDER
from configs.load import load
from report.live import LiveTable
from report.rounds import (
    RoundLine,
    cells,
    columns,
    duration,
    header,
    is_self_improvement,
    round_lines,
    slices_of,
    trained_on,
)
from report.text import markdown_table, text_table
from store.db import Store
from store.transaction import read

SUMMARY: dict[str, Any] = {
    "run": "x", "round": 2, "model_id": None, "pass_at_1": 0.56789, "bound": 0.56789, "low": 0.5,
    "high": 0.63, "k": 4, "pass_at_k": 0.9, "maj_at_k": None, "n": 8, "kept": 24,
    "rationalized": 20, "hint_leaks": 7, "unjudged": 0, "tokens": 3046, "wall_s": 61.4,
}  # fmt: skip
SLICES = {"difficulty=10": 0.125, "difficulty=2": 0.5, "difficulty=1 (all)": 1.0}
LINE = RoundLine(SUMMARY, SLICES, {"rationalized": 0.25, "seed": 0.15, "self": 0.6})
ORIGINS = [("self", True), ("rationalized", True), ("seed", False), ("human", False),
          ("teacher", False), ("outside", False)]  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("{first: 40, growth: 1.2}", "(steps 40 × 1.2 a round, "),
        ("{epochs: 3}", "(3 epochs a round, "),
    ],
)
def test_the_header_says_how_steps_are_counted(steps: str, said: str) -> None:
    config = load(FOLDER / "tiny" / "try.yaml", [f"update.steps={steps}"])
    assert f"update tally from base {said}batch size 8)" in header(config)


def test_cells_by_hand() -> None:
    assert dict(zip(columns([LINE]), cells(LINE, slices_of([LINE])), strict=True)) == {
        "round": "2",
        "pass@1": "0.568",
        "95 %": "0.500–0.630",
        "pass@4": "0.900",
        "maj@4": "–",
        "d1 all": "1.00",
        "d2": "0.50",
        "d10": "0.12",
        "kept": "24",
        "rationalized": "20 (25%)",
        "leaks": "7",
        "tokens": "3,046",
        "time": "1:01",
        "trained on": "rationalized 25%, seed 15%, self 60%",
    }


def test_slices_by_difficulty_come_before_those_by_domain_which_are_headed_by_name() -> None:
    by_domain = {"domain=sets": 0.25, "domain=(algebra)": 0.5, "domain=a=b": 0.75}
    lines = [RoundLine(SUMMARY, {**by_domain, **SLICES}, {}), RoundLine(SUMMARY, {}, {})]
    assert columns(lines)[5:-6] == ["d1 all", "d2", "d10", "algebra", "a=b", "sets"]
    assert cells(lines[0], slices_of(lines))[5:-6] == [
        "1.00", "0.50", "0.12", "0.50", "0.75", "0.25",
    ]  # fmt: skip
    assert cells(lines[1], slices_of(lines))[5:-6] == ["–"] * 6


def test_the_base_is_named_and_what_was_not_measured_is_a_dash() -> None:
    unknown = dict.fromkeys(("pass_at_1", "bound", "low", "high", "pass_at_k", "maj_at_k", "k"))
    line = RoundLine({**SUMMARY, **unknown, "round": 0}, {}, {})
    assert cells(line, ["difficulty=2"])[:6] == ["base", "–", "–", "–", "–", "–"]
    assert cells(line, [])[-1] == "–"


def test_pass_at_1_shows_its_lower_bound_where_answers_could_not_be_judged() -> None:
    line = RoundLine({**SUMMARY, "bound": 0.55}, {}, {})
    assert cells(line, [])[1] == "0.568 (≥ 0.550)"


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, "0:00"), (59.4, "0:59"), (59.6, "1:00"), (3725, "62:05")]
)
def test_duration_in_minutes_and_seconds(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


def test_trained_on_names_every_origin() -> None:
    assert trained_on({"rationalized": 1 / 3, "self": 2 / 3}) == "rationalized 33%, self 67%"
    assert trained_on({}) == "–"


@pytest.mark.parametrize(("origin", "own"), ORIGINS)
def test_only_self_and_rationalized_rows_are_self_improvement(origin: str, own: bool) -> None:
    shares = [{"self": 1.0}, {"self": 0.9, origin: 0.1}, {}]
    assert is_self_improvement([RoundLine({}, {}, share) for share in shares]) is own


def test_round_lines_of_the_small_history(told: Store) -> None:
    lines = round_lines(told, "one")
    third = pytest.approx(1 / 3)
    assert [line.summary["round"] for line in lines] == [0, 1, 2]
    assert [dict(line.shares) for line in lines] == [
        {},
        {"rationalized": third, "seed": third, "self": third},
        {"self": 1.0},  # half of this round, half of the round before
    ]
    assert [dict(line.slices) for line in lines] == [{"difficulty=1": 0.25}] * 3
    assert is_self_improvement(lines) is False
    assert is_self_improvement(round_lines(told, "two")) is True


def test_round_lines_of_a_run_that_is_not_there_are_none(told: Store) -> None:
    assert round_lines(told, "three") == []


def test_problems_without_a_difficulty_get_no_column() -> None:
    line = RoundLine({}, {"difficulty=none": 0.5, "difficulty=1": 0.25, "domain=sums": 0.5}, {})
    assert slices_of([line]) == ["difficulty=1", "domain=sums"]


def test_the_lines_of_a_finished_run_are_the_numbers_of_its_summary(finished: Store) -> None:
    lines = round_lines(finished, "try")
    with finished.reader() as connection:
        summaries = read(connection, "round_table", run="try")
    assert [line.summary for line in lines] == summaries
    names = slices_of(lines)
    assert names == ["difficulty=1", "difficulty=1 (all)", "difficulty=2", "difficulty=3"]
    for line, summary in zip(lines, summaries, strict=True):
        row = dict(zip(columns(lines), cells(line, names), strict=True))
        assert row["pass@1"] == f"{summary['pass_at_1']:.3f}"
        assert row["tokens"] == f"{summary['tokens']:,}"
        assert float(row["95 %"].split("–")[0]) <= float(row["pass@1"])
        assert line.shares == {} or sum(line.shares.values()) == pytest.approx(1.0)


def test_pass_at_1_is_the_mean_over_difficulties(finished: Store) -> None:
    for line in round_lines(finished, "try"):
        parts = [line.slices[f"difficulty={d}"] for d in (1, 2, 3)]
        assert line.summary["pass_at_1"] == pytest.approx(sum(parts) / 3)


def test_a_live_table_tells_each_round_once_as_text_and_as_numbers(told: Store) -> None:
    rows: list[Any] = []
    table = LiveTable(told, "one", lambda *row: rows.append(row))
    table.show()
    assert [(number, cells["round"]) for number, cells, _ in rows] == [
        (0, "base"), (1, "1"), (2, "2"),
    ]  # fmt: skip
    assert [values["pass_at_1"] for _, _, values in rows] == [0.5, 1.0, 0.0]
    assert "trained on" not in rows[0][1] and set(rows[1][2]["shares"]) == {
        "self", "rationalized", "seed",
    }  # fmt: skip
    table.show()
    assert len(rows) == 3


# ── text and Markdown ───────────────────────────────────────────────────────────────────────


def test_text_table_by_hand() -> None:
    assert text_table(["run", "n"], [["a", "1"], ["longer", "200"]]) == (
        "run       n\n------  ---\na         1\nlonger  200"
    )
    assert text_table(["run", "n"], []) == "run  n\n---  -"


def test_markdown_table_by_hand() -> None:
    assert markdown_table(["run", "n"], [["a|b", "1\n2"]]) == (
        "| run | n |\n| --- | ---: |\n| a\\|b | 1 2 |"
    )


CELL = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(rows=st.lists(st.tuples(CELL, CELL, CELL), max_size=4))
def test_no_text_breaks_out_of_its_markdown_cell(rows: list[tuple[str, str, str]]) -> None:
    lines = re.split(r"\r\n|\n|\r", markdown_table(["a", "b", "c"], rows))
    assert len(lines) == len(rows) + 2
    for line in lines:
        bars = re.findall(r"(?<!\\)(?:\\\\)*\|", line)
        assert len(bars) == 4
