# SPDX-License-Identifier: Apache-2.0
"""A step is done exactly once: by hand, without a Prefect server (`.fn` is the bare step)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from running import TRY, ask, contents

from configs.load import load
from flows import steps
from flows.commit import Done, Output, Workspace, once
from flows.context import Round, Run
from flows.screen import Screen
from stages import ids
from stages.errors import StoreError
from stages.policies.checkpoint import model_id_of
from stages.rows import Problem, Trajectory
from stages.samplers.base import Completion, Engine, Request, SamplingConfig
from stages.shards import read_shards, write_shard
from store.db import Store

SMALL = ["generate.problems.per_round=20", "sampler.shard_size=8", "task.train=40"]


def begin(store: Store, name: str, models: Path, *overrides: str) -> Round:
    """Round 1 of a run whose round 0 has its setup step."""
    policy = f"policy={{type: folder, path: {models}}}"
    config = load(TRY, [policy, *SMALL, *overrides])
    with store.transaction() as tx:
        tx.append(
            "begin_run",
            run_id=ids.run_id(name), name=name, recipe="star", config="{}", identity="{}",
            manifest="{}", forked_from=None, forked_at_round=None,
        )  # fmt: skip
    screen = Screen(Console(quiet=True))
    run = Run(name, ids.run_id(name), config, store, screen)
    base = model_id_of(run.base_folder)
    bare(steps.setup, Round(run, 0, base, base))
    return Round(run, 1, base, base)


def bare(step: Any, *arguments: Any) -> Done:
    done: Done = step.fn(*arguments)
    return done


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "runs" / "store.duckdb")
    made.create()
    return made


@pytest.fixture
def round_one(store: Store, tiny_folder: Path) -> Round:
    return begin(store, "one", tiny_folder)


def test_a_steps_runs_are_named_by_the_round_and_its_verb(round_one: Round) -> None:
    def named(step: Any, r: Round, **more: int) -> str:
        name: str = step.task_run_name(parameters={"r": r, **more})
        return name

    assert named(steps.generate, round_one) == "round 1 · generate"
    assert named(steps.generate, round_one, turn=1) == "round 1 · generate-2"
    assert named(steps.evaluate, replace(round_one, number=0)) == "base · evaluate"


class Cut(Exception):
    """The end of a process, as far as a step can see."""


class Cutting:
    """The scripted sampler, which counts its slots and is cut off before batch `after`."""

    def __init__(self, engine: Engine, after: int | None = None) -> None:
        self._engine, self._after = engine, after
        self.name, self.version, self.dtype = engine.name, engine.version, engine.dtype
        self.weight_version, self.deterministic = engine.weight_version, engine.deterministic
        self.asked: list[Request] = []

    def sample(self, requests: Any, sampling: SamplingConfig) -> Iterator[Completion]:
        if self._after is not None and len(self.asked) >= 8 * self._after:
            raise Cut
        self.asked += requests
        return self._engine.sample(requests, sampling)

    def close(self) -> None:
        self._engine.close()


def lend(r: Round, after: int | None = None) -> Cutting:
    """Have the round's sampler counted, and cut off."""
    engine = Cutting(r.run.config.sampler.build(r.run.checkpoint(r.start)), after)
    r.run._engine = (r.start, engine)
    return engine


def problem_output(name: str) -> Output:
    problem = Problem(ids.problem_id("t", name, "a"), "t", "train", name, "a")
    return Output([(Problem, [problem])], {"problem": [problem.problem_id]})


def test_a_step_is_made_once_and_found_from_then_on(round_one: Round) -> None:
    key = ids.step_key("test", 1, [], "")
    made: list[Workspace] = []

    def make(space: Workspace) -> Output:
        made.append(space)
        return problem_output("once")

    first = once(round_one, "test", key, make)
    before = contents(round_one.run.store.path)
    assert once(round_one, "test", key, make) == first == Done("test", key)
    assert len(made) == 1
    assert contents(round_one.run.store.path) == before


def test_a_step_of_another_run_is_taken_over_and_marked_so(
    round_one: Round, tiny_folder: Path
) -> None:
    store = round_one.run.store
    answers = bare(steps.generate, round_one)
    other = begin(store, "two", tiny_folder)
    engine = lend(other)
    assert bare(steps.generate, other) == answers
    assert engine.asked == []
    found = ask(
        store.path,
        "select name, s.reused, count(*), bool_and(o.reused), bool_or(o.reused) from step_run s "
        "join run using (run_id) join step_output o using (run_id, round, refresh, step) "
        "where step = 'generate' group by all order by name",
    )
    assert found == [("one", False, 20, False, False), ("two", True, 20, True, True)]


