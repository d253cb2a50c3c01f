# SPDX-License-Identifier: Apache-2.0
"""Two rounds on the same problems: states by hand, totals that add up, refusals with a reason."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import small_history
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from report.diff import Diff, Pair, Side, as_parts, as_rows, diff, summary
from report.text import json_line
from stages.errors import ConfigError, StoreError
from store.db import Store

STATUS = st.lists(st.sampled_from(["correct", "wrong", "unjudged"]), min_size=1, max_size=6)


def side(*statuses: str, completion: str = "said") -> Side:
    return Side([
        {"trajectory_id": n, "completion": f"{completion} {n}", "status": status, "reason": "r"}
        for n, status in enumerate(statuses)
    ])  # fmt: skip


def pair(left: Side, right: Side) -> Pair:
    return Pair("id", "question", "4", left, right)


def drawn(found: Diff, width: int | None, pairs: list[Pair]) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width or 1000, color_system=None)
    for part in as_parts(found, pairs, width):
        console.print(part)
    return out.getvalue()


@pytest.mark.parametrize(
    ("left", "right", "state", "changed"),
    [
        (["wrong"], ["correct"], "gained", True),
        (["correct"], ["wrong"], "lost", True),
        (["correct", "wrong"], ["correct", "correct"], "gained", True),
        (["correct", "correct", "wrong"], ["correct"] * 3, "both right", True),
        (["wrong", "correct"], ["correct", "wrong"], "both wrong", False),
        (["unjudged", "correct"], ["correct", "unjudged"], "both right", False),
        (["unjudged"], ["wrong"], "both wrong", True),
    ],
)
def test_a_problem_is_right_where_more_than_half_of_its_judged_answers_are(
    left: list[str], right: list[str], state: str, changed: bool
) -> None:
    found = pair(side(*left), side(*right))
    assert (found.state, found.changed) == (state, changed)


@given(st.lists(st.tuples(STATUS, STATUS), max_size=8))
def test_every_problem_has_one_state_and_only_selects_by_it(
    drawn_: list[tuple[list[str], list[str]]],
) -> None:
    pairs = [pair(side(*left), side(*right)) for left, right in drawn_]
    found = Diff("a@1", "a@2", "held-out", pairs, 0, 0)
    states = ("gained", "lost", "both right", "both wrong")
    assert sum(map(found.count, states)) == len(pairs)
    for only in ("gained", "lost"):
        assert sum(each.passes(only) for each in pairs) == found.count(only)
    assert all(each.changed for each in pairs if each.passes("gained") or each.passes("lost"))
    assert [each for each in pairs if each.passes(None)] == pairs


def test_two_rounds_of_the_small_history(told: Store) -> None:
    found = diff(told, "one@1", "one@2", "held-out")
    assert summary(found) == (
        "one@1 → one@2: 1 held-out problems in both: 0 gained, 1 lost, 0 both right, 0 both wrong"
    )
    head, only = as_rows(found, "lost")
    assert (head["problems"], head["lost"], only["problem_id"]) == (1, 1, small_history.named("D1"))
    assert {row["completion"] for row in only["left"]["answers"]} == {"x11 said", "x12 said"}
    assert list(as_rows(found, "gained")) == [head]
    json.loads(json_line(only))
    said = drawn(found, None, list(found.pairs))
    assert "lost  " in said and "one@1  2 of 2 right" in said and "one@2  0 of 2 right" in said


def test_a_run_alone_is_its_last_round_and_two_runs_can_be_compared(finished: Store) -> None:
    found = diff(finished, "try@0", "try", "held-out")
    assert (found.left, found.right, found.only_left, found.only_right) == ("try@0", "try@2", 0, 0)
    same = diff(finished, "try", "try@2", "held-out")
    assert same.count("gained") == same.count("lost") == 0
    assert not any(each.changed for each in same.pairs)


def test_one_problem_can_be_asked_for(finished: Store) -> None:
    every = diff(finished, "try@0", "try@2", "held-out")
    wanted = str(every.pairs[3].problem_id)
    assert [str(p.problem_id) for p in diff(
        finished, "try@0", "try@2", "held-out", wanted).pairs] == [wanted]  # fmt: skip


@pytest.mark.parametrize(
    ("left", "right", "purpose", "why"),
    [
        ("one@1", "one@7", "held-out", r"one@7 has no held-out answer: .* that have some: 0, 1, 2"),
        ("one@1", "two@1", "held-out", r"two@1 has no held-out answer: .* that have some: 0;"),
        ("one@0", "one@1", "training", r"one@0 has no training answer: .* that have some: 1, 2;"),
    ],
)
def test_rounds_without_answers_are_refused_with_those_that_have_some(
    told: Store, left: str, right: str, purpose: str, why: str
) -> None:
    with pytest.raises(StoreError, match=why):
        diff(told, left, right, purpose)
    with pytest.raises(ConfigError, match="'nine' is not in the store"):
        diff(told, "nine@1", right, purpose)


def test_rounds_that_share_no_problem_are_refused_with_the_reason(
    told: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def apart(connection: Any, run: str, number: int, kind: str, purpose: str) -> Any:
        return {number: [{"question": "q", "answer": "a"}]}

    monkeypatch.setattr("report.diff._answers", apart)
    with pytest.raises(StoreError, match=r"one@1 and one@2 share no problem: 1 held-out problems"):
        diff(told, "one@1", "one@2", "held-out")


@pytest.mark.parametrize("width", [None, 60, 140])
def test_answers_stand_side_by_side_where_there_is_room_and_move_no_cursor(
    width: int | None,
) -> None:
    bad = "\x1b[2J\x9b\r\x07"
    found = Diff("a@1", "a@2", "held-out", [], 0, 0)
    one = Pair("id", f"question {bad}", bad, side("wrong", completion=bad), side("correct"))
    said = drawn(found, width, [one])
    assert r"\x1b[2J\x9b\r\x07" in said
    assert said.replace("\n", "").isprintable()
    together = any("a@1" in line and "a@2" in line for line in said.splitlines())
    assert together is (width == 140)
    if width:
        assert max(map(len, said.splitlines())) <= width


def test_the_command_shows_json_and_pages(tmp_path: Path, told: Store) -> None:
    from typer.testing import CliRunner

    from flows.cli import app

    given = ["diff", "one@1", "one@2", "--store", str(told.path)]
    rows = CliRunner().invoke(app, [*given, "--json"]).output.splitlines()
    assert [json.loads(row).get("state") for row in rows] == [None, "lost"]
    page = CliRunner().invoke(app, [*given, "--only", "gained"]).output
    assert "--only gained leaves none of them" in page
    assert CliRunner().invoke(app, [*given, "--only", "new"]).exit_code == 1
