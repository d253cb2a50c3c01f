# SPDX-License-Identifier: Apache-2.0
"""A train file that grows under a run: real files, whole rounds, cut and killed ones."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import pytest
from rich.console import Console
from running import TRY, ask, clean_environment, facts, server, starloop

from configs.load import load
from configs.schema import Config
from flows import loop, recipes, sampling, steps
from flows.firing import carry_on, new_problems
from flows.fork import Fork
from flows.screen import Screen
from stages import shards
from stages.errors import ConfigError
from stages.imports.files import file_hash
from stages.tasks import addition
from store.db import Store

PAIRS = [
    (p.question, p.answer)
    for p in addition.Config(type="addition", digits=3, train=60, held_out=4)
    .build()
    .problems("train")
]
OLD, NEW, DEV = PAIRS[:24], PAIRS[24:30], PAIRS[50:54]
Pairs = Sequence[tuple[str, str]]


class Files:
    """Train and dev of a task, a store beside them, and how a run is carried on."""

    def __init__(self, folder: Path, policy: Path) -> None:
        self.folder, self.policy = folder, policy
        self.store = Store(folder / "runs" / "store.duckdb")
        self.write(OLD)
        self.write(DEV, "dev")

    def write(self, pairs: Pairs, name: str = "train") -> None:
        lines = [json.dumps({"question": q, "answer": a}) + "\n" for q, a in pairs]
        (self.folder / f"{name}.jsonl").write_text("".join(lines))

    def path(self, name: str = "train") -> Path:
        return self.folder / f"{name}.jsonl"

    def overrides(self, *more: str) -> list[str]:
        files = {name: str(self.path(name)) for name in ("train", "dev")}
        return [
            f"task={json.dumps({'type': 'jsonl', 'name': 'sums', 'files': files})}",
            f"policy={{type: folder, path: {self.policy}}}",
            "prompts={name: asked, plain: '{question}'}",
            *("rationalize={enabled: false}", "mix.seed_rows=0", "generate.problems.per_round=all"),
            *("evaluate.n=2", "evaluate.k=2", "sampler.shard_size=2", "gates.preflight=warn"),
            "decontaminate={dedup: exact}",
            *more,
        ]

    def config(self, *more: str) -> Config:
        return load(TRY, self.overrides(*more))

    def run(self, until: int, *more: str, name: str = "one", fork: Fork | None = None) -> str:
        """Carry a run on to a round; what it said."""
        said = StringIO()
        screen = Screen(Console(width=400, file=said))
        config = self.config("rounds=9", *more)
        loop.run_rounds(name, config, self.store, screen, fork, until)
        return said.getvalue()

    def ask(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return ask(self.store.path, sql, *values)

    def sampled(self, number: int, name: str = "one") -> set[str]:
        found = self.ask(
            "select question from step_output s join trajectory t on t.trajectory_id = s.id "
            "join problem using (problem_id) "
            "where s.run = ? and s.round = ? and s.step = 'generate' and s.kind = 'trajectory'",
            name, number,
        )  # fmt: skip
        return {question for (question,) in found}

    def steps(self, name: str = "one") -> list[tuple[int, str]]:
        return self.ask("select round, step from step_run where run = ? order by all", name)


def questions(pairs: Pairs) -> set[str]:
    return {question for question, _ in pairs}


@pytest.fixture
def files(tmp_path: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Rounds are run by the loop itself, their steps without Prefect."""
    for name in steps.__all__:
        monkeypatch.setattr(steps, name, getattr(steps, name).fn)
    monkeypatch.setattr(recipes, "run_round", recipes.work)
    monkeypatch.setattr(loop, "prefect_server", lambda home: nullcontext())
    return Files(tmp_path, tiny_folder)


class Cut(BaseException):
    """The end of a process, as far as a round can see."""


def cut_after(monkeypatch: pytest.MonkeyPatch, last: int) -> Callable[[], None]:
    """Have the process end after its `last` shard; calling it mends that."""
    write, written = shards.write_shard, [0]

    def shard(path: Path, *rest: Any) -> None:
        write(path, *rest)
        written[0] += 1
        if written[0] == last:
            raise Cut

    monkeypatch.setattr(sampling, "write_shard", shard)
    return lambda: monkeypatch.setattr(sampling, "write_shard", write)


