# SPDX-License-Identifier: Apache-2.0
"""A run that is there already: complete, longer, with another seed, as an arm, held, swept."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running import TRY, Ended, ask, contents, starloop

from flows.lock import run_lock, sweep
from stages.errors import LockedError
from store.db import Store

Command = Callable[..., Ended]
Tables = dict[str, list[tuple[Any, ...]]]


def gone(before: Tables, after: Tables) -> Tables:
    """Rows of `before` that `after` lacks."""
    return {table: left for table in before if (left := missing(before[table], after[table]))}


def missing(before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    kept = set(map(repr, after))
    return [row for row in before if repr(row) not in kept]


def test_a_complete_run_says_so_shows_its_table_and_changes_nothing_but_events(
    command: Command, copied: Path
) -> None:
    before = contents(copied)
    ended = command("run", TRY, "--store", copied)
    assert (ended.code, ended.err) == (0, "")
    first, head, *rows = ended.out.splitlines()
    assert first == "run try is complete: 2 rounds are done (a higher --rounds goes on from there)"
    assert head.startswith("round  pass@1")
    assert [row.split()[0] for row in rows] == ["base", "1", "2"]
    after = contents(copied)
    del before["event"], after["event"]
    assert after == before


def test_a_complete_run_whose_copy_is_old_shows_all_its_rounds(
    command: Command, copied: Path
) -> None:
    """As after a kill between the last commit and the last copy."""
    old = Store(copied.with_name("old.duckdb"))
    old.create()
    old.snapshot().rename(copied.with_name("store.snapshot.duckdb"))
    ended = command("run", TRY, "--store", copied)
    assert [row.split()[0] for row in ended.out.splitlines()[2:]] == ["base", "1", "2"]
    assert contents(Store(copied).copy) == contents(copied)


def test_another_seed_under_the_same_name_is_refused_with_the_diff(
    command: Command, copied: Path
) -> None:
    before = contents(copied)
    ended = command("run", TRY, "seed=1", "mix.seed_rows=5", "--store", copied)
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    assert "run try was made with another config (mix.seed_rows: 20 → 5; seed: 0 → 1)" in line
    assert contents(copied) == before


def test_a_change_of_how_is_taken_over_and_recorded(command: Command, copied: Path) -> None:
    ended = command("run", TRY, "sampler.shard_size=16", "--store", copied)
    assert ended.code == 0
    assert ask(copied, "select message from event where kind = 'config_changed'") == [
        ("sampler.shard_size: 64 → 16",)
    ]


def test_more_rounds_go_on_and_leave_what_was_there(copied: Path) -> None:
    before = contents(copied)
    ended = starloop("run", TRY, "--rounds", "3", "--store", copied)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("going on with run try at round 3 of 3\n")
    after = contents(copied)
    assert gone(before, after) == {}
    new = {(row[2], row[4]) for row in missing(after["step_run"], before["step_run"])}
    steps = ("generate", "verify", "rationalize", "mix", "update", "watch", "evaluate")
    assert new == {(3, step) for step in steps}
    assert ask(copied, "select max(steps_done) from training_update") == [(43,)]  # ⌊30 × 1.2²⌋
    assert contents(Store(copied).copy) == after


def test_an_arm_shares_what_it_has_in_common_and_counts_it_once(copied: Path) -> None:
    before = contents(copied)
    ended = starloop("run", TRY, "rationalize.enabled=false", "--name", "arm", "--store", copied)
    assert (ended.code, ended.err) == (0, "")
    assert gone(before, contents(copied)) == {}
    shared = ask(
        copied,
        "select round, step from step_run join run using (run_id) where name = 'arm' and reused "
        "order by round, step",
    )
    assert shared == [
        *((0, step) for step in ("admit", "evaluate", "setup")),
        *((1, step) for step in ("generate", "verify")),
    ]
    uses = ask(
        copied,
        "select round, step, bool_and(reused), bool_or(reused) from step_output "
        "join run using (run_id) where name = 'arm' and kind <> 'problem' "
        "group by all order by round, step",
    )
    assert {(round_, step): (every, some) for round_, step, every, some in uses} == {
        (0, "evaluate"): (True, True),
        (0, "setup"): (True, True),
        (1, "generate"): (True, True),
        (1, "verify"): (True, True),
        (1, "mix"): (False, False),
        (1, "update"): (False, False),
        (1, "evaluate"): (False, False),
        (2, "generate"): (False, False),
        (2, "verify"): (False, False),
        (2, "mix"): (False, False),
        (2, "update"): (False, False),
        (2, "evaluate"): (False, False),
    }
    tokens = dict(
        ask(copied, "select round, tokens from round_summary where run = 'arm' order by round")
    )
    assert (tokens[0], tokens[1]) == (0, 0)
    assert tokens[2] > 0
    assert ask(copied, "select count(*) from event where kind = 'reused'") == [(len(shared),)]
    arm, other = (
        ask(copied, "select kept from round_summary where run = ? and round = 1", name)
        for name in ("arm", "try")
    )
    assert arm == other


def test_an_arm_with_other_contamination_rules_makes_a_mix_of_its_own(copied: Path) -> None:
    """The same problems are admitted, and completions are left out of the mix by those rules."""
    given = ("decontaminate.containment=0.51", "--rounds", "1", "--name", "arm", "--store", copied)
    assert starloop("run", TRY, *given).code == 0
    steps = ask(
        copied,
        "select step, reused from step_run where run = 'arm' and round = 1 "
        "and step in ('generate', 'verify', 'mix') order by step",
    )
    assert steps == [("generate", True), ("mix", False), ("verify", True)]


def test_a_second_process_on_a_run_is_refused_and_told_who_holds_it(copied: Path) -> None:
    before = contents(copied)
    with run_lock(copied.parent / "try", "try"):
        ended = starloop("run", TRY, "--rounds", "3", "--store", copied)
    assert (ended.code, ended.out) == (4, "")
    (line,) = ended.err.splitlines()
    assert f"run try is being worked on by process {os.getpid()}: wait for it" in line
    assert contents(copied) == before


def test_the_lock_is_free_again_after_use_and_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), run_lock(tmp_path / "try", "try"):
        with pytest.raises(LockedError), run_lock(tmp_path / "try", "try"):
            pass
        raise RuntimeError
    with run_lock(tmp_path / "try", "try"):
        assert (tmp_path / "try" / "lock").read_text() == str(os.getpid())


def test_the_drafts_of_dead_processes_are_swept_and_no_others(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    draft = tmp_path / "models" / f"tiny-0123456789abcdef.{dead.pid}.tmp"
    draft.mkdir(parents=True)
    (draft / "model.safetensors").write_text("torn")
    model = "0123abcd-0123-abcd-0123-0123456789ab"
    (tmp_path / "models" / f"{model}.{dead.pid}.tmp").mkdir()
    (tmp_path / "models" / model).mkdir()
    (tmp_path / "models" / f"{model}.{os.getpid()}.tmp").mkdir()
    kept = [
        f"store.snapshot.{os.getpid()}.tmp",
        *("notes.of.mine.tmp", "store.duckdb", "notes.tmp", f"thesis.{dead.pid}.tmp"),
        *(f"other.{dead.pid}.tmp", "store.99999999999999999999.tmp", "store.².tmp"),
    ]
    for name in [*kept, f"store.snapshot.{dead.pid}.tmp", f"store.{dead.pid}.tmp"]:
        (tmp_path / name).write_text("")
    sweep(Store(tmp_path / "store.duckdb"))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, "models"])
    left = sorted(path.name for path in (tmp_path / "models").iterdir())
    assert left == [model, f"{model}.{os.getpid()}.tmp"]
