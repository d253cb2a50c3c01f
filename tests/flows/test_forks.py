# SPDX-License-Identifier: Apache-2.0
"""A fork takes over rounds of another run, and the lineage goes across."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from running import TRY, Ended, ask, contents, starloop

from flows.fork import Fork, parse
from stages.errors import ConfigError

Command = Callable[..., Ended]


@pytest.mark.slow
def test_a_fork_goes_on_from_its_round_and_rests_on_the_source(copied: Path) -> None:
    before = contents(copied)
    fork = ("run", TRY, "--fork", "try@1", "--name", "bent", "mix.history=new_only")
    ended = starloop(*fork, "--store", copied)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("run bent begins as a fork of try at round 1: 2 rounds\n")
    after = contents(copied)
    kept = {table: set(map(repr, rows)) for table, rows in after.items()}
    assert all(set(map(repr, rows)) <= kept[table] for table, rows in before.items())
    taken = """select round, refresh, step, kind, id, first from step_output o
        where run = ? and round <= 1 order by all"""
    assert ask(copied, taken, "bent") == ask(copied, taken, "try")
    assert ask(
        copied, "select distinct reused from step_output where run = 'bent' and round < 2"
    ) == [(True,)]
    forked = "select s.name, r.forked_at_round from run r join run s on s.run_id = r.forked_from"
    assert ask(copied, forked) == [("try", 1)]
    rests = ask(
        copied,
        "select run, round from ancestors((select model_id from round_summary "
        "where run = 'bent' and round = 2)) order by all",
    )
    assert rests == [("try", 0), ("try", 1)]
    sources = ask(
        copied,
        "select distinct run, round from trained_by((select model_id from round_summary "
        "where run = 'bent' and round = 2)) where origin <> 'seed'",
    )
    assert sources == [("try", 2)]  # round 2's answers are the source's own, taken over
    again = starloop(*fork, "--store", copied)
    assert (again.code, again.err) == (0, "")
    assert again.out.startswith("run bent is complete: 2 rounds are done")
    assert "bent: complete: forked from try@1" in starloop("status", "--store", copied).out
    report = starloop("report", "bent", "--store", copied).out
    assert "Forked from try at round 1: its rounds up to there are that run's." in report


@pytest.mark.slow
def test_a_fork_of_a_fork_mixes_the_rounds_it_took_over(copied: Path) -> None:
    one = starloop("run", TRY, "--fork", "try@2", "--name", "a", "--rounds", 3, "--store", copied)
    two = starloop("run", TRY, "--fork", "a@3", "--name", "b", "--rounds", 4, "--store", copied)
    assert (one.code, two.code) == (0, 0)
    mixed = (
        "select distinct origin_round from mix_by_round where run = 'b' and round = 4 order by 1"
    )
    assert ask(copied, mixed) == [(0,), (1,), (2,), (3,), (4,)]
    whole = starloop("run", TRY, "--rounds", 4, "--store", copied)
    assert whole.code == 0
    kept = "select round, model_id, kept, rationalized, pass_at_1 from round_summary where run = ?"
    assert ask(copied, kept + " order by 1", "b") == ask(copied, kept + " order by 1", "try")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fork", "try@1"], "--fork: a fork is a run of its own: give it a --name"),
        (["--fork", "try", "--name", "x"], "--fork: 'try' is not RUN@ROUND"),
        (["--fork", "tyr@1", "--name", "x"], "no run 'tyr'; runs: try; did you mean 'try'?"),
        (["--fork", "try@7", "--name", "x", "--rounds", "9"], "round 7; whole ones: 0, 1, 2"),
        (["--fork", "try@2", "--name", "x"], "set --rounds to 3 or more"),
        (["--fork", "try@1", "--name", "try"], "run try is there already and not a fork"),
        (["--fork", "try@1", "--name", "x", "policy.digits=4"], "another base than run try's"),
        (
            ["--fork", "try@1", "--name", "x", "prompts={name: a, plain: '{question}='}"],
            "another prompt set than run try's",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_forked_is_refused_and_changes_nothing(
    command: Command, copied: Path, arguments: list[str], said: str
) -> None:
    before = contents(copied)
    ended = command("run", TRY, *arguments, "--store", copied)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert contents(copied) == before


def test_a_changed_run_is_told_a_free_name_and_the_fork(command: Command, copied: Path) -> None:
    ended = command("run", TRY, "seed=1", "--name", "try", "--store", copied)
    assert "with --name try-2 (and --fork try@ROUND to go on from one of its rounds)" in ended.err


def test_a_fork_is_there_with_its_rounds_and_its_event_or_not_at_all(
    command: Command, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    before = contents(copied)
    monkeypatch.setattr("flows.loop.take_over", cut)
    fork = ("run", TRY, "--fork", "try@1", "--name", "bent", "seed=5", "--store", copied)
    assert command(*fork).code == 130
    assert contents(copied) == before
    monkeypatch.undo()
    for after in ("flows.loop._event", "flows.screen.Screen.say"):  # what follows the commit
        monkeypatch.setattr(after, cut)
    assert command(*fork).code == 130
    told = ask(
        copied,
        "select e.kind, e.message from event e join run using (run_id) where name = 'bent'",
    )
    assert told == [("forked", "run bent begins as a fork of try at round 1, 2 rounds")]
    steps = "select round, step, step_key from step_run where run = ? and round <= 1 order by all"
    assert ask(copied, steps, "bent") == ask(copied, steps, "try")


def test_rounds_that_a_fork_took_over_are_whole_however_often_it_measures(
    command: Command, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with duckdb.connect(str(copied)) as store:  # as if try measured every second round
        store.execute("update run set config = replace(config, '\"every\":1', '\"every\":2')")
        for table in ("step_run", "step_output"):
            store.execute(f"delete from {table} where round = 1 and step = 'evaluate'")
    monkeypatch.setattr("flows.loop._work", lambda *_: None)
    fork = ("run", TRY, "--fork", "try@1", "--name", "bent", "--store", copied)
    assert command(*fork).code == 0
    ended = command("verify", "bent", "--with", "exact", "mark=zz", "--store", copied)
    assert ended.code == 0, ended.err
    judged = "select round from step_run where starts_with(step, 'reverify') order by 1"
    assert ask(copied, judged) == [(0,), (1,)]
    again = command("run", TRY, "--fork", "bent@1", "--name", "twice", "--store", copied)
    assert again.out.startswith("run twice begins as a fork of bent at round 1")
    assert ask(
        copied, "select count(*) from step_run where run = 'twice' and step like 'rev%'"
    ) == [(0,)]


@pytest.mark.parametrize(("text", "fork"), [("a@0", Fork("a", 0)), ("a@b@12", Fork("a@b", 12))])
def test_a_fork_is_a_run_and_a_round(text: str, fork: Fork) -> None:
    assert parse(text) == fork


@pytest.mark.parametrize("text", ["", "@1", "a@", "a@-1", "a@1.5", "a@²", "a"])
def test_anything_else_is_no_fork(text: str) -> None:
    with pytest.raises(ConfigError, match="is not RUN@ROUND"):
        parse(text)
