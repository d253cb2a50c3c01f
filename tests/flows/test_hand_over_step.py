# SPDX-License-Identifier: Apache-2.0
"""Hand-over and prompts in a run's steps, by hand: held until mended, trained without examples."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from running import TRY, ask, contents

from configs.load import load
from flows import steps
from flows.context import Round, Run
from flows.screen import Screen
from stages import ids
from stages.chat import Messages
from stages.errors import HeldError
from stages.policies import tiny
from stages.policies.checkpoint import model_id_of
from stages.samplers import transformers
from stages.samplers.base import Completion, Engine, Request, SamplingConfig
from store.db import Store


class Wrapped:
    """An engine that claims to hold a model."""

    def __init__(self, engine: Engine, version: str) -> None:
        self._engine = engine
        self.name, self.version, self.dtype = engine.name, engine.version, engine.dtype
        self.weight_version, self.deterministic = version, engine.deterministic

    def sample(self, requests: Sequence[Request], sampling: SamplingConfig) -> Iterator[Completion]:
        return self._engine.sample(requests, sampling)

    def render(self, messages: Messages) -> tuple[int, ...] | None:
        return self._engine.render(messages)

    def close(self) -> None:
        self._engine.close()


class LastTurn(Wrapped):
    """The made-up student, who reads the last question of a chat alone."""

    def sample(self, requests: Sequence[Request], sampling: SamplingConfig) -> Iterator[Completion]:
        asked = [
            replace(r, prompt_ids=self._engine.render(r.messages[-1:]) or ()) for r in requests
        ]
        return self._engine.sample(asked, sampling)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "runs" / "store.duckdb")
    made.create()
    return made


def begin(store: Store, policy: Path, *overrides: str) -> Round:
    """Round 0 of a run, set up."""
    config = load(TRY, [f"policy={{type: folder, path: {policy}}}", "task.train=60", *overrides])
    with store.transaction() as tx:
        tx.append(
            "begin_run", run_id=ids.run_id("one"), name="one", recipe="star", config="{}",
            identity="{}", manifest="{}", forked_from=None, forked_at_round=None,
        )  # fmt: skip
    run = Run("one", ids.run_id("one"), config, store, Screen(Console(quiet=True)))
    base = model_id_of(run.base_folder)
    zero = Round(run, 0, base, base)
    steps.setup.fn(zero)
    return zero


def stale_engine(zero: Round, place: Path) -> Wrapped:
    """An engine that has another model's weights and claims to have the run's base."""
    sizes = {"digits": 3, "hidden_size": 16, "layers": 1, "heads": 1, "steps": 0}
    other = tiny.Config.model_validate({"type": "tiny", "seed": 1, **sizes})
    stale = other.build().prepare(place / "other", lambda done, total: None)
    return Wrapped(transformers.Config(type="transformers").build(stale), str(zero.base))


def test_a_run_with_a_stale_sampler_is_held_and_goes_on_once_it_is_mended(
    store: Store, tiny_folder: Path, tmp_path: Path
) -> None:
    zero = begin(store, tiny_folder, "sampler={type: transformers}")
    engine = stale_engine(zero, tmp_path)
    zero.run._engine = (zero.base, engine)
    before = contents(store.path)
    with pytest.raises(
        HeldError, match=r"suspect: weights .*start it afresh on the newest"
    ) as held:
        steps.hand_over.fn(zero)
    assert str(held.value).startswith("round 0 is held: sampler transformers and trainer differ on")
    assert held.value.exit_code == 3
    assert contents(store.path) == before
    zero.run._engine = None
    done = steps.hand_over.fn(zero)
    assert steps.hand_over.fn(zero) == done
    zero.run.close()
    (row,) = ask(
        store.path,
        "select model_id, engine, dtype, trainer_dtype, prompts, tokens > 8, mean_gap < 1e-4, "
        "threshold from hand_over",
    )
    assert row == (zero.base, "transformers", "float32", "float32", 8, True, True, 0.05)


def test_a_gap_that_the_config_allows_takes_the_place_of_the_built_in_one(
    store: Store, tiny_folder: Path, tmp_path: Path
) -> None:
    zero = begin(store, tiny_folder, "sampler={type: transformers}", "gates.max_gap=50")
    zero.run._engine = (zero.base, stale_engine(zero, tmp_path))
    steps.hand_over.fn(zero)
    zero.run.close()
    assert ask(store.path, "select mean_gap > 0.05, threshold from hand_over") == [(True, 50.0)]


def test_a_sampler_that_runs_no_model_is_not_compared(store: Store, tiny_folder: Path) -> None:
    zero = begin(store, tiny_folder)
    assert steps.hand_over.fn(zero) is None
    assert ask(store.path, "select count(*) from hand_over") == [(0,)]


SHOWN = {
    "name": "shown",
    "plain": "{question}=",
    "hint": "{question} (hint {answer})=",
    "examples": [{"question": "one+one", "answer": "2", "completion": "the example;2"}],
}


def mixed(store: Store, policy: Path, **more: Any) -> Round:
    """A round of right answers to prompts with an example, mixed."""
    prompts = json.dumps({**SHOWN, **more})
    zero = begin(store, policy, f"prompts={prompts}", "sampler.skill=0.7", "mix.seed_rows=5")
    one = Round(zero.run, 1, zero.base, zero.base)
    student = one.run.config.sampler.build(policy)
    one.run._engine = (one.start, LastTurn(student, str(one.base)))
    answers = steps.generate.fn(one)
    verdicts = steps.verify.fn(one, answers)
    steps.mix.fn(one, answers, verdicts, steps.rationalize.fn(one, verdicts))
    return one


TRAINED = """select source, count(*), bool_or(contains(p.text, 'the example')), bool_or(p.hinted),
    bool_or(p.problem_id <> t.problem_id) from training_row join prompt p using (prompt_id)
    join training_row_trajectory using (training_set_id, training_row_id)
    join trajectory t using (trajectory_id) group by all order by source"""


@pytest.mark.parametrize("kept", [False, True])
def test_examples_stand_in_sampled_prompts_and_are_trained_on_where_they_are_kept(
    store: Store, tiny_folder: Path, kept: bool
) -> None:
    mixed(store, tiny_folder, **({"keep_in_training": True} if kept else {}))
    sampled = "select bool_and(contains(text, 'the example') and shots = 1) from trajectory t "
    joined = "join prompt using (prompt_id) where t.purpose in ('train', 'rationalize')"
    assert ask(store.path, sampled + joined) == [(True,)]
    found = ask(store.path, TRAINED)
    assert [source for source, *_ in found] == ["rationalized", "round", "seed"]
    assert all(count >= 5 for _, count, *_ in found)
    assert {tuple(rest) for _, _, *rest in found} == {(kept, False, False)}


def test_a_completion_that_recites_a_held_out_problem_is_not_trained_on(
    store: Store, tiny_folder: Path
) -> None:
    """Short questions of addition have no such runs of words, so one is put beside them."""
    from flows.candidates import _reciting
    from stages.rows import Problem

    zero = begin(store, tiny_folder)
    text = "a baker makes four loaves of bread and sells two of them at the market before noon"
    held = Problem(ids.problem_id("t", text, "2"), "t", "dev", text, "2")
    zero.run.evaluation_problems[held.problem_id] = held
    one, two, three = (ids.mint("t", n) for n in range(3))
    completions = {one: f"we are told that {text}; so 2", two: "we are told of a baker;" * 9,
                   three: text[:20]}  # fmt: skip
    assert _reciting(zero, completions) == {one}
    warned = begin_again(zero, "decontaminate.on_contamination=warn")
    assert _reciting(warned, completions) == set()
    exact = begin_again(zero, "decontaminate.rules=[exact]")
    assert _reciting(exact, completions) == set()


def begin_again(zero: Round, *overrides: str) -> Round:
    """The same round under another config."""
    run = zero.run
    config = load(TRY, list(overrides))
    other = Run(run.name, run.run_id, config, run.store, run.screen)
    other.__dict__["evaluation_problems"] = run.evaluation_problems
    return replace(zero, run=other)
