# SPDX-License-Identifier: Apache-2.0
"""A fault of the user's is one line that helps, an exit code, and nothing half-written."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from running import TRY, Ended, contents, starloop

from configs.load import load
from flows import steps
from flows.context import Round, Run
from flows.screen import Screen
from stages import ids
from stages.policies.checkpoint import model_id_of
from stages.settings import canonical
from store.db import Store

Command = Callable[..., Ended]

BAD_RUNS = {
    "unknown key": (["sede=1"], "sede: unknown key (value 1); did you mean 'seed'?"),
    "unknown key below": (["mix.seed_row=1"], "mix.seed_row: unknown key (value 1); did you mean"),
    "wrong type": (["seed=abc"], "seed: 'abc' is not allowed; input should be a valid integer"),
    "a section": (["mix=3"], "mix: 3 is not allowed; write a section with keys below it"),
    "out of range": (["sampler.skill=2"], "sampler.skill: 2 is not allowed; input should be less"),
    "no rounds": (["--rounds", "0"], "rounds: 0 is not allowed; input should be greater than"),
    "unknown part": (["verifier.type=exakt"], "verifier.type: 'exakt' is unknown; allowed: exact"),
    "not built": (
        ["verifier.type=code"],
        "verifier.type: 'code' is not built yet (it needs",
    ),
    "contradiction": (["evaluate.k=99"], "k is 99, n is 8: pass@k needs at least k samples"),
    "recipe": (["recipe=rejection"], "rationalize.enabled is true, but recipe rejection never"),
    "no value": (["seed"], "'seed' is not key=value"),
    "no YAML": (["seed=[1"], "seed: '[1' is not a YAML value"),
    "slash in name": (["--name", "a/b"], "--name: 'a/b' is not allowed"),
    "dots as name": (["--name", ".."], "--name: '..' is not allowed"),
    "taken name": (["--name", "models"], "--name: 'models' is not allowed"),
}


def one_line(ended: Ended, code: int) -> str:
    """The one line of an error, checked to be one."""
    assert (ended.code, ended.out) == (code, "")
    (line,) = ended.err.splitlines()
    assert line.startswith("starloop: ")
    return line


@pytest.mark.parametrize("fault", BAD_RUNS)
def test_a_config_that_cannot_be_used_is_one_line_and_leaves_no_file(
    command: Command, tmp_path: Path, fault: str
) -> None:
    arguments, message = BAD_RUNS[fault]
    store = tmp_path / "runs" / "store.duckdb"
    line = one_line(command("run", TRY, *arguments, "--store", store), 2)
    assert message in line
    assert not store.parent.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is not a file"),
        ("- a\n- list\n", "holds list, not keys and values"),
        ("recipe: [star\n", "is not YAML"),
        ("", "holds NoneType, not keys and values"),
        ("recipe: star\n", "missing; it has no default, add it to the config"),
    ],
)
def test_a_config_file_that_cannot_be_read_is_named(
    command: Command, tmp_path: Path, text: str | None, message: str
) -> None:
    config = tmp_path / "mine.yaml"
    if text is not None:
        config.write_text(text)
    line = one_line(command("run", config, "--store", tmp_path / "runs" / "store.duckdb"), 2)
    assert message in line
    assert not (tmp_path / "runs").exists()


def test_a_config_file_with_a_slip_in_its_name_is_guessed(command: Command, tmp_path: Path) -> None:
    line = one_line(command("run", TRY.with_name("tri.yaml"), "--store", tmp_path / "s.duckdb"), 2)
    assert f"did you mean {TRY}?" in line


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ("tokenizer.json", "has no tokenizer.json: save the tokenizer into the folder"),
        ("config.json", "is no checkpoint folder (config.json is missing)"),
        ("model.safetensors", "has no *.safetensors"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_policy_folder_that_lacks_a_file_is_refused_before_anything_is_written(
    command: Command, tmp_path: Path, tiny_folder: Path, left_out: str, message: str
) -> None:
    policy = shutil.copytree(tiny_folder, tmp_path / "policy")
    (policy / left_out).unlink()
    store = tmp_path / "runs" / "store.duckdb"
    given = f"policy={{type: folder, path: {policy}}}"
    ended = command("run", TRY, given, "--store", store)
    assert ended.code == 2
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1
    assert [path.name for path in store.parent.glob("[!.]*")] == []


def test_a_store_that_is_not_duckdb_is_refused_and_left_alone(
    command: Command, tmp_path: Path
) -> None:
    store = tmp_path / "notes.txt"
    store.write_text("my notes\n" * 1000)
    line = one_line(command("run", TRY, "--store", store), 1)
    assert f"store {store} is not a DuckDB file: name another" in line
    assert store.read_text() == "my notes\n" * 1000


def test_a_store_below_a_file_is_refused_in_one_line(command: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("my notes\n")
    store = tmp_path / "notes.txt" / "store.duckdb"
    line = one_line(command("run", TRY, "--store", store), 2)
    assert str(store) in line


@pytest.mark.parametrize("name", ["status", "report", "samples", "lineage", "sql"])
def test_every_reading_command_says_that_there_is_no_store(
    command: Command, tmp_path: Path, name: str
) -> None:
    store = tmp_path / "none" / "store.duckdb"
    given = ["select 1"] if name == "sql" else []
    line = one_line(command(name, *given, "--store", store), 1)
    assert f"there is no store at {store}: start a run first" in line
    assert not store.parent.exists()


@pytest.mark.parametrize("name", ["report", "samples", "lineage mix", "lineage problems"])
def test_an_unknown_run_is_named_with_those_that_there_are(
    command: Command, finished: Path, name: str
) -> None:
    line = one_line(command(*name.split(), "tyr", "--store", finished), 2)
    assert "run 'tyr' is not in the store; runs: try; did you mean 'try'?" in line


@pytest.mark.parametrize("sql", ["drop table run", "select 1; select 2", "selekt", ""])
def test_sql_that_does_not_read_is_refused_and_changes_nothing(
    command: Command, finished: Path, sql: str
) -> None:
    before = contents(finished)
    assert one_line(command("sql", sql, "--store", finished), 2).startswith("starloop: sql: ")
    assert contents(finished) == before


@pytest.mark.parametrize(
    "arguments", [["run"], ["nothing"], ["run", TRY, "--rounds", "two"], ["sql", "x", "-f", "xml"]]
)
def test_wrong_usage_exits_with_2_and_no_traceback(command: Command, arguments: list[str]) -> None:
    ended = command(*arguments)
    assert ended.code == 2
    assert "Usage: " in ended.err
    assert "Traceback" not in ended.err


def test_debug_shows_the_traceback_and_keeps_the_exit_code(tmp_path: Path) -> None:
    plain = starloop("run", TRY, "sede=1", "--store", tmp_path / "s.duckdb")
    debug = starloop("--debug", "run", TRY, "sede=1", "--store", tmp_path / "s.duckdb")
    assert "Traceback" not in plain.err
    assert "Traceback" in debug.err
    assert "ConfigError: sede: unknown key" in debug.err
    assert (plain.code, debug.code) == (2, 2)


def test_a_run_whose_policy_folder_has_changed_is_refused(
    command: Callable[..., Ended], tiny_folder: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "policy"
    shutil.copytree(tiny_folder, policy)
    store = Store(tmp_path / "runs" / "store.duckdb")
    store.create()
    config = load(TRY, [f"policy={{type: folder, path: {policy}}}"])
    run = Run("try", ids.run_id("try"), config, store, Screen(Console(quiet=True)))
    base = model_id_of(policy)
    with store.transaction() as tx:
        tx.append(
            "begin_run", run_id=run.run_id, name="try", recipe="star",
            config=canonical(config.model_dump(mode="json")), identity="", manifest="{}",
            forked_from=None, forked_at_round=None,
        )  # fmt: skip
    steps.setup.fn(Round(run, 0, base, base))
    settings = json.loads((policy / "config.json").read_text())
    (policy / "config.json").write_text(json.dumps({**settings, "rope_theta": 1.0}))
    ended = command("run", TRY, f"policy={{type: folder, path: {policy}}}", "--store", store.path)
    assert ended.code == 2
    assert f"policy: run try began with base {base}, and the policy is now" in ended.err


def test_what_an_error_quotes_cannot_move_the_cursor(
    command: Callable[..., Ended], copied: Path
) -> None:
    ended = command("sql", "select error(chr(27) || '[31mred')", "--store", copied)
    assert ended.code == 2
    assert "\x1b" not in ended.err and "\\x1b[31mred" in ended.err


@pytest.mark.parametrize("name", ["x.tmp", "store.duckdb", "a.wal", "models"])
def test_a_name_that_would_stand_in_the_stores_way_is_refused(
    command: Callable[..., Ended], name: str, tmp_path: Path
) -> None:
    ended = command("run", TRY, "--name", name, "--store", tmp_path / "store.duckdb")
    assert (ended.code, list(tmp_path.iterdir())) == (2, [])
    assert f"--name: '{name}' is not allowed" in ended.err


def test_a_trainer_that_is_not_there_is_refused_before_anything_is_sampled(
    command: Command, tmp_path: Path
) -> None:
    updater = "update.updater={type: command, command: [no-such-trainer, '{data}', '{out}']}"
    ended = command("run", TRY, updater, "--store", tmp_path / "runs" / "store.duckdb")
    assert (ended.code, ended.out, len(ended.err.splitlines())) == (2, "", 1)
    assert "update.updater.command: 'no-such-trainer' is not found: give a program" in ended.err
    assert not (tmp_path / "runs" / "store.duckdb").exists()