def test_what_is_not_usable_is_made_again(round_one: Round, tiny_folder: Path) -> None:
    key = ids.step_key("test", 1, [], "")
    once(round_one, "test", key, lambda space: problem_output("first"))
    other = begin(round_one.run.store, "two", tiny_folder)
    once(other, "test", key, lambda space: problem_output("again"), lambda r, source: False)
    found = ask(
        round_one.run.store.path,
        "select name, s.reused, question from step_run s join run using (run_id) "
        "join step_output o using (run_id, round, refresh, step) "
        "join problem on problem_id = o.id where step = 'test' order by name",
    )
    assert found == [("one", False, "first"), ("two", False, "again")]


def test_a_committed_step_with_another_key_is_refused(round_one: Round) -> None:
    keys = [ids.step_key("test", version, [], "") for version in (1, 2)]
    once(round_one, "test", keys[0], lambda space: problem_output("first"))
    before = contents(round_one.run.store.path)
    with pytest.raises(StoreError, match="round 1, step test was committed with another key"):
        once(round_one, "test", keys[1], lambda space: problem_output("second"))
    assert contents(round_one.run.store.path) == before


def test_a_step_that_fails_is_not_committed(round_one: Round) -> None:
    def fail(space: Workspace) -> Output:
        raise Cut

    before = contents(round_one.run.store.path)
    with pytest.raises(Cut):
        once(round_one, "test", ids.step_key("test", 1, [], ""), fail)
    assert contents(round_one.run.store.path) == before


def test_an_output_that_the_store_refuses_is_not_committed(round_one: Round) -> None:
    good = problem_output("good").rows
    one = Problem(ids.problem_id("t", "q", "a"), "t", "train", "q", "a")
    other = Problem(one.problem_id, "t", "dev", "q", "a")
    before = contents(round_one.run.store.path)
    with pytest.raises(StoreError, match="two problem rows"):
        once(
            round_one,
            "test",
            ids.step_key("test", 1, [], ""),
            lambda space: Output([*good, (Problem, [one, other])], {}),
        )
    assert contents(round_one.run.store.path) == before


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_step_that_is_cut_keeps_its_shards_and_samples_the_rest_only(
    round_one: Round, after: int
) -> None:
    cut = lend(round_one, after)
    with pytest.raises(Cut):
        bare(steps.generate, round_one)
    work = round_one.run.folder / "work"
    kept = read_shards(sorted(work.glob("*/shards/*.parquet")), Trajectory)
    assert [row.seed for row in sorted(kept, key=lambda row: row.seed or 0)] == sorted(
        request.seed for request in cut.asked
    )
    assert len(kept) == 8 * after
    rest = lend(round_one)
    bare(steps.generate, round_one)
    assert len(rest.asked) == 20 - 8 * after
    assert {r.trajectory_id for r in rest.asked}.isdisjoint(row.trajectory_id for row in kept)
    assert list(work.iterdir()) == []


def rounds_rows(r: Round) -> dict[str, list[tuple[Any, ...]]]:
    tables = contents(r.run.store.path)
    return {name: tables[name] for name in ("trajectory", "verdict", "decision", "training_row",
                                            "training_visit", "training_update")}  # fmt: skip


def one_round(r: Round) -> None:
    """A round of STaR, step by step, without the evaluation."""
    answers = bare(steps.generate, r)
    verdicts = bare(steps.verify, r, answers)
    hinted = bare(steps.rationalize, r, verdicts)
    mixed = bare(steps.mix, r, answers, verdicts, hinted)
    bare(steps.update, r, mixed, r.init)


def test_a_policy_folder_of_the_users_trains_in_a_new_store(round_one: Round) -> None:
    one_round(round_one)
    store = round_one.run.store
    trained = ask(store.path, "select origin, path from model where origin = 'update'")
    assert [path.name for path in (store.folder / "models").iterdir()] == [
        path.removeprefix("models/") for _, path in trained
    ]


def test_a_round_cut_in_a_step_ends_with_the_rows_of_one_that_was_not(
    store: Store, tmp_path: Path, tiny_folder: Path
) -> None:
    whole = begin(store, "one", tiny_folder)
    one_round(whole)
    second = Store(tmp_path / "second" / "store.duckdb")
    second.create()
    torn = begin(second, "one", tiny_folder)
    for after in (1, 2):
        lend(torn, after)
        with pytest.raises(Cut):
            one_round(torn)
    lend(torn)
    one_round(torn)
    assert rounds_rows(torn) == rounds_rows(whole)


@pytest.mark.parametrize("step", [steps.setup, steps.generate, steps.verify, steps.update])
def test_prefect_caches_no_step(step: Any) -> None:
    from prefect.cache_policies import NO_CACHE

    assert step.cache_policy == NO_CACHE
    assert step.persist_result is False


def test_an_update_whose_checkpoint_is_gone_is_made_again(
    round_one: Round, tiny_folder: Path
) -> None:
    one_round(round_one)
    store = round_one.run.store
    ((path,),) = ask(store.path, "select path from model where origin = 'update'")
    marker = store.folder / path / "COMPLETE"
    marker.unlink()
    other = begin(store, "two", tiny_folder)
    one_round(other)
    reused = ask(
        store.path,
        "select step, reused from step_run join run using (run_id) "
        "where name = 'two' and round = 1 order by step",
    )
    assert reused == [
        ("generate", True),
        ("mix", True),
        ("rationalize", True),
        ("update", False),
        ("verify", True),
    ]
    assert marker.exists()


