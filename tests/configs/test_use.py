# SPDX-License-Identifier: Apache-2.0
"""`use`: files below a config, and recipes that lack a part."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from configs.files import FOLDER, laid, read
from configs.load import load
from stages.errors import ConfigError

MINE: dict[str, Any] = {
    "recipe": "star",
    "policy": {"type": "tiny"},
    "sampler": {"type": "scripted"},
    "update": {"updater": {"type": "tally"}},
}
TASKS = sorted(path.stem for path in (FOLDER / "tasks").glob("*.yaml"))
UNJUDGED = {"math": "math", "math500": "math", "humaneval": "code", "mbpp": "code"}


def write(folder: Path, name: str, values: Any) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def refusal(path: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as refused:
        load(path, overrides)
    assert len(str(refused.value).splitlines()) == 1
    return str(refused.value)


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "train.jsonl"
    path.write_text('{"question": "2 and 2?", "answer": "#### 4"}\n')
    return f"task.files.train={path}"


def test_own_values_lie_over_those_of_the_used_file(tmp_path: Path) -> None:
    write(tmp_path, "base", {"a": {"b": 1, "c": 2}, "d": [1], "e": 5})
    top = write(tmp_path, "top", {"use": "base", "a": {"c": 3}, "d": [2], "e": None})
    assert read(top) == {"a": {"b": 1, "c": 3}, "d": [2], "e": None}


def test_a_list_is_laid_one_upon_the_other_and_files_may_use_files(tmp_path: Path) -> None:
    write(tmp_path, "deep", {"a": 0, "b": 0, "c": 0, "d": 0})
    write(tmp_path, "one", {"use": "deep.yaml", "b": 1, "c": 1})
    write(tmp_path, "two", {"c": 2})
    top = write(tmp_path, "top", {"use": ["one", "two"], "d": 3})
    assert read(top) == {"a": 0, "b": 1, "c": 2, "d": 3}


def test_a_part_of_another_type_takes_the_place_of_the_one_below_whole() -> None:
    below = {"task": {"type": "jsonl", "files": {"train": "a"}, "name": "n"}}
    assert laid(below, {"task": {"type": "addition"}}) == {"task": {"type": "addition"}}
    assert laid(below, {"task": {"name": "m"}})["task"]["files"] == {"train": "a"}
    assert laid(below, {"task": {"type": "jsonl", "name": "m"}})["task"]["name"] == "m"


trees = st.recursive(
    st.integers(), lambda below: st.dictionaries(st.sampled_from("abc"), below, max_size=3)
)
roots = st.dictionaries(st.sampled_from("abc"), trees, max_size=3)


@given(roots, roots)
def test_laying_keeps_every_own_value_and_changes_neither(below: Any, own: Any) -> None:
    before = repr((below, own))
    merged = laid(below, own)
    assert repr((below, own)) == before
    assert laid(merged, own) == merged and laid({}, own) == own
    assert merged.keys() == below.keys() | own.keys()


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ("tasks/gsm8", "did you mean tasks/gsm8k?"),
        ("nowhere", "which is no file under configs/ or beside the config"),
        (3, "use is 3: name a file such as tasks/gsm8k"),
        ([["a"]], "use is [['a']]: name a file"),
        ("top", "use goes in a circle (top.yaml → top.yaml)"),
        ("round", "use goes in a circle (top.yaml → round.yaml → top.yaml)"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, use: Any, said: str) -> None:
    write(tmp_path, "round", {"use": "top"})
    assert said in refusal(write(tmp_path, "top", {**MINE, "use": use}))


def test_a_file_may_be_used_twice_without_a_circle(tmp_path: Path) -> None:
    write(tmp_path, "deep", {"a": 1})
    write(tmp_path, "one", {"use": "deep"})
    top = write(tmp_path, "top", {"use": ["one", "deep"]})
    assert read(top) == {"a": 1}


@pytest.mark.parametrize("name", [name for name in TASKS if name not in UNJUDGED])
def test_a_run_may_use_a_task_recipe(tmp_path: Path, name: str, data: str) -> None:
    config = load(write(tmp_path, "mine", {**MINE, "use": f"tasks/{name}"}), [data])
    assert config.task.build().name == name
    assert "use" not in config.model_dump()


@pytest.mark.parametrize("name", UNJUDGED)
def test_a_recipe_whose_verifier_is_not_built_says_what_it_needs(
    tmp_path: Path, name: str, data: str
) -> None:
    line = refusal(write(tmp_path, "mine", {**MINE, "use": f"tasks/{name}"}), data)
    assert line.startswith(f"verifier.type: {UNJUDGED[name]!r} is not built yet (it needs a")


def test_every_task_recipe_is_either_judged_or_listed_here() -> None:
    assert set(UNJUDGED) <= set(TASKS)
    for name in TASKS:
        verifier = read(FOLDER / "tasks" / f"{name}.yaml")["verifier"]["type"]
        assert UNJUDGED.get(name, verifier) == verifier
        assert (verifier in ("math", "code")) == (name in UNJUDGED)


def test_a_recipe_named_as_a_type_is_pointed_to(tmp_path: Path) -> None:
    line = refusal(write(tmp_path, "mine", {**MINE, "task": {"type": "gsm8k"}, "verifier": {}}))
    assert "it is a recipe: write `use: tasks/gsm8k` in the config" in line


@pytest.mark.parametrize("verifier", ["none", {"type": "none"}])
def test_a_run_without_a_verifier_is_refused_by_name(tmp_path: Path, verifier: Any) -> None:
    mine = {**MINE, "task": {"type": "addition"}, "verifier": verifier}
    line = refusal(write(tmp_path, "mine", mine))
    assert line.startswith("verifier: 'none' checks no answer, so nothing can be learned from it")
