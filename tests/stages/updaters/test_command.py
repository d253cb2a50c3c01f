# SPDX-License-Identifier: Apache-2.0
"""`command`: what it hands over, what it takes back, and how it ends what it started."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from transformers import AutoModelForCausalLM

from stages import ids
from stages.errors import UpdaterError
from stages.policies.checkpoint import is_complete, model_id_of
from stages.settings import identity
from stages.update import update
from stages.updaters import Item, Plan, Trained, command
from stages.updaters.command_files import Metrics, write_rows
from stages.updaters.training import last_loss

SCRIPTS = Path(__file__).parent / "scripts"
NUDGE = (
    sys.executable, str(SCRIPTS / "nudge.py"), "--data={data}", "--init", "{start}", "--out",
    "{out}", "--work={work}", "--steps", "{steps}", "--seed", "{seed}",
)  # fmt: skip
TEXTS = ("1+2", "=3", "=4")
ITEMS = [
    Item(
        ids.mint("i", n), (1, 5, 6 + n), (7, 8 + n, 2), (False, True, True), reward=n / 4,
        reference=(-1.5 - n,), texts=TEXTS[:2],
    )
    for n in range(4)
]  # fmt: skip
PAIRS = [
    replace(item, loss_mask=None, rejected_ids=(9,), reference=(-1.0, -2.0), texts=TEXTS)
    for item in ITEMS
]


def a_config(do: str = "train", **more: Any) -> command.Config:
    return command.Config(**{"type": "command", "command": (*NUDGE, "--do", do), **more})


def train(
    init: Path, place: Path, do: str = "train", items: list[Item] = ITEMS, **more: Any
) -> Trained:
    plan = Plan(3, 5, init, place / "work", place / "draft")
    return a_config(do, **more).build().update(items, plan, lambda step, loss: None)


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def pids_in(work: Path) -> list[int]:
    """The processes that `linger` said it has, once it has said so."""
    path = work / "kept" / "pids"
    for _ in range(300):
        if path.exists():
            return [int(pid) for pid in path.read_text().split()]
        time.sleep(0.1)
    raise AssertionError("the command did not start")


def all_gone(pids: list[int]) -> bool:
    for _ in range(100):
        if not any(map(alive, pids)):
            return True
        time.sleep(0.1)
    return False


# What is written for it.


def read(path: Path) -> list[dict[str, Any]]:
    sys.path.insert(0, str(SCRIPTS))
    try:
        import nudge

        return nudge.read(path)
    finally:
        sys.path.remove(str(SCRIPTS))


@pytest.mark.parametrize("format_", ["parquet", "jsonl", "datasets"])
def test_a_completion_is_a_row_of_text_tokens_and_numbers(tmp_path: Path, format_: Any) -> None:
    rows = read(write_rows(ITEMS, "rollout", format_, tmp_path))
    assert len(rows) == len(ITEMS)
    assert rows[1] == {
        "training_row_id": str(ITEMS[1].training_row_id),
        "prompt": "1+2",
        "completion": "=3",
        "prompt_ids": [1, 5, 7],
        "completion_ids": [7, 9, 2],
        "loss_mask": [False, True, True],
        "reward": 0.25,
        "reference_completion_logprob": -2.5,
    }


@pytest.mark.parametrize("format_", ["parquet", "jsonl", "datasets"])
def test_a_pair_is_a_row_with_both_answers(tmp_path: Path, format_: Any) -> None:
    assert read(write_rows(PAIRS, "pair", format_, tmp_path))[0] == {
        "training_row_id": str(ITEMS[0].training_row_id),
        "prompt": "1+2",
        "chosen": "=3",
        "rejected": "=4",
        "prompt_ids": [1, 5, 6],
        "chosen_ids": [7, 8, 2],
        "rejected_ids": [9],
        "reference_chosen_logprob": -1.0,
        "reference_rejected_logprob": -2.0,
    }


def test_without_a_mask_loss_is_on_the_whole_completion(tmp_path: Path) -> None:
    bare = [replace(item, loss_mask=None, reward=None, reference=()) for item in ITEMS]
    row = read(write_rows(bare, "sft", "jsonl", tmp_path))[0]
    assert row["loss_mask"] == [True, True, True] and row["reward"] is None
    assert "reference_completion_logprob" not in row


# What the config allows.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["x", "{data}", "{outt}"], r"command has \{outt\}, which nothing fills in"),
        (["x", "{data}"], r"command has no \{out\}: hand it over, its checkpoint"),
        (["x", "{out}"], r"command has no \{data\}: hand it over, its rows"),
        (["x", "{data}{out}", "{reference}"], "uses_reference is false: set it to true"),
        ([], "at least 1 item"),
        ("train.py {data} {out}", "is one text, and no shell reads it: write a list"),
    ],
)
def test_a_command_that_cannot_work_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        command.Config.model_validate({"type": "command", "command": given})


def test_a_list_with_other_braces_is_a_command() -> None:
    given = ["x", "{data}", "--out={out}", '{"lr": 1}']
    config = command.Config.model_validate({"type": "command", "command": given})
    assert config.command == tuple(given) and config.rows == "sft"
    assert not config.needs_reference and a_config(uses_reference=True).needs_reference


def test_the_time_limit_alone_is_operational() -> None:
    assert identity(a_config(timeout_s=3.0)) == identity(a_config())
    assert {"command", "format", "rows", "uses_reference"} <= identity(a_config()).keys()


# What comes back.


def test_it_leaves_a_checkpoint_with_the_starts_tokenizer_and_nothing_else(
    tiny_folder: Path, tmp_path: Path
) -> None:
    train(tiny_folder, tmp_path, "own tokenizer")
    draft = tmp_path / "draft"
    assert {path.name for path in draft.iterdir()} == {
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
        "chat_template.jinja",
    }  # fmt: skip
    assert (draft / "tokenizer.json").read_bytes() == (tiny_folder / "tokenizer.json").read_bytes()
    AutoModelForCausalLM.from_pretrained(draft, local_files_only=True)


def test_what_it_measured_is_the_series(tiny_folder: Path, tmp_path: Path) -> None:
    said: list[tuple[int, float | None]] = []
    plan = Plan(20, 5, tiny_folder, tmp_path / "work", tmp_path / "draft")
    trained = a_config().build().update(ITEMS, plan, lambda *step: said.append(step))
    assert [(step, name) for step, name, _ in trained.series] == [(n, "loss") for n in range(1, 21)]
    assert said == [(step, value) for step, _, value in trained.series]
    assert trained.loss == last_loss(trained.series)
    assert trained.loss == pytest.approx(sum(v for s, _, v in trained.series if s > 18) / 2)


def test_lines_are_read_as_they_come_and_a_last_one_without_its_end_counts(tmp_path: Path) -> None:
    said: list[tuple[int, float | None]] = []
    metrics = Metrics(tmp_path, 9, lambda *step: said.append(step))
    metrics.read()
    with (tmp_path / "metrics.jsonl").open("w", buffering=1) as file:
        file.write('{"step": 1, "loss": 2.0}\n{"step": 2, "lo')
        file.flush()
        metrics.read()
        assert said == [(1, 2.0)]
        file.write('ss": 1.5}\n\n{"step": 2, "loss": 1.25}')
    metrics.read()
    assert said == [(1, 2.0), (2, 1.5)]
    metrics.read(ended=True)
    metrics.read(ended=True)
    assert metrics.series == [(1, "loss", 2.0), (2, "loss", 1.25)]


def test_every_row_is_visited_once_unless_it_says_otherwise(
    tiny_folder: Path, tmp_path: Path
) -> None:
    trained = train(tiny_folder, tmp_path / "a", "no visits")
    assert trained.visits == {item.training_row_id: 1 for item in ITEMS}
    assert (trained.series, trained.loss, trained.steps_done) == ([], None, 3)
    trained = train(tiny_folder, tmp_path / "b", "one visited")
    assert trained.visits == {item.training_row_id: 0 if n else 3 for n, item in enumerate(ITEMS)}


@pytest.mark.parametrize(
    ("do", "message"),
    [
        ("fail", r"ended with status 1: mend it and run again.*the disk \| is full"),
        ("die", r"ended with signal 6 \(SIGABRT\)"),
        ("nothing", r"config.json is missing.*it holds notes.txt; its log is .*to nothing"),
        ("no config", r"config.json is missing.*it holds metrics.jsonl, model.safetensors, vis"),
        ("adapter", "is an adapter: merge it into the start"),
        ("torn", r"has torn weights \(.*\): save them whole"),
        ("untrained", "has the start's own weights, none has changed"),
        ("halved", "has the start's own weights, none has changed"),
        ("renamed", r"none of the start's weights by name \(it has module\."),
        ("partial", "lacks the start's .*: save the whole trained model with save_pretrained"),
        ("reshaped", r"has model\..* of shape \[.*\], the start \["),
        ("added", "has model.new.weight, which the start has not"),
        ("deeper", "has num_hidden_layers 2 in its config.json, the start 1"),
        ("broken config", "has a broken config.json"),
        ("strange visits", r"visits.json has 'nobody: 1': write one object"),
        ("half visits", r"visits.json has '.*: 2.5': write one object"),
        ("bad metrics", r"metrics.jsonl line 1 is b'loss 0.5': write one object"),
        ("too many", r"line 1: step is 4, of 3 planned: count optimizer steps from 1"),
    ],
)
def test_what_is_no_result_is_an_error_that_says_so(
    tiny_folder: Path, tmp_path: Path, do: str, message: str
) -> None:
    with pytest.raises(UpdaterError, match=f"(?s){message}") as caught:
        train(tiny_folder, tmp_path, do)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "draft").exists()
    assert f"to {do}" in (tmp_path / "work" / "command.log").read_text()


def test_a_command_that_writes_into_its_start_is_found_out(
    tiny_folder: Path, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    shutil.copytree(tiny_folder, start)
    with pytest.raises(
        UpdaterError, match=r"it changed model.safetensors in .*start, which it may"
    ):
        train(start, tmp_path, "over the start")


def test_weights_that_are_no_numbers_are_no_checkpoint(tiny_folder: Path, tmp_path: Path) -> None:
    plan = Plan(3, 5, tiny_folder, tmp_path / "work", tmp_path / "draft")
    updater = a_config("no numbers").build()
    with pytest.raises(UpdaterError, match=r"command came to weights that are no numbers \(model"):
        update(ITEMS, updater, plan, tmp_path / "models", lambda step, loss: None)
    assert not (tmp_path / "models").exists()


def test_text_that_is_no_unicode_is_written_all_the_same(tmp_path: Path) -> None:
    item = replace(ITEMS[0], texts=("\ud800", "=3"))
    (row,) = read(write_rows([item], "sft", "jsonl", tmp_path))
    assert row["prompt"] == "\ud800"


def test_a_program_that_is_not_there_is_an_error(tiny_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UpdaterError, match="command: 'no-such-trainer' is not found: give"):
        train(tiny_folder, tmp_path, command=("no-such-trainer", "{data}", "{out}"))


def test_it_starts_again_with_its_own_folder_as_it_left_it(
    tiny_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(UpdaterError, match="ended with status 1"):
        train(tiny_folder, tmp_path, "resume")
    assert (tmp_path / "work" / "out" / "model.safetensors").exists()
    train(tiny_folder, tmp_path, "resume")
    assert (tmp_path / "work" / "kept" / "times").read_text() == "onceagain"
    assert (tmp_path / "work" / "command.log").read_text() == "to resume\nto resume\n"


# How it ends.


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(
    tiny_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(UpdaterError, match=r"timeout_s: the command was ended after 3 s: raise"):
        train(tiny_folder, tmp_path, "linger", timeout_s=3.0)
    assert all_gone(pids_in(tmp_path / "work"))


RUN = """
import json, signal, sys
from pathlib import Path
from stages import ids
from stages.updaters import Item, Plan, command
signal.signal(signal.SIGINT, signal.default_int_handler)
config = command.Config(type="command", command=json.loads(sys.argv[1]))
plan = Plan(3, 5, Path(sys.argv[2]), Path(sys.argv[3]) / "work", Path(sys.argv[3]) / "draft")
item = Item(ids.mint("i", 0), (1,), (2,), texts=("1", "2"))
config.build().update([item], plan, lambda step, loss: None)
"""


@pytest.fixture
def running(tiny_folder: Path, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """An update whose command lingers, in a process of its own."""
    command_line = json.dumps(a_config("linger").command)
    child = subprocess.Popen(
        [sys.executable, "-c", RUN, command_line, str(tiny_folder), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        stderr=subprocess.DEVNULL,
    )
    yield child
    child.kill()
    child.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_an_update_that_is_stopped(
    running: "subprocess.Popen[bytes]", tmp_path: Path, number: signal.Signals
) -> None:
    pids = pids_in(tmp_path / "work")
    assert all(map(alive, pids))
    os.kill(running.pid, number)
    running.wait(30)
    assert all_gone(pids)


# Trainers as people have them.

EXAMPLES = [
    replace(item, texts=(f"{n}+{n}\n", f"{2 * n};#{2 * n}"), loss_mask=None)
    for n, item in enumerate(ITEMS)
]


def published(init: Path, place: Path, config: command.Config) -> tuple[Path, Trained]:
    plan = Plan(3, 5, init, place / "work", place / "draft")
    return update(EXAMPLES, config.build(), plan, place / "models", lambda step, loss: None)


@pytest.mark.slow
def test_a_bare_trl_script_is_an_updater(tiny_folder: Path, tmp_path: Path) -> None:
    script = (sys.executable, str(SCRIPTS / "trl_sft.py"), *NUDGE[2:])
    config = a_config(command=script, format="datasets")
    folder, trained = published(tiny_folder, tmp_path, config)
    assert is_complete(folder) and model_id_of(folder) != model_id_of(tiny_folder)
    losses = [value for _, name, value in trained.series if name == "loss"]
    assert len(losses) == 3 and losses[2] < losses[0]


ACCELERATE = (
    sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1",
    "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no",
)  # fmt: skip
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "processes"), [(ACCELERATE, 1), ((*TORCHRUN, "2"), 2)], ids=["accelerate", "torch"]
)
def test_a_launcher_starts_an_updater_of_one_process_or_more(
    tiny_folder: Path, tmp_path: Path, launcher: tuple[str, ...], processes: int
) -> None:
    script = (
        str(SCRIPTS / "accelerated.py"), "--data={data}", "--init={start}", "--out={out}",
        "--steps={steps}",
    )  # fmt: skip
    config = a_config(command=(*launcher, *script))
    folder, trained = published(tiny_folder, tmp_path, config)
    assert is_complete(folder) and model_id_of(folder) != model_id_of(tiny_folder)
    assert [step for step, _, _ in trained.series] == [1, 2, 3]
    log = (tmp_path / "work" / "command.log").read_text()
    done = [f"process {place} of {processes} is done" in log for place in range(processes)]
    assert all(done) and log.count("is done") == processes


@pytest.mark.slow
def test_workers_that_lead_sessions_of_their_own_are_ended_too(
    tiny_folder: Path, tmp_path: Path
) -> None:
    launched = (*TORCHRUN, "1", *NUDGE[1:], "--do", "linger")
    with pytest.raises(UpdaterError, match="timeout_s: the command was ended"):
        train(tiny_folder, tmp_path, command=launched, timeout_s=40.0)
    worker, _ = pids_in(tmp_path / "work")
    assert all_gone([worker])
