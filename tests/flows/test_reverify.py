# SPDX-License-Identifier: Apache-2.0
"""Stored trajectories judged anew: new verdicts beside the old, who flipped, what that touches."""

from collections.abc import Callable
from pathlib import Path

import pytest
from running import Ended, ask, contents

from flows.lock import run_lock
from stages.ids import verifier_id

Command = Callable[..., Ended]
VIEWS = ("trajectory_fate", "round_summary", "problem_journey", "mix_by_round")


def views(path: Path) -> dict[str, list[str]]:
    return {view: sorted(map(repr, ask(path, f"from {view}"))) for view in VIEWS}


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
    assert again.out.splitlines()[3:-1] == first.out.splitlines()[3:-1]
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