def test_a_grown_file_is_admitted_by_the_next_round_and_recorded(files: Files) -> None:
    files.run(1)
    old = file_hash(files.path())
    repeat = (f"{OLD[3][0]};", OLD[3][1])  # the same words as a problem of old
    files.write([NEW[0], *OLD, *NEW[1:], DEV[0], ("", "7"), repeat])
    said = files.run(2)
    assert "the train file gained 7 problems: the next round that begins admits them" in said
    assert files.sampled(1) == questions(OLD)
    assert files.sampled(2) == questions([*OLD, *NEW])
    ((message, detail),) = files.ask("select message, detail from event where kind = 'grown'")
    now = file_hash(files.path())
    assert message == f"the train file gained 7 problems (task.sha256.train: {old} → {now})"
    assert json.loads(detail)["problems"] == 7
    decided = files.ask(
        "select coalesce(nullif(p.question, ''), place), why from step_run s "
        "join problem_decision d using (step_key) join problem p using (problem_id) "
        "where s.step = 'admit' and s.round = 2 order by all"
    )
    assert decided == sorted(
        [
            (repeat[0], "duplicate"),
            (DEV[0][0], "duplicate"),
            ("train.jsonl:32", "no_question"),
        ]
    )
    before = files.steps()
    assert [round_ for round_, step in before if step == "admit"] == [0, 2]
    files.run(3)
    assert files.sampled(3) == questions([*OLD, *NEW])
    assert (3, "admit") not in files.steps()
    assert files.ask("select count(*) from event where kind = 'grown'") == [(1,)]


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 24], ids=["before", "after"])
def test_a_round_that_was_cut_is_as_if_the_file_had_not_grown(
    files: Files, tmp_path: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    (tmp_path / "calm").mkdir()
    calm = Files(tmp_path / "calm", tiny_folder)
    seeded = ["generate.problems={per_round: 10, order: seeded}"]
    calm.run(2, *seeded)
    files.run(1, *seeded)
    mend = cut_after(monkeypatch, 2)
    with pytest.raises(Cut):
        files.run(2, *seeded)
    mend()
    (kept,) = (files.store.folder / "one" / "work").glob("*/shards")
    assert len(list(kept.iterdir())) == 2
    files.write([*OLD[:place], *NEW, *OLD[place:]])
    asked: list[int] = []
    write = shards.write_shard

    def counted(path: Path, kind: type, rows: Sequence[Any]) -> None:
        asked.append(len(rows))
        write(path, kind, rows)

    monkeypatch.setattr(sampling, "write_shard", counted)
    files.run(2, *seeded)
    assert sum(asked) == 10 - 4 + 2 * 4  # what was left of generate, and evaluate
    left, right = facts(files.store.path), facts(calm.store.path)
    assert {t for t in left if left[t] != right[t]} == set()
    assert files.ask("select count(*) from step_output where step = 'generate' and round = 2") == [
        (10,)
    ]
    assert (2, "admit") not in files.steps()
    files.run(3, *seeded)
    assert (3, "admit") in files.steps()
    assert len(files.sampled(3)) == 10


def test_the_base_that_was_cut_is_measured_as_if_the_file_had_not_grown(
    files: Files, tmp_path: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "calm").mkdir()
    calm = Files(tmp_path / "calm", tiny_folder)
    calm.run(0)
    mend = cut_after(monkeypatch, 1)
    with pytest.raises(Cut):
        files.run(0)
    mend()
    files.write([*OLD, *NEW])
    files.run(0)
    assert facts(files.store.path) == facts(calm.store.path)
    files.run(1)
    assert files.sampled(1) == questions([*OLD, *NEW])


def changed(pairs: Pairs) -> list[tuple[str, str]]:
    return [(pairs[0][0], str(int(pairs[0][1]) + 1)), *pairs[1:]]


@pytest.mark.parametrize(
    ("train", "dev", "says"),
    [
        ([*changed(OLD), *NEW], DEV, f"train problem '{OLD[0][0]}' is gone or changed)"),
        ([*OLD[2:], *NEW], DEV, "is gone or changed (and 1 more))"),
        (OLD, [*DEV, NEW[0]], f"dev problem '{NEW[0][0]}' is new)"),
        ([*OLD, *NEW], changed(DEV), f"dev problem '{DEV[0][0]}' is gone or changed)"),
        ([*OLD, (DEV[1][0], "1")], DEV, f"dev problem '{DEV[1][0]}' is gone or changed)"),
        (OLD, [*DEV[1:], DEV[0]], "a held-out file may not change)"),
    ],
    ids=["changed", "removed", "more dev", "changed dev", "contradicted dev", "dev in order"],
)
def test_what_is_no_growth_is_refused_with_the_first_that_differs(
    files: Files, train: Pairs, dev: Pairs, says: str
) -> None:
    files.run(0)
    files.write(train)
    files.write(dev, "dev")
    with pytest.raises(ConfigError) as refused:
        files.run(1)
    line = str(refused.value)
    assert "; a train file may gain problems, but " in line
    assert says in line
    assert "start a run of its own with --name one-2 (and --fork one@ROUND" in line
    assert files.ask("select count(*) from event where kind in ('grown', 'config_changed')") == [
        (0,)
    ]


def test_a_file_that_dev_is_cut_from_may_not_grow(files: Files) -> None:
    cut = [f"task={{type: jsonl, files: {{train: {files.path()}}}, split: {{dev: 0.2}}}}"]
    files.run(0, *cut)
    files.write([*OLD, *NEW])
    with pytest.raises(ConfigError, match=r"dev is cut from it \(task.split\), so name dev data"):
        files.run(1, *cut)


def test_another_change_beside_the_growth_is_refused(files: Files) -> None:
    files.run(0)
    files.write([*OLD, *NEW])
    with pytest.raises(ConfigError, match=r"another config \(seed: 0 → 1; task.sha256.train: "):
        files.run(1, "seed=1")


@pytest.mark.slow
def test_a_cut_round_whose_rows_were_put_in_another_order_is_refused(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.run(0)
    mend = cut_after(monkeypatch, 2)
    with pytest.raises(Cut):
        files.run(1)
    mend()
    shuffled = [*OLD, *NEW]
    random.Random(0).shuffle(shuffled)
    files.write(shuffled)
    with pytest.raises(ConfigError, match="problems of round 1 stand in another order than when"):
        files.run(1)
    files.write([*OLD, *NEW])
    files.run(2)
    assert (files.sampled(1), files.sampled(2)) == (questions(OLD), questions([*OLD, *NEW]))


def test_a_fork_admits_what_its_file_has_more(files: Files) -> None:
    files.run(1)
    files.write([*OLD[4:], *NEW])
    files.run(2, name="bent", fork=Fork("one", 1))
    assert files.sampled(2, "bent") == questions([*OLD[4:], *NEW])
    assert [place for place in files.steps("bent") if place[1] == "admit"] == [
        (0, "admit"),
        (2, "admit"),
    ]


@pytest.mark.slow
def test_a_run_that_wrote_down_no_problems_does_so_in_its_next_round(files: Files) -> None:
    """As runs of old stores: until then, their file may not grow."""
    files.run(1)
    with duckdb.connect(str(files.store.path)) as connection:
        connection.execute("delete from step_output where step = 'admit'")
    files.write([*OLD, *NEW])
    with pytest.raises(ConfigError, match=r"\(task.sha256.train: \w+ → \w+\): use that config"):
        files.run(2)
    files.write(OLD)
    files.run(2)
    assert files.sampled(2) == questions(OLD)
    files.write([*OLD, *NEW])
    files.run(3)
    assert files.sampled(3) == questions([*OLD, *NEW])


def fire(files: Files) -> str:
    """A firing that is told to work on new problems alone."""
    config, screen = files.config(), Screen(Console(quiet=True))
    return carry_on("one", config, files.store.path, screen, 1, None, True)


def test_a_firing_on_new_problems_works_once_after_the_file_has_grown(files: Files) -> None:
    assert fire(files) == "round 1 of run one is done"
    assert "has sampled every train problem of its task, there is no new one" in fire(files)
    files.write([*OLD, *NEW, DEV[0]])
    assert new_problems(files.store, "one", files.config()) == len(NEW)
    assert fire(files) == "round 2 of run one is done"
    assert files.sampled(2) == questions([*OLD, *NEW])
    assert "there is no new one" in fire(files)


@pytest.mark.slow
def test_a_run_that_is_killed_in_generate_goes_on_with_the_problems_that_it_began_with(
    files: Files, tmp_path: Path, tiny_folder: Path
) -> None:
    (tmp_path / "calm").mkdir()
    calm = Files(tmp_path / "calm", tiny_folder)
    calm.run(1, "generate.n=40", "rounds=1")
    given = [*files.overrides("generate.n=40", "rounds=1"), "--name", "one"]
    command = [str(Path(sys.executable).with_name("starloop")), "run", str(TRY), *given]
    process = subprocess.Popen(
        [*command, "--store", str(files.store.path)],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env=clean_environment(PREFECT_API_URL=server()),
    )
    deadline = time.monotonic() + 120
    while len(list(files.store.folder.glob("one/work/*/shards/*.parquet"))) < 10:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert (1, "generate") not in files.steps()
    files.write([*NEW, *OLD])
    ended = starloop("run", TRY, *given, "--store", files.store.path)
    assert (ended.code, ended.err) == (0, "")
    assert facts(files.store.path) == facts(calm.store.path)
