# SPDX-License-Identifier: Apache-2.0
"""Generated tasks: shares, splits, what is refused, and whether the lists fit the package."""

import ast
import builtins
import inspect
import json
import os
import subprocess
import sys
import textwrap
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from reasoning_gym.factory import DATASETS, create_dataset

from stages.errors import ConfigError, TaskDataError
from stages.tasks.base import SPLITS
from stages.tasks.reasoning_gym import (
    EVALUATES,
    OPEN,
    UNSTABLE,
    Config,
    ReasoningGym,
    difficulty_of,
    shares,
)
from stages.verifiers import judge_text, numeric

SUMS = {"name": "chain_sum", "params": {"min_terms": 2, "max_terms": 2, "max_digits": 3}}
PRODUCTS = {"name": "products", "params": {"min_digits": 1, "max_digits": 1}}
NUMERIC = numeric.Config(type="numeric").build()


def settings(**given: Any) -> Config:
    sizes = {"train": 40, "dev": 10, "test": 10}
    section = {"type": "reasoning_gym", "generators": [SUMS], **sizes, **given}
    return Config.model_validate(section)


def build(**given: Any) -> ReasoningGym:
    built = settings(**given).build()
    assert isinstance(built, ReasoningGym)
    return built


# ── what is drawn ───────────────────────────────────────────────────────────────────────────


def test_counts_are_met_and_no_question_is_twice_in_any_split() -> None:
    built = build(generators=[SUMS, PRODUCTS])
    found = [p for split in SPLITS for p in built.problems(split)]
    assert [len(built.problems(split)) for split in SPLITS] == [40, 10, 10]
    assert len({p.question for p in found}) == 60


def test_problems_are_shared_out_by_weight_and_mixed() -> None:
    built = build(generators=[{**SUMS, "weight": 3.0}, PRODUCTS])
    domains = [p.domain for p in built.problems("train")]
    assert (domains.count("chain_sum"), domains.count("products")) == (30, 10)
    assert domains[:30] != ["chain_sum"] * 30


@given(st.integers(0, 500), st.lists(st.floats(0.01, 100), min_size=1, max_size=6))
def test_shares_sum_to_the_total_and_are_within_one_of_exact(
    total: int, weights: list[float]
) -> None:
    counts = shares(total, weights)
    assert sum(counts) == total
    whole = sum(map(Fraction, weights))
    for count, weight in zip(counts, weights, strict=True):
        assert abs(count - total * Fraction(weight) / whole) <= Fraction(1000001, 1000000)


def test_the_smallest_space_is_shared_out_whole() -> None:
    built = build(generators=[PRODUCTS], train=60, dev=20, test=20)
    assert len({p.question for split in SPLITS for p in built.problems(split)}) == 100


def test_more_than_a_generator_has_is_refused() -> None:
    with pytest.raises(TaskDataError, match="products gave 80 new questions for train in"):
        build(generators=[PRODUCTS], train=81).problems("train")


def test_answers_are_right_and_judged_by_the_runs_own_verifier() -> None:
    for problem in build(generators=[PRODUCTS]).problems("train"):
        left, right = problem.question.split(": ")[1].split(".")[0].split(" * ")
        assert int(problem.answer) == int(left) * int(right)
        assert judge_text(NUMERIC, problem.answer, f"so\n#### {problem.answer}").status == "correct"


@pytest.mark.parametrize("generator", [SUMS, PRODUCTS, {"name": "gcd"}, {"name": "leg_counting"}])
def test_the_packages_scorer_agrees_on_sane_answers(generator: dict[str, Any]) -> None:
    params = generator.get("params", {})
    dataset = create_dataset(generator["name"], seed=3, size=10, **params)
    for entry in (dataset[i] for i in range(10)):
        for answer in (entry["answer"], str(int(entry["answer"]) + 1)):
            ours = judge_text(NUMERIC, entry["answer"], f"#### {answer}").status == "correct"
            assert ours == (dataset.score_answer(answer, entry) == 1.0)


def test_held_out_generators_are_not_trained_on() -> None:
    generators = [SUMS, PRODUCTS, {"name": "gcd"}]
    built = build(generators=generators, split="generator", held_out=["gcd"])
    domains = {split: {p.domain for p in built.problems(split)} for split in SPLITS}
    assert domains == {"train": {"chain_sum", "products"}, "dev": {"gcd"}, "test": {"gcd"}}


def test_another_seed_draws_other_problems() -> None:
    one, other = (build(seed=seed).problems("train") for seed in (0, 1))
    assert {p.question for p in one} != {p.question for p in other}


@pytest.mark.slow
def test_problems_do_not_depend_on_the_process() -> None:
    program = (
        "import json, sys; from stages.tasks.reasoning_gym import Config;"
        "c = Config.model_validate(json.loads(sys.argv[1])).build();"
        "print(json.dumps([str(p.problem_id) for p in c.problems('train')]))"
    )
    config = settings(generators=[SUMS, {"name": "letter_counting"}, {"name": "spell_backward"}])
    expected = [str(p.problem_id) for p in config.build().problems("train")]
    ran = subprocess.run(
        [sys.executable, "-c", program, config.model_dump_json()],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout) == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"difficulty": 2}, 2.0),
        ({"difficulty": {"terms": (2, 2), "digits": (1, 4)}, "terms": 2, "digits": 3}, 3.0),
        ({"difficulty": {"terms": (2, 5), "digits": (1, 4)}, "terms": 2, "digits": 3}, None),
        ({"difficulty": {"digits": (1, 4)}, "digits": "3"}, None),
        ({"difficulty": {"digits": (4, 4)}, "digits": 4}, None),
        ({"difficulty": True}, None),
        ({}, None),
    ],
)
def test_a_difficulty_is_a_number_or_the_one_field_that_varies(
    metadata: dict[str, Any], expected: float | None
) -> None:
    assert difficulty_of(metadata) == expected


