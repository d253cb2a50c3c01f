# SPDX-License-Identifier: Apache-2.0
"""`starloop import`: a run of its own, once, and nothing where something is wrong."""

import hashlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running import Ended, ask, contents

sys.path.append(str(Path(__file__).resolve().parents[1] / "stages" / "imports"))

from import_files import SAMPLES, episode, jsonl, parquet, trace

Command = Callable[..., Ended]
IDS = [{"prompt": "1+1=", "prompt_token_ids": [1, 2], "completion": c, "token_ids": [3, n],
        "answer": "2", "reward": float(c == "2"), "colour": "red"}
       for n, c in enumerate(["2", "3"])]  # fmt: skip


class Importing:
    """Imports into one store, with options that most tests share."""

    def __init__(self, command: Command, folder: Path) -> None:
        self.command, self.folder = command, folder
        self.store = folder / "runs" / "store.duckdb"

    def file(self, *records: dict[str, Any], name: str = "mine.jsonl") -> Path:
        return jsonl(self.folder / name, records or IDS)

    def __call__(self, *files: Path, **options: Any) -> Ended:
        given = {"as": "rollouts", "format": "jsonl", "origin": "teacher", "task": "sums"}
        given |= {"store": self.store, **options}
        words = [
            word
            for name, value in given.items()
            if value is not None
            for one in (value if isinstance(value, list) else [value])
            for word in (f"--{name.replace('_', '-')}", one)
        ]
        return self.command("import", *files, *words)

    def ask(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return ask(self.store, sql, *values)


@pytest.fixture
def importing(command: Command, tmp_path: Path) -> Importing:
    return Importing(command, tmp_path)


def test_an_import_is_a_run_with_one_step_and_says_what_it_left_out(importing: Importing) -> None:
    ended = importing(importing.file(), correct_at=0.5)
    assert ended.code == 0, ended.err
    assert ended.out.splitlines() == [
        "run mine: imported rollouts: 1 problem, 2 trajectories, 1 correct, 1 wrong",
        "columns not mapped: colour",
        "no column tells whether a completion was cut off; taken as finished: 2",
    ]
    (run,) = importing.ask("select name, recipe, identity, config from run")
    content = hashlib.sha256((importing.folder / "mine.jsonl").read_bytes()).hexdigest()
    assert run[:2] == ("mine", "import")
    assert json.loads(run[2])["files"] == [content]
    assert json.loads(run[3])["files"] == [{"name": "mine.jsonl", "sha256": content}]
    assert importing.ask("select run, round, step, reused from step_run") == [
        ("mine", 0, "import", False)
    ]
    assert importing.ask(
        "select kind, count(*), bool_or(reused), bool_and(first) from step_output group by kind "
        "order by kind"
    ) == [("problem", 1, False, True), ("trajectory", 2, False, True), ("verdict", 2, False, True)]
    ((detail,),) = importing.ask("select detail from event where kind = 'imported'")
    assert json.loads(detail)["columns"] == ["colour"]
    assert importing.ask(
        "select f.origin, f.purpose, t.model_id, t.sampling_id, status, why from trajectory_fate f "
        "join trajectory t using (trajectory_id) order by f.completion"
    ) == [(*("teacher", "train"), None, None, s, "undecided") for s in ("correct", "wrong")]


def test_the_same_import_twice_changes_nothing(importing: Importing) -> None:
    path = importing.file()
    assert importing(path).code == 0
    before = contents(importing.store)
    again = importing(path, name="other")
    assert (again.code, again.out) == (0, "imported already as run mine: nothing was changed\n")
    assert contents(importing.store) == before


@pytest.mark.parametrize("change", [{"correct_at": 0.5}, {"origin": "human"}, {"task": "other"}])
def test_a_name_with_other_content_or_options_is_refused(
    importing: Importing, change: dict[str, Any]
) -> None:
    path = importing.file()
    importing(path)
    before = contents(importing.store)
    ended = importing(path, **change)
    assert ended.code == 2
    assert "--name: mine is an import of other files or options" in ended.err
    assert contents(importing.store) == before
    assert importing(path, name="second", **change).code == 0


def test_the_same_file_with_a_threshold_adds_verdicts_to_the_same_slots(
    importing: Importing,
) -> None:
    path = importing.file()
    importing(path)
    importing(path, correct_at=1, name="judged")
    assert importing.ask("select count(*) from trajectory") == [(2,)]
    assert importing.ask("select count(*) from verdict") == [(2,)]
    assert importing.ask(
        "select distinct reused from step_output where run = 'judged' and kind = 'trajectory'"
    ) == [(True,)]


def test_every_format_goes_all_the_way(importing: Importing, tiny_folder: Path) -> None:
    for format_, records in SAMPLES.items():
        path = importing.file(*records, name=f"{format_}.jsonl")
        ended = importing(path, format=format_, correct_at=0.5, tokenizer=tiny_folder)
        assert ended.code == 0, ended.err
    found = importing.ask(
        "select run, count(distinct group_id), count(*) from trajectory_fate "
        "join trajectory using (trajectory_id) group by run order by run"
    )
    assert found == [(run, 1, 2) for run in sorted(SAMPLES)]


def test_several_files_are_one_run(importing: Importing) -> None:
    one = importing.file(IDS[0], name="one.jsonl")
    two = parquet(importing.folder / "two.parquet", [IDS[1]])
    ended = importing(one, two, name="both")
    assert ended.code == 0, ended.err
    assert importing.ask("select count(*) from trajectory") == [(2,)]
    same = importing(one, importing.file(IDS[0], name="copy.jsonl"), name="same")
    assert same.code == 2
    assert "copy.jsonl has the same content as" in same.err


def test_pairs_are_a_training_set(importing: Importing, tiny_folder: Path) -> None:
    path = importing.file({"prompt": "1+1=", "chosen": "2", "rejected": "3"})
    ended = importing(path, **{"as": "pairs", "tokenizer": tiny_folder})
    assert ended.code == 0, ended.err
    assert importing.ask(
        "select r.kind, x.role, t.completion from step_output s "
        "join training_row r on r.training_set_id = s.id "
        "join training_row_trajectory x using (training_set_id, training_row_id) "
        "join trajectory t using (trajectory_id) order by x.role"
    ) == [("pair", "chosen", "2"), ("pair", "rejected", "3")]


def test_problems_need_no_origin_and_no_tokens(importing: Importing) -> None:
    path = importing.file({"prompt": "1+1=", "gold": 2}, {"prompt": "2+2=", "gold": None})
    ended = importing(path, **{"as": "problems", "origin": None, "map": "answer=gold"})
    assert ended.code == 0, ended.err
    assert "rows left out, no answer: 1 (mine.jsonl, line 2)" in ended.out
    assert importing.ask("select task, split, question, answer from problem") == [
        ("sums", "train", "1+1=", "2")
    ]


def test_a_problem_under_another_split_keeps_it_and_is_told(importing: Importing) -> None:
    path = importing.file({"prompt": "1+1=", "answer": "2"})
    importing(path, **{"as": "problems", "split": "dev"})
    ended = importing(importing.file(*IDS, name="train.jsonl"))
    assert "in the store under another split than train, and kept there: 1 problem" in ended.out
    assert importing.ask("select split from problem") == [("dev",)]


def test_status_report_and_samples_read_an_import(importing: Importing) -> None:
    importing(importing.file(), correct_at=0.5)
    importing(importing.file({"prompt": "\x1b[2J", "answer": "2"}, name="asked.jsonl"),
              **{"as": "problems"})  # fmt: skip
    store = ("--store", importing.store)
    status = importing.command("status", *store)
    assert re.search(r"^mine +import +– +imported", status.out, re.M)
    report = importing.command("report", "mine", "asked", *store)
    assert report.code == 0, report.err
    assert "Imported as rollouts from mine.jsonl, format jsonl, task sums" in report.out
    samples = importing.command("samples", "mine", *store)
    assert "verdict     correct (reward_reached) → not decided yet" in samples.out
    assert "holds no trajectory" in importing.command("samples", "asked", *store).err
    assert importing.command("sql", "from round_summary", *store).code == 0
    assert "\x1b" not in status.out + report.out + samples.out


def test_a_run_cannot_go_on_with_an_import(importing: Importing) -> None:
    importing(importing.file())
    ended = importing.command(
        "run", "configs/tiny/try.yaml", "--name", "mine", "--store", importing.store
    )
    assert ended.code == 2
    assert "--name: mine is an import in this store" in ended.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"format": "verll"}, "--format: 'verll' is unknown; allowed: trl, verl, prime-rl, jsonl; "
                              "did you mean 'verl'?"),
        ({"as": "rollout"}, "--as: 'rollout' is unknown; allowed: rollouts, demonstrations, "
                            "problems, pairs; did you mean 'rollouts'?"),
        ({"origin": None}, "--origin is missing: say who wrote the completions"),
        ({"origin": "seed"}, "--origin: 'seed' is unknown; allowed: human, teacher, outside, self"),
        ({"split": "trian"}, "did you mean 'train'?"),
        ({"map": "answr=gold"}, "--map: 'answr' is unknown; allowed: prompt"),
        ({"map": "answr=gold"}, "did you mean 'answer'?"),
        ({"map": "answer"}, "--map: 'answer' is not FIELD=COLUMN"),
        ({"map": "weight=w"}, "--map: 'weight' is no field of rollouts"),
        ({"format": "verl", "as": "pairs"}, "--as: verl files hold no pairs"),
        ({"correct_at": "nan"}, "--correct-at: nan is not allowed"),
        ({"name": "../x"}, "--name: '../x' is not allowed"),
        ({"task": " "}, "--task: an empty name"),
        ({"tokenizer": "/none"}, "--tokenizer: /none is no folder"),
    ],
)  # fmt: skip
def test_a_bad_option_is_one_line_and_stores_nothing(
    importing: Importing, options: dict[str, Any], said: str
) -> None:
    ended = importing(importing.file(), **options)
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert not importing.store.exists()


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (
            [IDS[0], {**IDS[0], "completion": 7}],
            "mine.jsonl, line 2, column 'completion': a number",
        ),
        ([IDS[0], {**IDS[0], "completion": "\ud83d"}], "a lone surrogate (\\ud83d) is no text"),
        ([{"prompt": "a", "completion": "b"}], "line 1: no token ids for the prompt"),
        ([{**IDS[0], "prompt": None}], "no row can be taken in (no prompt)"),
        ([{"text": "a"}], "rollouts need prompt"),
    ],
)
def test_a_bad_file_is_one_line_and_changes_nothing(
    importing: Importing, records: list[dict[str, Any]], said: str
) -> None:
    assert importing(importing.file(name="good.jsonl")).code == 0
    before = contents(importing.store)
    ended = importing(importing.file(*records))
    assert ended.code in (1, 2)
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert contents(importing.store) == before


