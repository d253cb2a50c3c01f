# SPDX-License-Identifier: Apache-2.0
"""Rows of files to rows of the store, worked by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from stages import ids
from stages.errors import ConfigError, TaskDataError
from stages.imports import Kind, Message, Reading, Row, Said
from stages.imports.taking import File, Ingested, Options, counts, left_out
from stages.ingest import ingest
from stages.policies.checkpoint import load_tokenizer


def options(kind: Kind = "rollouts", **more: Any) -> Options:
    given: dict[str, Any] = {"task": "sums", "split": "train", "origin": "teacher", "shape": "{}"}
    return Options(kind, "jsonl", **{**given, **more})


def file(*rows: Row, decides: str | None = "score", **more: Any) -> File:
    reading = Reading(rows=list(rows), rewards=["score"], decides=decides, **more)
    return File("a.jsonl", "abc", "line", reading)


def row(line: int, text: str, ids_: tuple[int, ...] = (5, 6), **more: Any) -> Row:
    given = {"prompt_token_ids": (1, 2), "answer": "2", "group": "g"}
    return Row(line, "1+1=", (Said(text, ids_, **more.pop("said", {})),), **{**given, **more})


def take(*rows: Row, **more: Any) -> Ingested:
    return ingest([file(*rows)], options(**more))


def test_rollouts_are_train_slots_that_no_policy_sampled() -> None:
    taken = take(row(1, "2", said={"logprobs": (-1.0, -2.0)}), row(2, "3", (7,)))
    first, second = taken.trajectories
    problem = ids.problem_id("sums", "1+1=", "2")
    assert list(taken.problems) == [problem]
    assert (first.model_id, first.sampling_id, first.seed, first.engine) == (None,) * 4
    assert (first.purpose, first.origin, first.problem_id) == ("train", "teacher", problem)
    assert first.content_id == ids.content_id((1, 2), (5, 6))
    assert (first.logprobs, second.logprobs) == ((-1.0, -2.0), None)
    assert (first.slot, second.slot) == (0, 1)
    assert first.group_id == second.group_id is not None
    source = '{"file":"abc","shape":"{}"}'
    assert second.trajectory_id == ids.outside_trajectory_id(source, 1)
    assert [prompt.hinted for prompt in taken.prompts.values()] == [False]


def test_demonstrations_are_seed_slots_and_problems_have_none() -> None:
    assert [t.purpose for t in take(row(1, "2"), kind="demonstrations").trajectories] == ["seed"]
    taken = take(Row(1, "1+1=", answer="2"), kind="problems")
    assert counts(taken) == [("problems", 1)]
    assert taken.prompts == {}


def test_a_reward_from_the_threshold_on_is_correct_and_a_missing_one_unjudged() -> None:
    scored = [
        row(n, str(n), (n,), score=score, components=(("score", score or 0.0, 1.0),))
        for n, score in enumerate((0.49, 0.5, 1.0, None), 1)
    ]
    taken = take(*scored, correct_at=0.5)
    assert [v.status for v in taken.verdicts] == ["wrong", "correct", "correct", "unjudged"]
    assert [v.score for v in taken.verdicts] == [0.49, 0.5, 1.0, None]
    (verifier,) = taken.verifiers
    assert (verifier.name, verifier.version) == ("import", "1")
    assert json.loads(verifier.config) == {"format": "jsonl", "reward": "score", "correct_at": 0.5}
    assert {v.verifier_id for v in taken.verdicts} == {verifier.verifier_id}
    assert len(taken.components) == 4


def test_without_a_threshold_there_is_no_verdict_and_rewards_are_listed() -> None:
    taken = take(row(1, "2", score=1.0, components=(("score", 1.0, 1.0),)))
    assert (taken.verdicts, taken.components, taken.verifiers) == ([], [], [])
    files = [file(columns=["uid"], refused={"no prompt": [3, 5]})]
    assert left_out(files, options()) == {
        "columns": ["uid"],
        "rewards": ["score"],
        "refused": {"no prompt": {"rows": 2, "first": ["a.jsonl, line 3", "a.jsonl, line 5"]}},
    }
    assert left_out(files, options(correct_at=0.5))["rewards"] == []
    assert left_out(files, options("problems"))["columns"] == ["uid", "score"]


def test_a_threshold_needs_one_reward_column_that_decides() -> None:
    with pytest.raises(ConfigError, match=r"no single reward column \(found: score\)"):
        ingest([file(row(1, "2"), decides=None)], options(correct_at=0.5))
    with pytest.raises(ConfigError, match="pairs have no rewards"):
        ingest([file()], options("pairs", correct_at=0.5))


def pair(line: int, chosen: str, rejected: str, weight: float = 1.0) -> Row:
    said = (Said(chosen, (5, 6)), Said(rejected, (7,)))
    return Row(line, "1+1=", said, prompt_token_ids=(1, 2), weight=weight)


def test_pairs_are_a_training_set_of_two_slots_a_row() -> None:
    taken = take(pair(1, "2", "3"), pair(2, "2", "3"), pair(3, "2", "3", 0.5), kind="pairs")
    (held,) = taken.training_sets
    assert (held.rows, held.tokens) == (3, 9)
    assert [(r.kind, r.position, r.weight, r.tokens) for r in taken.training_rows] == [
        ("pair", 0, 1.0, 3),
        ("pair", 1, 1.0, 3),
        ("pair", 2, 0.5, 3),
    ]
    prompt = taken.training_rows[0].prompt_id
    contents = [ids.content_id((1, 2), (5, 6)), ids.content_id((1, 2), (7,))]
    assert [r.training_row_id for r in taken.training_rows] == [
        ids.training_row_id("pair", prompt, contents, 1.0, 0),
        ids.training_row_id("pair", prompt, contents, 1.0, 1),
        ids.training_row_id("pair", prompt, contents, 0.5, 0),
    ]
    assert [(x.training_row_id, x.role) for x in taken.links[:2]] == [
        (taken.training_rows[0].training_row_id, "chosen"),
        (taken.training_rows[0].training_row_id, "rejected"),
    ]
    assert len({x.trajectory_id for x in taken.links}) == 6


def test_text_is_tokenized_as_it_stands_and_ends_with_the_end_token(tiny_folder: Path) -> None:
    tokenizer = load_tokenizer(tiny_folder)
    rows = [
        Row(1, "a1+a2=", (Said("3"),)),
        Row(2, "a1+a2=", (Said("3", finish="length"),)),
        Row(3, (Message("user", "a1+a2"),), (Said("3"),)),
    ]
    taken = ingest([file(*rows)], options(), tokenizer)
    three = tuple(tokenizer("3", add_special_tokens=False)["input_ids"])
    whole, cut, chat = taken.trajectories
    assert (whole.token_ids, whole.finish_reason) == ((*three, tokenizer.eos_token_id), "stop")
    assert (cut.token_ids, cut.finish_reason) == (three, "length")
    assert taken.cut_unknown == 2
    plain = tuple(tokenizer("a1+a2=", add_special_tokens=False)["input_ids"])
    assert taken.prompts[whole.prompt_id].token_ids == plain
    asked = [{"role": "user", "content": "a1+a2"}]
    text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    assert taken.prompts[chat.prompt_id].text == text
    assert taken.problems[chat.problem_id].question == "a1+a2"


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        (Row(4, "a", (Said("b", (1,)),)), "prompt: .*--map prompt_token_ids=COLUMN"),
        (Row(4, "a", (Said("b"),), (1,)), "completion: .*--map token_ids=COLUMN"),
        (Row(4, (Message("user", "a"),), (Said("b", (1,)),)), "prompt: .*--tokenizer"),
    ],
)
def test_without_token_ids_a_tokenizer_is_asked_for(asked: Row, what: str) -> None:
    with pytest.raises(ConfigError, match=rf"a\.jsonl, line 4: no token ids for the {what}"):
        take(asked)


def test_a_problem_that_two_rows_describe_differently_is_an_error() -> None:
    with pytest.raises(TaskDataError, match="line 2: the problem has another domain or difficulty"):
        take(row(1, "2", difficulty=1.0), row(2, "3", difficulty=2.0))


def test_other_options_are_other_slots_and_the_same_are_the_same() -> None:
    def slots(shape: str) -> list[Any]:
        taken = ingest([file(row(1, "2"))], options(shape=shape))
        return [t.trajectory_id for t in taken.trajectories]

    assert slots("a") == slots("a")
    assert slots("a") != slots("b")