def test_a_sampler_that_gives_more_words_than_numbers_is_an_error(round_one: Round) -> None:
    """Nothing of a faulty batch is kept."""
    from stages.errors import SamplerError

    engine = lend(round_one)
    sample: Callable[..., Iterator[Completion]] = engine.sample

    class Faulty(Cutting):
        def sample(self, requests: Any, sampling: SamplingConfig) -> Iterator[Completion]:
            return islice(sample(requests, sampling), 1, None)

    round_one.run._engine = (round_one.start, Faulty(engine))
    with pytest.raises(SamplerError, match="left 1 of 8 slots empty"):
        bare(steps.generate, round_one)
    assert list((round_one.run.folder / "work").rglob("*.parquet")) == []


def test_of_two_runs_that_fill_a_slot_at_once_the_first_commit_stays(
    round_one: Round, tiny_folder: Path
) -> None:
    """Run two samples, run one commits meanwhile; two takes the slots over and says so."""
    store = round_one.run.store
    other = begin(store, "two", tiny_folder, "sampler.skill=1.0")

    class Slow(Cutting):
        def sample(self, requests: Any, sampling: SamplingConfig) -> Iterator[Completion]:
            if not self.asked:
                bare(steps.generate, round_one)
            return super().sample(requests, sampling)

    other.run._engine = (other.start, Slow(lend(other)._engine))
    bare(steps.generate, other)
    used = (
        "select id from step_output join run using (run_id) where kind = 'trajectory' and name = "
    )
    assert ask(store.path, f"{used} 'two' and round = 1 order by id") == ask(
        store.path, f"{used} 'one' and round = 1 order by id"
    )
    events = ask(store.path, "select name, kind from event join run using (run_id)")
    assert [event for event in events if event[1] != "reused"] == [("two", "slot_taken_over")]


def test_an_arm_with_other_steps_on_the_same_rows_has_a_model_of_its_own(
    round_one: Round, tiny_folder: Path
) -> None:
    one_round(round_one)
    other = begin(round_one.run.store, "two", tiny_folder, "update.steps.first=7")
    one_round(other)
    found = ask(
        round_one.run.store.path,
        "select name, steps_done, model_id from training_update "
        "join step_output on id = update_id join run using (run_id) order by name",
    )
    assert [(name, steps) for name, steps, _ in found] == [("one", 30), ("two", 7)]
    assert found[0][2] != found[1][2]


def test_epochs_are_counted_in_the_rows_that_the_mix_chose(
    round_one: Round, tiny_folder: Path
) -> None:
    other = begin(
        round_one.run.store, "two", tiny_folder, "update.steps={epochs: 3}",
        "update.updater.batch_size=4",
    )  # fmt: skip
    one_round(other)
    found = ask(
        other.run.store.path,
        "select rows, steps_planned, sum(visits) from training_update u "
        "join training_set using (training_set_id) join training_visit using (update_id) "
        "group by all",
    )
    ((rows, steps, visits),) = found
    assert steps == -(-3 * rows // 4)
    assert visits == 4 * steps >= 3 * rows


def test_an_arm_with_another_k_has_measures_of_its_own(round_one: Round, tiny_folder: Path) -> None:
    store = round_one.run.store
    other = begin(store, "two", tiny_folder, "evaluate.k=2")
    for r in (round_one, other):
        bare(steps.evaluate, Round(r.run, 0, r.base, r.base))
    found = ask(store.path, "select run, k from round_summary where round = 0 order by run")
    assert found == [("one", 4), ("two", 2)]


def test_a_shard_whose_rows_are_not_what_their_ids_say_is_refused(round_one: Round) -> None:
    lend(round_one, 1)
    with pytest.raises(Cut):
        bare(steps.generate, round_one)
    (shard,) = (round_one.run.folder / "work").glob("*/shards/*.parquet")
    first, *rest = read_shards([shard], Trajectory)
    write_shard(shard, Trajectory, [replace(first, token_ids=(5, 6)), *rest])
    with pytest.raises(StoreError, match="with other content than its ids say: delete that folder"):
        bare(steps.generate, round_one)


def test_rows_of_other_slots_in_a_shard_are_left_alone(round_one: Round) -> None:
    lend(round_one, 1)
    with pytest.raises(Cut):
        bare(steps.generate, round_one)
    (shard,) = (round_one.run.folder / "work").glob("*/shards/*.parquet")
    first, *_ = read_shards([shard], Trajectory)
    foreign = replace(first, trajectory_id=ids.mint("t", 1))
    write_shard(shard.with_name("foreign.parquet"), Trajectory, [foreign])
    rest = lend(round_one)
    bare(steps.generate, round_one)
    assert len(rest.asked) == 12