def test_hostile_text_reaches_the_store_whole_and_the_screen_made_visible(
    importing: Importing,
) -> None:
    hostile = "\x00\x1b[2J'; drop table run; --\r\n\u2028🙂" + "x" * 1_000_000
    records = [{**IDS[0], "prompt": hostile, "completion": hostile, "\x1b[31mred": 1}]
    ended = importing(importing.file(*records))
    assert ended.code == 0, ended.err
    assert "\x1b" not in ended.out
    found = importing.ask(
        "select p.text, t.completion from trajectory t join prompt p using (prompt_id)"
    )
    assert found == [(hostile, hostile)]


def test_a_trace_of_prime_rl_needs_no_tokenizer(importing: Importing) -> None:
    path = importing.file(episode(trace(), trace(stop_condition="error")), name="traces.jsonl")
    ended = importing(path, format="prime-rl", correct_at=2)
    assert ended.code == 0, ended.err
    assert "rows left out, the trace ended with an error: 1 (traces.jsonl, line 1)" in ended.out
    assert importing.ask("select token_ids, logprobs from trajectory") == [
        ([10, 11], [-0.5, -0.25])
    ]
    assert importing.ask("select p.token_ids, status, score from prompt p, verdict") == [
        ([7, 8, 9], "correct", 2.5)
    ]
    assert importing.ask(
        "select component, value, weight from verdict_component order by component"
    ) == [("right", 1.0, 2.0), ("short", 0.5, 1.0), ("turns", 1.0, 0.0)]
