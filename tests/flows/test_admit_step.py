# SPDX-License-Identifier: Apache-2.0
"""Round 0 admits a task's problems once: by hand, on small files, without a Prefect server."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from running import TRY, ask, contents

from configs.load import load
from flows import steps
from flows.context import Round, Run
from flows.fork import Fork, take_over
from flows.screen import Screen
from stages import ids
from stages.errors import ConfigError, TaskDataError
from stages.policies.checkpoint import model_id_of
from store.db import Store

LONG = "a baker makes {} loaves of bread and sells {} of them at the market before noon"
DEV = [("how many legs have three cats", "12"), (LONG.format(40, 15), "25")]
TRAIN: list[tuple[str, Any]] = [
    ("what is 1+1", "2"),  # line 1
    ("what is 2+2", ""),  # no answer
    ("what is 3+3", "six"),  # no number
    ("what is 1+1", "2"),  # the same again
    ("what  is 1+1", "2"),  # the same but for a blank
    ("how many legs have three cats;", "12"),  # copied from dev
    (LONG.format(70, 28), "42"),  # renumbered from dev
    ("what is 5+5", "10"),
    ("what is the sum of nine and nine", "18"),
    ("what is the sum of nine and nine;", "18"),  # the same words
]
COPIED, RENUMBERED = TRAIN[5][0], TRAIN[6][0]


@pytest.fixture
def data(tmp_path: Path) -> Callable[..., list[str]]:
    """Writes train and dev; gives the overrides that name them."""

    def write(train: list[tuple[str, Any]] = TRAIN, dev: list[tuple[str, Any]] = DEV) -> list[str]:
        for name, rows in (("train", train), ("dev", dev)):
            lines = [json.dumps({"question": q, "answer": a}) + "\n" for q, a in rows]
            (tmp_path / f"{name}.jsonl").write_text("".join(lines))
        files = {name: str(tmp_path / f"{name}.jsonl") for name in ("train", "dev")}
        return [f"task={json.dumps({'type': 'jsonl', 'name': 'small', 'files': files})}"]

    return write


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "runs" / "store.duckdb")
    made.create()
    return made


def begin(
    store: Store, name: str, policy: Path, overrides: list[str], console: Console | None = None
) -> Round:
    """Round 0 of a run, with nothing done."""
    config = load(
        TRY,
        [
            f"policy={{type: folder, path: {policy}}}",
            "verifier={type: numeric}",
            "prompts={name: asked, plain: '{question}'}",
            "rationalize={enabled: false}",
            "mix.seed_rows=0",
            "generate.problems.per_round=all",
            *overrides,
        ],
    )
    with store.transaction() as tx:
        tx.append(
            "begin_run", run_id=ids.run_id(name), name=name, recipe="star", config="{}",
            identity="{}", manifest="{}", forked_from=None, forked_at_round=None,
        )  # fmt: skip
    screen = Screen(console or Console(quiet=True))
    run = Run(name, ids.run_id(name), config, store, screen)
    base = model_id_of(run.base_folder)
    return Round(run, 0, base, base)


DECIDED = """
    select coalesce(nullif(split_part(place, '/', -1), ''), p.question), d.why, d.kept, d.rule,
           nullif(o.question, p.question)
    from step_run s join problem_decision d using (step_key) join problem p using (problem_id)
    join problem o on o.problem_id = d.other_id
    where s.run = ? and s.step = 'admit' order by all"""


def decided(store: Store, run: str) -> list[tuple[Any, ...]]:
    """Line or question, why, kept, rule, and the other question, of each decision of a run."""
    return ask(store.path, DECIDED, run)


LEFT_OUT = [
    ("train.jsonl:2", "no_answer", False, None, None),
    ("train.jsonl:4", "duplicate", False, None, None),
    ("train.jsonl:5", "duplicate", False, None, None),
    ("what is 3+3", "reference_refused", False, "reference_no_number", None),
]
REPEATED = [
    ("what is the sum of nine and nine;", "duplicate", False, "exact",
     "what is the sum of nine and nine"),
]  # fmt: skip


def overlapping(kept: bool) -> list[tuple[Any, ...]]:
    return [
        (RENUMBERED, "contaminated", kept, "template", DEV[1][0]),
        (COPIED, "contaminated", kept, "exact", DEV[0][0]),
    ]


def asked(store: Store, run: str, purpose: str = "train") -> list[str]:
    found = ask(
        store.path,
        "select question from step_output s join trajectory t on t.trajectory_id = s.id "
        "join problem using (problem_id) where s.run = ? and t.purpose = ? order by 1",
        run,
        purpose,
    )
    return [question for (question,) in found]


USED = ["what is 1+1", "what is 5+5", "what is the sum of nine and nine"]


def test_every_problem_that_is_left_out_is_a_row_that_says_why_and_is_never_asked(
    store: Store, tiny_folder: Path, data: Callable[..., list[str]]
) -> None:
    zero = begin(store, "one", tiny_folder, data())
    steps.admit.fn(zero)
    assert decided(store, "one") == sorted([*LEFT_OUT, *REPEATED, *overlapping(False)])
    ((share,),) = ask(store.path, "select share from problem_decision where rule = 'template'")
    assert share == 1.0
    read = ask(store.path, "select kind, count(*) from step_output where step = 'admit' group by 1")
    assert read == [("problem", 9)]  # all that are problems, of both splits
    steps.setup.fn(zero)
    steps.generate.fn(Round(zero.run, 1, zero.base, zero.base))
    assert asked(store, "one") == USED
    assert [p.question for p in steps.base.usable_problems(zero, "dev")] == [q for q, _ in DEV]


def test_warn_keeps_the_overlapping_problems_and_lists_them(
    store: Store, tiny_folder: Path, data: Callable[..., list[str]]
) -> None:
    zero = begin(store, "one", tiny_folder, [*data(), "decontaminate.on_contamination=warn"])
    steps.admit.fn(zero)
    assert decided(store, "one") == sorted([*LEFT_OUT, *REPEATED, *overlapping(True)])
    kept = {p.question for p in steps.base.usable_problems(zero, "train")}
    assert kept == {*USED, COPIED, RENUMBERED}


def test_fail_raises_and_commits_nothing(
    store: Store, tiny_folder: Path, data: Callable[..., list[str]]
) -> None:
    zero = begin(store, "one", tiny_folder, [*data(), "decontaminate.on_contamination=fail"])
    before = contents(store.path)
    with pytest.raises(TaskDataError, match="2 training problems overlap evaluation problems"):
        steps.admit.fn(zero)
    assert contents(store.path) == before


def test_a_task_whose_problems_all_overlap_is_refused_with_the_advice(
    store: Store, tiny_folder: Path, data: Callable[..., list[str]]
) -> None:
    train = [(LONG.format(n, n - 1), "1") for n in range(3, 9)]
    zero = begin(store, "one", tiny_folder, data(train))
    with pytest.raises(TaskDataError) as refused:
        steps.admit.fn(zero)
    assert str(refused.value).startswith(
        "task small: none of 6 training problems is left, 6 overlap evaluation problems"
    )
    assert "set decontaminate.rules to [exact]" in str(refused.value)
    other = begin(store, "two", tiny_folder, [*data(train), "decontaminate.rules=[exact]"])
    steps.admit.fn(other)
    assert len(steps.base.usable_problems(other, "train")) == 6


def test_a_task_whose_answers_the_verifier_cannot_use_is_refused_for_that(
    store: Store, tiny_folder: Path, data: Callable[..., list[str]]
) -> None:
    zero = begin(store, "one", tiny_folder, data([("what is 1+1", "two"), ("and 2+2", "four")]))
    with pytest.raises(TaskDataError, match=r"can use no answer .*\(reference_no_number\): set"):
        steps.admit.fn(zero)


def test_a_problem_of_an_evaluation_set_is_left_out_too(
    store: Store, tiny_folder: Path, tmp_path: Path, data: Callable[..., list[str]]
) -> None:
    (tmp_path / "test.jsonl").write_text(json.dumps({"question": "what is 5+5", "answer": "10"}))
    other = {"type": "jsonl", "name": "held", "files": {"test": str(tmp_path / "test.jsonl")}}
    zero = begin(store, "one", tiny_folder, [*data(), f"evaluation_sets=[{json.dumps(other)}]"])
    steps.admit.fn(zero)
    assert "what is 5+5" not in {p.question for p in steps.base.usable_problems(zero, "train")}
    found = ask(
        store.path,
        "select o.task, o.split from problem_decision d join problem p using (problem_id) "
        "join problem o on o.problem_id = d.other_id where p.question = 'what is 5+5'",
    )
    assert found == [("held", "test")]


def test_a_held_out_problem_that_the_verifier_cannot_use_is_not_measured(
    store: Store, tiny_folder: Path, data: Callable[..., list[str]]
) -> None:
    zero = begin(store, "one", tiny_folder, data(TRAIN, [*DEV, ("what is 8+8", "many")]))
    for step in (steps.setup, steps.admit, steps.evaluate):
        step.fn(zero)
    assert set(asked(store, "one", "eval")) == {question for question, _ in DEV}


def test_a_second_run_takes_the_decisions_over(
    store: Store, tiny_folder: Path, data: Callable[..., list[str]]
) -> None:
    one = begin(store, "one", tiny_folder, data())
    steps.admit.fn(one)
    two = begin(store, "two", tiny_folder, [*data(), "seed=7"])
    assert steps.admit.fn(two) == steps.admit.fn(one)
    assert ask(store.path, "select run, reused from step_run where step = 'admit' order by 1") == [
        ("one", False),
        ("two", True),
    ]
    assert decided(store, "two") == decided(store, "one")
    assert [p.question for p in steps.base.usable_problems(two, "train")] == USED


def test_a_fork_keeps_the_decisions(
    store: Store, tiny_folder: Path, data: Callable[..., list[str]]
) -> None:
    one = begin(store, "one", tiny_folder, data())
    for step in (steps.setup, steps.admit):
        step.fn(one)
    bent = begin(store, "bent", tiny_folder, [*data(), "seed=7"])
    with store.transaction() as tx:
        take_over(tx, bent.run.run_id, one.run.run_id, Fork("one", 0))
    steps.generate.fn(Round(bent.run, 1, bent.base, bent.base))
    assert asked(store, "bent") == USED
    assert decided(store, "bent") == decided(store, "one")


def test_what_is_left_out_is_counted_on_the_screen(
    store: Store, tiny_folder: Path, data: Callable[..., list[str]]
) -> None:
    screen = StringIO()
    console = Console(width=200, file=screen)
    steps.admit.fn(begin(store, "one", tiny_folder, data(), console))
    said = screen.getvalue()
    assert "2 of 6 training problems overlap evaluation problems: exact 1, template 1" in said
    assert "problems left out: 3 duplicate, 1 no_answer, 1 reference_refused" in said


def test_a_policy_that_loses_text_is_refused_before_anything_is_sampled(
    store: Store, tiny_folder: Path, data: Callable[..., list[str]]
) -> None:
    """In a run that takes over another's decisions too: they say nothing of its tokenizer."""
    steps.admit.fn(begin(store, "one", tiny_folder, data()))
    capitals = ["prompts={name: loud, plain: 'SAY {question}'}"]
    two = begin(store, "two", tiny_folder, [*data(), *capitals])
    with pytest.raises(ConfigError, match="its tokenizer reads 'SAY what is 1"):
        steps.admit.fn(two)
    assert ask(store.path, "select run from step_run") == [("one",)]