# ── what is refused ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"generators": []}, "at least 1 item"),
        ({"generators": [{"name": "puzzle24"}]}, "'puzzle24' needs a sandbox"),
        ({"generators": [{"name": "rush_hour"}]}, "'rush_hour' gives no reference answer"),
        ({"generators": [{"name": "ransom_note"}]}, "'ransom_note' gives other problems in each"),
        ({"generators": [{"name": "gcd", "weight": 0.0}]}, "greater than 0"),
        ({"split": "generator"}, r"held_out is \[\]: name generators"),
        ({"held_out": ["chain_sum"]}, "split is 'seed' and held_out is"),
        ({"split": "generator", "held_out": ["gcd"]}, "held_out names 'gcd', which is none of"),
        ({"split": "generator", "held_out": ["chain_sum"]}, "leave one for train"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        settings(**given)


@pytest.mark.parametrize(
    ("generator", "said"),
    [
        ({"name": "chain_sums"}, "task.generators.0.name: 'chain_sums' is unknown; did you mean"),
        (
            {"name": "chain_sum", "params": {"max_term": 3}},
            "params.max_term: chain_sum has no such field; did you mean max_terms?",
        ),
        ({"name": "gcd", "params": {"size": 3}}, "params.size: the task sets size itself"),
        ({"name": "gcd", "params": {"seed": 3}}, "params.seed: the task sets seed itself"),
        ({"name": "products", "params": {"max_digits": 0}}, "max_digits must be >= min_digits"),
        ({"name": "products", "params": {"max_digits": "many"}}, "products refuses {'max_digits'"),
    ],
)
def test_names_and_params_the_package_does_not_know_are_refused(
    generator: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        settings(generators=[generator]).build()
    assert said in str(refused.value) and len(str(refused.value).splitlines()) == 1


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym.factory", None)
    with pytest.raises(ConfigError, match=r"pip install 'starloop\[tasks\]'"):
        settings().build()


# ── the lists, held to the installed package ────────────────────────────────────────────────


def calls(function: Any, owner: type, seen: set[Any]) -> set[str]:
    """What a function may call, through methods and functions of its package, by full name."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    if function in seen or not inspect.isfunction(function):
        return set()
    seen.add(function)
    found: set[str] = set()
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        target = resolve(name, function, owner)
        module = getattr(target, "__module__", None) or ""
        found.add(f"{module}.{getattr(target, '__qualname__', name)}" if target else name)
        if module.startswith("reasoning_gym"):
            found |= calls(target, owner, seen)
    return found


def resolve(name: str, function: Any, owner: type) -> Any:
    """The object behind a dotted name in a function: its method, a global, or a builtin."""
    first, *rest = name.split(".")
    if first in ("self", "cls") or name.startswith("super()"):
        base = owner.__mro__[1] if name.startswith("super()") else owner
        return getattr(base, rest[0], None) if len(rest) == 1 else None
    target = function.__globals__.get(first, getattr(builtins, first, None))
    for part in rest:
        target = getattr(target, part, None)
    return target


def evaluates(name: str) -> bool:
    """Whether a generator's scorer reaches eval, exec, compile or sympy's parser."""
    owner, _ = DATASETS[name]
    found = calls(owner.score_answer, owner, set())  # type: ignore[attr-defined]
    ends = ("builtins.eval", "builtins.exec", "builtins.compile", ".parse_expr", ".sympify")
    return any(call.endswith(ends) and not call.startswith("reasoning_gym") for call in found)


def test_every_scorer_that_evaluates_text_is_refused() -> None:
    found = {name for name in DATASETS if evaluates(name)}
    assert found == EVALUATES - {"composite"}


def test_every_refused_generator_is_one_of_the_package() -> None:
    assert DATASETS.keys() >= EVALUATES | OPEN | UNSTABLE


@pytest.mark.slow
def test_every_other_generator_gives_the_same_text_answers_in_each_process(tmp_path: Path) -> None:
    program = (
        "import json, sys; from reasoning_gym.factory import DATASETS, create_dataset;"
        "names = sorted(set(DATASETS) - {'composite', 'sokoban', 'knight_swap'});"
        "made = {n: create_dataset(n, seed=5, size=25) for n in names};"
        "entries = {n: [made[n][i] for i in range(25)] for n in names};"
        "said = {n: [[e['question'], e['answer']] for e in es] for n, es in entries.items()};"
        "open(sys.argv[1], 'w').write(json.dumps(said))"
    )
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
    one, other = (json.loads((tmp_path / seed).read_text()) for seed in ("1", "2"))
    unstable = {name for name in one if one[name] != other[name]}
    open_ = {n for n in one if not all(isinstance(answer, str) for _, answer in one[n])}
    assert unstable - EVALUATES <= UNSTABLE
    assert open_ - EVALUATES <= OPEN
