# SPDX-License-Identifier: Apache-2.0
"""Stored trajectories judged anew: new verdicts beside the old, who flipped, what that touches."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from running import Ended, ask, contents

from flows.commit import store_step
from flows.lock import run_lock
from stages.ids import Id, run_id, verifier_id
from stages.verifiers import Judgement, exact
from store.db import Store

Command = Callable[..., Ended]
VIEWS = ("trajectory_fate", "round_summary", "problem_journey", "mix_by_round")


def views(path: Path) -> dict[str, list[str]]:
    """The rows of the views; lists in order, and sums of seconds without their last digits."""

    def plain(value: object) -> object:
        if isinstance(value, list):
            return sorted(map(str, value))
        return round(value, 6) if isinstance(value, float) else value

    return {
        view: sorted(repr([plain(v) for v in row]) for row in ask(path, f"from {view}"))
        for view in VIEWS
    }


def test_every_verdict_is_judged_anew_and_the_old_ones_and_the_views_stay(
    command: Command, copied: Path
) -> None:
    before, seen = contents(copied), views(copied)
    (trajectories,) = {row[0] for row in ask(copied, "select count(*) from trajectory")}
    ended = command("verify", "try", "--with", "exact", 'mark="\'"', "--store", copied)
    assert (ended.code, ended.err) == (0, "")
    after = contents(copied)
    assert set(map(repr, before["verdict"])) < set(map(repr, after["verdict"]))
    assert len(after["verdict"]) - len(before["verdict"]) == trajectories
    assert views(copied) == seen
    changed = {t for t in before if before[t] != after[t]}
    assert changed == {"verifier", "verdict", "step_run", "step_output"}
    steps = ask(copied, "select round, step from step_run where starts_with(step, 'reverify')")
    assert {number for number, _ in steps} == {0, 1, 2}


def test_with_another_mark_no_answer_is_found_and_the_touched_models_are_named(
    command: Command, copied: Path
) -> None:
    ended = command("verify", "try", "--with", "exact", "mark=zz", "--store", copied)
    row = str(verifier_id("exact", "1", '{"mark":"zz","type":"exact"}'))
    assert f"from rejudged('try', '{row}') where flipped" in ended.out
    was = dict(ask(copied, "select status, count(*) from trajectory_fate group by all"))
    flips = ask(copied, f"select count(*), bool_and(now = 'wrong') from rejudged('try', '{row}') "
                        "where flipped")  # fmt: skip
    assert flips == [(was["correct"], True)]
    trained = ask(
        copied,
        "select u.model_id, count(distinct x.trajectory_id) from training_update u "
        "join training_visit v on v.update_id = u.update_id and v.visits > 0 "
        "join training_row_trajectory x on x.training_set_id = u.training_set_id "
        "and x.training_row_id = v.training_row_id group by all",
    )
    for model, rows in trained:
        (line,) = [line for line in ended.out.splitlines() if str(model) in line]
        assert line.split()[:6] == ["try", line.split()[1], "now", "wrong", str(rows), str(rows)]


def test_the_same_verifier_flips_nobody(command: Command, copied: Path) -> None:
    verdicts = contents(copied)["verdict"]
    ended = command("verify", "try", "--with", "exact", "--store", copied)
    assert ended.code == 0
    assert "0 of " in ended.out
    assert "No training set holds a flipped row." in ended.out
    assert contents(copied)["verdict"] == verdicts


def test_again_it_says_so_and_changes_nothing(command: Command, copied: Path) -> None:
    first = command("verify", "try", "--with", "exact", "mark=zz", "--store", copied)
    before = contents(copied)
    again = command("verify", "try", "--with", "exact", "mark=zz", "--store", copied)
    assert again.out.splitlines()[:3] == [f"round {n}: judged already" for n in range(3)]
    judged = [line for line in first.out.splitlines() if ": verify: " not in line]
    assert again.out.splitlines()[3:-1] == judged[:-1]
    assert contents(copied) == before


def test_one_round_alone(command: Command, copied: Path) -> None:
    ended = command("verify", "try", "--with", "exact", "mark=zz", "--round", 1, "--store", copied)
    assert ended.code == 0
    sql = "select round from step_run where starts_with(step, 'reverify')"
    assert ask(copied, sql) == [(1,)]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["tyr", "--with", "exact"], 2, "'tyr' is not a run of a recipe"),
        (["try", "--with", "exat"], 2, "did you mean 'exact'?"),
        (["try", "--with", "exact", "mrk=1"], 2, "did you mean 'mark'?"),
        (["try", "--with", "exact", "--round", "9"], 2, "no whole round 9; whole ones: 0, 1, 2"),
    ],
)
def test_what_cannot_be_judged_is_refused(
    command: Command, copied: Path, arguments: list[str], code: int, said: str
) -> None:
    before = contents(copied)
    ended = command("verify", *arguments, "--store", copied)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert contents(copied) == before


def test_a_run_that_is_under_way_is_left_alone(command: Command, copied: Path) -> None:
    with run_lock(copied.parent / "try", "try"):
        ended = command("verify", "try", "--with", "exact", "mark=zz", "--store", copied)
    assert ended.code == 4
    assert "is being worked on by process" in ended.err


def picked(path: Path) -> list[dict[str, object]]:
    """What the third round of the run could train on."""
    with Store(path).transaction() as tx:
        place = {"run_id": run_id("try"), "round": 3, "refresh": 0}
        found = tx.ask("candidates", **place, since=0, earlier=True, wrong_too=False)
        return [{**row, **tx.ask("loop_time", run="try")[0]} for row in found]


def test_what_the_run_mixes_next_and_its_time_stay(command: Command, copied: Path) -> None:
    before = picked(copied)
    assert command("verify", "try", "--with", "exact", "mark=zz", "--store", copied).code == 0
    with duckdb.connect(str(copied)) as store:  # as if each had been judged at a later try
        store.execute(
            "update verdict set attempt = 3 where verifier_id in "
            "(select verifier_id from verifier where config like '%zz%')"
        )
        store.execute("update step_run set wall_s = 1e6 where starts_with(step, 'reverify')")
    assert picked(copied) == before
    assert {row["status"] for row in before} == {"correct"}


def test_held_out_accuracy_is_pass_at_1_as_the_round_table_has_it(
    command: Command, copied: Path
) -> None:
    table = ask(copied, "select round, pass_at_1 from round_summary where run = 'try' order by 1")
    ended = command("verify", "try", "--with", "exact", "mark=zz", "--store", copied)
    section = ended.out.split("Held-out pass@1")[1].split("\n\n")[1].splitlines()[2:]
    names = {0: "base"}
    assert [line.split()[:3] for line in section] == [
        [names.get(number, str(number)), f"{value:.3f}", "0.000"] for number, value in table
    ]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_flips_come_as_rows_and_nothing_else(command: Command, copied: Path, form: str) -> None:
    ended = command("verify", "try", "--with", "exact", "mark=zz", "-f", form, "--store", copied)
    assert ended.code == 0
    rows = json.loads(ended.out) if form == "json" else list(csv.DictReader(io.StringIO(ended.out)))
    right = ask(copied, "select trajectory_id from trajectory_fate where status = 'correct'")
    assert sorted(row["trajectory_id"] for row in rows) == sorted(str(each) for (each,) in right)
    assert all(line.startswith("round ") for line in ended.err.splitlines())


def test_too_many_unjudged_answers_hold_the_round_and_store_nothing(
    command: Command, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(copied)
    down = Judgement("unjudged", None, None, "server_down")
    monkeypatch.setattr(exact.Exact, "judge_one", lambda *_: down)
    ended = command("verify", "try", "--with", "exact", "mark=zz", "--store", copied)
    assert ended.code == 3
    assert "round 0 is held: " in ended.err
    assert "(server_down), gates.max_unjudged allows 1%" in ended.err
    assert contents(copied) == before


def test_one_unjudged_answer_is_tried_again_and_stays_unjudged(
    command: Command, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (answer,) = ask(
        copied,
        "select completion from trajectory group by all having count(*) = 1 order by all limit 1",
    )[0]
    judge_one = exact.Exact.judge_one
    monkeypatch.setattr(
        exact.Exact,
        "judge_one",
        lambda self, one: (
            Judgement("unjudged", None, None, "server_down")
            if one.completion == answer
            else judge_one(self, one)
        ),
    )
    ended = command("verify", "try", "--with", "exact", "mark=zz", "--store", copied)
    assert ended.code == 0, ended.err
    row = verifier_id("exact", "1", '{"mark":"zz","type":"exact"}')
    tries = "select attempt from verdict where status = 'unjudged' and verifier_id = ? order by 1"
    assert ask(copied, tries, row) == [(0,), (1,), (2,), (3,)]
    now = f"select now, count(*) from rejudged('try', '{row}') where now <> 'wrong' group by all"
    assert ask(copied, now) == [("unjudged", 1)]


def test_a_kill_between_two_rounds_loses_none_and_repeats_none(
    command: Command, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows import reverify

    stored: list[object] = []

    def once_then_stop(*given: Any) -> None:
        if stored:
            raise KeyboardInterrupt
        stored.append(given)
        store_step(*given)

    monkeypatch.setattr(reverify, "store_step", once_then_stop)
    cut = command("verify", "try", "--with", "exact", "mark=zz", "--store", copied)
    assert cut.code == 130
    assert "the same command goes on from here" in cut.err
    monkeypatch.undo()
    again = command("verify", "try", "--with", "exact", "mark=zz", "--store", copied)
    assert (again.code, again.out.splitlines()[0]) == (0, "round 0: judged already")
    judged = "select count(*), count(distinct id) from step_output where starts_with(step, 'rev')"
    ((count, distinct),) = ask(copied, judged)
    assert count == distinct == ask(copied, "select count(*) from trajectory")[0][0]


def test_a_verifier_whose_step_has_another_key_is_not_taken_for_judged(
    command: Command, copied: Path
) -> None:
    command("verify", "try", "--with", "exact", "mark=zz", "--store", copied)
    with duckdb.connect(str(copied)) as store:
        other = Id(int=7)
        store.execute("update step_run set step_key = ? where starts_with(step, 'rev')", [other])
    ended = command("verify", "try", "--with", "exact", "mark=zz", "--store", copied)
    assert ended.code == 1
    assert f"was committed with another key ({other}" in ended.err
