# SPDX-License-Identifier: Apache-2.0
"""What every import format does, and what each one does with its own files."""

from pathlib import Path
from typing import Any

import pytest
from import_files import SAMPLES, Records, episode, jsonl, node, parquet, read, trace

from stages import imports
from stages.errors import ConfigError, TaskDataError
from stages.imports import FORMATS, Message, Said
from stages.imports.columns import FIELDS

HELPERS = {"__init__", "base", "columns", "files", "taking", "values"}


@pytest.fixture(params=sorted(FORMATS))
def format_(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_every_format_file_is_listed_under_its_name() -> None:
    folder = Path(imports.__file__ or "").parent
    names = {path.stem for path in folder.glob("*.py")} - HELPERS
    assert {name.replace("_", "-") for name in names} == set(FORMATS)
    assert all(part.name == name for name, part in FORMATS.items())


def test_every_format_has_a_sample(format_: str) -> None:
    assert SAMPLES[format_]


@pytest.mark.parametrize("write", [jsonl, parquet])
def test_jsonl_and_parquet_of_the_same_records_are_read_alike(
    format_: str, write: Any, tmp_path: Path
) -> None:
    records = SAMPLES[format_]
    if write is parquet and format_ == "prime-rl":
        records = [{"prompt": "1+1=", "completion": "2", "reward": 1.0, "metrics": {"a": 1.0}}]
    plain = read(jsonl(tmp_path / "a.jsonl", records), format_)
    found = read(write(tmp_path / "b.bin", records), format_)
    assert found == plain
    assert len(found.rows) == len(records)


def test_every_format_gives_prompt_completion_score_and_group(format_: str, tmp_path: Path) -> None:
    first, second = read(jsonl(tmp_path / "a.jsonl", SAMPLES[format_]), format_).rows
    assert (first.line, second.line) == (1, 2)
    assert first.said[0].text == "2"
    assert first.score is not None
    assert first.group == second.group is not None


def test_every_format_names_file_line_and_column_of_a_broken_line(
    format_: str, tmp_path: Path
) -> None:
    path = jsonl(tmp_path / "a.jsonl", SAMPLES[format_])
    with path.open("a") as file:
        file.write("{oh\n")
    with pytest.raises(TaskDataError, match=r"a\.jsonl, line 3: no JSON"):
        read(path, format_)


def test_every_format_tells_the_columns_that_it_did_not_map(format_: str, tmp_path: Path) -> None:
    records = [{**record, "colour": "red"} for record in SAMPLES[format_]]
    assert "colour" in read(jsonl(tmp_path / "a.jsonl", records), format_).columns


def test_every_format_refuses_a_field_that_it_does_not_know(format_: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'answr'"):
        read(jsonl(tmp_path / "a.jsonl", SAMPLES[format_]), format_, answr="gold")


# ── TRL ─────────────────────────────────────────────────────────────────────────────────────


def test_trl_reward_columns_are_all_numbers_but_step_and_advantage(tmp_path: Path) -> None:
    record = {**SAMPLES["trl"][0], "format": None, "note": "x", "__index_level_0__": 4}
    records = [record, {**record, "format": 0.5}]
    found = read(parquet(tmp_path / "a.parquet", records), "trl")
    assert found.rewards == ["right", "format"]
    assert found.columns == ["advantage", "note", "__index_level_0__"]
    assert found.decides is None  # two: one must be named
    assert [row.components for row in found.rows] == [
        (("right", 1.0, 0.0),),
        (("right", 1.0, 0.0), ("format", 0.5, 0.0)),
    ]


def test_trl_one_reward_column_decides_and_nan_is_no_score(tmp_path: Path) -> None:
    records = [*SAMPLES["trl"], {**SAMPLES["trl"][0], "right": float("nan")}]
    found = read(parquet(tmp_path / "a.parquet", records), "trl")
    assert found.decides == "right"
    assert [row.score for row in found.rows] == [1.0, 0.0, None]


def test_trl_groups_are_one_prompt_in_one_step(tmp_path: Path) -> None:
    base = SAMPLES["trl"][0]
    records = [base, {**base, "prompt": "2+2="}, base, {**base, "step": 4}]
    groups = [row.group for row in read(jsonl(tmp_path / "a", records), "trl").rows]
    assert groups[0] == groups[2]
    assert len(set(groups)) == 3


def test_trl_chat_messages_are_read_and_tool_calls_refused(tmp_path: Path) -> None:
    asked = [{"role": "system", "content": "Add."}, {"role": "user", "content": "1+1?"}]
    said = [{"role": "assistant", "content": "2"}]
    call = [{"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}]
    records = [{"step": 1, "prompt": asked, "completion": c} for c in (said, call, said + said)]
    found = read(jsonl(tmp_path / "a.jsonl", records), "trl")
    assert found.rows[0].prompt == (Message("system", "Add."), Message("user", "1+1?"))
    assert found.rows[0].said == (Said("2"),)
    assert found.refused == {
        "a message calls a tool": [2],
        "the completion is 2 messages, not one": [3],
    }


def test_trl_preference_data_is_pairs_and_equal_ones_are_refused(tmp_path: Path) -> None:
    records = [
        {"prompt": "1+1=", "chosen": "2", "rejected": "3"},
        {"prompt": "1+1=", "chosen": "2", "rejected": " 2 "},
    ]
    found = read(jsonl(tmp_path / "a.jsonl", records), "trl", "pairs")
    assert [row.said for row in found.rows] == [(Said("2"), Said("3"))]
    assert found.refused == {"chosen and rejected are equal": [2]}


# ── verl ────────────────────────────────────────────────────────────────────────────────────


def test_verl_score_decides_other_numbers_are_metrics_and_ids_are_left(tmp_path: Path) -> None:
    records = [{**record, "acc": record["score"] > 0.5} for record in SAMPLES["verl"]]
    found = read(jsonl(tmp_path / "1.jsonl", records), "verl")
    assert found.rows[0].answer == "2"
    assert found.rows[0].components == (("score", 1.0, 1.0), ("acc", 1.0, 0.0))
    assert found.columns == ["uid"]


# ── prime-rl ────────────────────────────────────────────────────────────────────────────────


def test_prime_rl_a_trace_is_split_where_the_policy_began_to_sample(tmp_path: Path) -> None:
    found = read(jsonl(tmp_path / "a.jsonl", SAMPLES["prime-rl"]), "prime-rl")
    row = found.rows[0]
    assert row.prompt_token_ids == (7, 8, 9)
    assert row.said == (Said("2", (10, 11), (-0.5, -0.25), "stop"),)
    assert row.score == 1.0 * 2.0 + 0.5 * 1.0
    assert row.components == (("right", 1.0, 2.0), ("short", 0.5, 1.0), ("turns", 1.0, 0.0))
    assert (row.answer, row.group) == ("2", "g")
    assert {"traces.timing", "traces.nodes.advantages", "env"} <= set(found.columns)


REPLY = node(0, "assistant", "2", [9, 10], sampled=True, mask=[False, True])
TURNS = [*trace()["nodes"], node(1, "user", "sure?", [3]),
         node(2, "assistant", "yes", [4], sampled=True, mask=[True])]  # fmt: skip


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([episode(trace(nodes=TURNS))], "the trace has more than one turn"),
        ([episode(trace(stop_condition="error"))], "the trace ended with an error"),
        ([episode(trace(nodes=trace()["nodes"][:1]))], "the trace has no reply"),
        ([episode(trace(agent={"trainable": False}))], "the trace's agent is not trained"),
        ([episode()], "an episode without a trace"),
        ([{"prompt": "a", "completion": None}], "no completion"),
        ([{"prompt": "a", "completion": "b", "error": {"error": "x"}}],
         "the trace ended with an error"),
    ],
)  # fmt: skip
def test_prime_rl_refuses_what_is_no_single_reply(
    records: Records, reason: str, tmp_path: Path
) -> None:
    found = read(jsonl(tmp_path / "a.jsonl", records), "prime-rl")
    assert found.rows == []
    assert found.refused == {reason: [1]}


@pytest.mark.parametrize(
    "cut", [{"stop_condition": "max_total_tokens"}, {"calls": [{"finish_reason": "length"}]}]
)
def test_prime_rl_a_cut_off_reply_is_no_finished_one(cut: Any, tmp_path: Path) -> None:
    (row,) = read(jsonl(tmp_path / "a.jsonl", [episode(trace(**cut))]), "prime-rl").rows
    assert row.said[0].finish == "length"


def test_prime_rl_bare_traces_and_older_flat_rows_are_read(tmp_path: Path) -> None:
    tokens = {"prompt_ids": [1], "completion_ids": [2, 3], "completion_logprobs": [-1.0, -2.0]}
    flat = {
        "example_id": 5, "prompt": [{"role": "user", "content": "1+1?"}], "answer": "2",
        "completion": [{"role": "assistant", "content": "2"}], "reward": 0.5,
        "metrics": {"right": 0.5}, "is_truncated": True, "trajectory": [{"tokens": tokens}],
    }  # fmt: skip
    bare, older = read(jsonl(tmp_path / "a.jsonl", [trace(), flat]), "prime-rl").rows
    assert bare.prompt_token_ids == (7, 8, 9)
    assert older.said == (Said("2", (2, 3), (-1.0, -2.0), "length"),)
    assert older.components == (("reward", 0.5, 1.0), ("right", 0.5, 0.0))
    assert (older.answer, older.group, older.prompt_token_ids) == ("2", "5", (1,))


# ── jsonl ───────────────────────────────────────────────────────────────────────────────────


def test_jsonl_maps_columns_as_it_is_told(tmp_path: Path) -> None:
    record = {"question": "1+1?", "response": "2", "gold": 2, "score": 0.5, "ids": [5, 6],
              "lps": [-0.5, 0], "asked": [1], "why": "length"}  # fmt: skip
    found = read(
        jsonl(tmp_path / "a.jsonl", [record]), "jsonl", "rollouts",
        prompt="question", question="", completion="response", answer="gold", reward="score",
        token_ids="ids", logprobs="lps", prompt_token_ids="asked", finish_reason="why",
    )  # fmt: skip
    (row,) = found.rows
    assert (row.prompt, row.question, row.answer, row.score) == ("1+1?", None, "2", 0.5)
    assert row.said == (Said("2", (5, 6), (-0.5, 0.0), "length"),)
    assert found.columns == []


def test_every_kind_knows_its_fields() -> None:
    for kind, fields in FIELDS.items():
        assert "prompt" in fields, kind
