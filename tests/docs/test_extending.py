# SPDX-License-Identifier: Apache-2.0
"""docs/extending.md, word for word: in a copy of the checkout, with a run of all that it adds."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import DOCS, ROOT, Block, blocks
from running import Ended, ask, starloop

PAGE = blocks(DOCS / "extending.md")
HOUSE = ("configs", "flows", "report", "stages", "store")


def apply(block: Block, root: Path) -> None:
    """Write a block's file, or make the changes of a diff: each run of lines that goes, once."""
    path = root / block.title
    if block.language != "diff":
        assert not path.exists(), path
        path.write_text(block.text)
        return
    text = path.read_text()
    old: list[str] = []
    new: list[str] = []
    for line in [*block.text.splitlines(), "-"]:
        if line.startswith("-") and new:
            before, after = ("".join(f"{each}\n" for each in lines) for lines in (old, new))
            assert text.count(before) == 1, f"{block.title}: {before!r}"
            text = text.replace(before, after)
            old, new = [], []
        (old if line.startswith("-") else new).append(line[1:])
    path.write_text(text)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages with everything that the page adds."""
    root = tmp_path_factory.mktemp("checkout")
    for name in HOUSE:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for block in PAGE:
        if block.title:
            apply(block, root)
    return root


@pytest.fixture(scope="module")
def run(checkout: Path) -> Ended:
    ended = starloop("run", "configs/expert.yaml", cwd=checkout, PYTHONPATH=str(checkout))
    assert (ended.code, ended.err) == (0, "")
    return ended


@pytest.fixture(scope="module")
def store(run: Ended, checkout: Path) -> Path:
    return checkout / "runs" / "store.duckdb"


def test_the_page_ends_with_the_command_that_is_run_here() -> None:
    assert PAGE[-1].text == "starloop run configs/expert.yaml\n"


def test_the_run_names_every_part_of_the_page(run: Ended) -> None:
    assert "expert: task letters, policy tiny, 2 answers to 30 problems a round" in run.out
    assert "reward last_line; update plain from round_start" in run.out


def test_a_task_is_added(store: Path) -> None:
    found = ask(store, "select count(*), count(distinct split), min(len(question)) from problem")
    assert found[0][0] >= 60 + 10
    assert ask(store, "select distinct task from problem") == [("letters",)]
    assert ask(store, "select count(*) from problem where answer <> len(question)") == [(0,)]


def test_a_verifier_is_added(store: Path) -> None:
    assert ask(store, "select name, version from verifier") == [("last_line", "1")]
    reasons = ask(store, "select distinct status, reason from verdict order by all")
    assert reasons == [("correct", "match"), ("wrong", "mismatch")]


def test_a_sampler_is_added(store: Path) -> None:
    ((right,),) = ask(store, "select avg((status = 'correct')::integer) from verdict")
    assert right == pytest.approx(0.5, abs=0.12)
    others = "select count(*) from trajectory where not regexp_full_match(completion, '[0-9]+')"
    assert ask(store, others) == [(0,)]


def test_an_updater_is_added(store: Path) -> None:
    found = ask(
        store,
        "select u.updater, u.steps_done, sum(v.visits), u.loss > 0 from training_update u "
        "join training_visit v using (update_id) "
        "group by u.update_id, u.updater, u.steps_done, u.loss",
    )
    assert found == [("plain", 5, 20, True)] * 2


def test_a_recipe_is_added(store: Path) -> None:
    assert ask(store, "select recipe from run") == [("expert",)]
    # round 2's update starts from round 1's model, not from the base
    starts = ask(
        store,
        "select s.round, u.init_model_id = m.id from step_output s "
        "join training_update u on u.update_id = s.id "
        "join step_output m on m.kind = 'model' and m.round = s.round - 1 "
        "where s.kind = 'training_update' order by s.round",
    )
    assert starts == [(1, True), (2, True)]


def test_what_is_added_is_described_and_typed(checkout: Path) -> None:
    ended = starloop("describe", "configs/expert.yaml", cwd=checkout, PYTHONPATH=str(checkout))
    assert ended.code == 0, ended.err
    assert "right answers" in ended.out
    files = [block.title for block in PAGE if block.language == "python"]
    for command in (["check", "--quiet"], ["format", "--check", "--quiet"]):
        words = [Path(sys.executable).with_name("ruff"), *command, *files]
        config = ["--config", str(ROOT / "pyproject.toml")]
        done = subprocess.run([*words, *config], cwd=checkout, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
