# SPDX-License-Identifier: Apache-2.0
"""Every task through the same cases. A new one needs a line in SETTINGS."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from plug_ins import in_folder, in_union, type_of
from pydantic import ValidationError

from stages import ids, tasks
from stages.rows import Problem
from stages.tasks import Split, Task
from stages.verifiers import exact, judge_text

DATA = Path(__file__).parent / "tasks" / "data"

TASKS = in_folder(tasks)
SETTINGS: dict[str, dict[str, Any]] = {
    "addition": {"digits": 3, "train": 200, "held_out": 20, "demonstrations": 30},
    "jsonl": {
        "files": {"train": str(DATA / "sums.jsonl"), "test": str(DATA / "sums_test.jsonl")},
        "columns": {"rationale": "worked"},
    },
    "reasoning_gym": {
        "generators": [{"name": "products", "params": {"max_digits": 2}}],
        **{"train": 30, "dev": 10, "test": 10},
    },
}
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
EXACT = exact.Config(type="exact").build()
each_task = pytest.mark.parametrize("name", TASKS)


def build(name: str) -> Task:
    task: Task = TASKS[name](type=name, **SETTINGS[name]).build()
    return task


def all_problems(task: Task) -> Iterator[Problem]:
    for split in SPLITS:
        yield from task.problems(split)
    for problems in task.extra_slices().values():
        yield from problems
    yield from (shown.problem for shown in task.demonstrations())


def unordered(problem: Problem) -> frozenset[str]:
    """A question up to the order of its terms, where it has terms."""
    return frozenset(problem.question.split("+"))


def test_every_task_file_is_in_the_union() -> None:
    assert set(TASKS.values()) == in_union(tasks.TaskConfig)
    assert TASKS.keys() == SETTINGS.keys()


@each_task
def test_a_config_is_strict_frozen_and_named_by_its_file(name: str) -> None:
    config = TASKS[name](type=name, **SETTINGS[name])
    assert type_of(type(config)) == (name,)
    assert config.build().name == name
    with pytest.raises(ValidationError, match="frozen"):
        config.type = name
    with pytest.raises(ValidationError, match="Extra inputs"):
        type(config)(type=name, **SETTINGS[name], unheard_of=1)


@each_task
def test_no_problem_is_in_two_splits_nor_twice_in_one(name: str) -> None:
    task = build(name)
    found: dict[Split, Sequence[Problem]] = {split: task.problems(split) for split in SPLITS}
    seen = [p.problem_id for split in SPLITS for p in found[split]]
    assert len(set(seen)) == len(seen)
    assert all(p.split == split for split in SPLITS for p in found[split])
    assert all(found.values())


@each_task
def test_no_question_is_in_two_splits_with_its_terms_turned(name: str) -> None:
    task = build(name)
    train, dev, test = ({unordered(p) for p in task.problems(split)} for split in SPLITS)
    assert not train & dev and not train & test and not dev & test


@each_task
def test_equal_configs_give_equal_problems_in_equal_order(name: str) -> None:
    one, other = build(name), build(name)
    for split in SPLITS:
        assert list(one.problems(split)) == list(other.problems(split)) == list(one.problems(split))
    assert list(one.demonstrations()) == list(other.demonstrations())
    assert one.prompts == other.prompts
    assert one.extra_slices() == other.extra_slices()


@each_task
def test_ids_follow_from_what_a_problem_is(name: str) -> None:
    task = build(name)
    for problem in all_problems(task):
        assert problem.task == name
        assert problem.problem_id == ids.problem_id(name, problem.question, problem.answer)
    prompts = task.prompts
    assert prompts.prompt_set_id == ids.prompt_set_id(prompts.name, prompts.plain, prompts.hint)


@each_task
def test_references_are_right_answers(name: str) -> None:
    for problem in all_problems(build(name)):
        assert judge_text(EXACT, problem.answer, f"#{problem.answer}").status == "correct"


@each_task
def test_demonstrations_are_of_the_train_split_and_right(name: str) -> None:
    shown = build(name).demonstrations()
    assert shown or name == "reasoning_gym"
    for demonstration in shown:
        assert demonstration.problem.split == "train"
        judged = judge_text(EXACT, demonstration.problem.answer, demonstration.completion)
        assert judged.status == "correct"
    assert len({d.problem.problem_id for d in shown}) == len(shown)


@each_task
def test_the_plain_prompt_shows_the_question_and_only_the_hint_shows_the_answer(name: str) -> None:
    prompts = build(name).prompts
    assert "{question}" in prompts.plain and "{answer}" not in prompts.plain
    assert prompts.hint is None or ("{question}" in prompts.hint and "{answer}" in prompts.hint)
