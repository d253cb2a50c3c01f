# SPDX-License-Identifier: Apache-2.0
"""`scripted`: replies from a table, and a student of known skill."""

from pathlib import Path
from typing import Any

import pytest

from stages import ids
from stages.policies.checkpoint import load_tokenizer
from stages.samplers import Engine, Request, SamplingConfig, scripted
from stages.updaters import Item, Plan, tally

SAMPLING = SamplingConfig(max_tokens=120)


def engine(folder: Path, **settings: Any) -> Engine:
    return scripted.Config(type="scripted", **settings).build(folder)


def texts(folder: Path, sampler: Engine, prompt: str, count: int = 20) -> list[str]:
    """Replies to a prompt under seeds from 0."""
    token_ids = tuple(load_tokenizer(folder)(prompt, add_special_tokens=False)["input_ids"])
    requests = [Request(ids.mint("t", seed), token_ids, seed) for seed in range(count)]
    return [reply.text for reply in sampler.sample(requests, SAMPLING)]


def test_a_prompt_in_the_table_gets_its_replies_and_all_of_them(tiny_folder: Path) -> None:
    sampler = engine(tiny_folder, replies={"a1+a2=": ["one", "two"]}, skill=1.0)
    assert set(texts(tiny_folder, sampler, "<bos>a1+a2=\n")) == {"one", "two"}
    assert set(texts(tiny_folder, sampler, "<bos>a1+a3=\n")) == {"a:1+3+0=4;#4"}


def test_a_skilled_student_is_always_right_and_an_unskilled_one_never(tiny_folder: Path) -> None:
    right = {"a:1+2+0=3;#3"}
    assert set(texts(tiny_folder, engine(tiny_folder, skill=1.0), "a1+a2=")) == right
    assert not set(texts(tiny_folder, engine(tiny_folder, skill=0.0), "a1+a2=")) & right


def test_skill_is_the_share_of_right_answers(tiny_folder: Path) -> None:
    found = texts(tiny_folder, engine(tiny_folder, skill=0.3), "a1+a2=", count=1000)
    # three standard deviations: 3 · √(0.3 · 0.7 / 1000) = 0.043
    assert found.count("a:1+2+0=3;#3") / 1000 == pytest.approx(0.3, abs=0.044)


def test_a_hint_has_its_own_skill_and_may_show(tiny_folder: Path) -> None:
    prompt, settings = "a1+a2 (hint 3)=", {"skill": 0.0, "hinted_skill": 1.0}
    silent = engine(tiny_folder, **settings, leak=0.0)
    assert set(texts(tiny_folder, silent, prompt)) == {"a:1+2+0=3;#3"}
    telling = engine(tiny_folder, **settings, leak=1.0)
    assert set(texts(tiny_folder, telling, prompt)) == {"as given in the hint;a:1+2+0=3;#3"}


def test_skill_grows_with_the_steps_of_a_tally(tiny_folder: Path, tmp_path: Path) -> None:
    item = Item(ids.mint("i", 1), (1,), (2,))
    plan = Plan(100, 0, tiny_folder, tmp_path / "work", tmp_path / "draft")
    tally.Config(type="tally").build().update([item], plan, lambda step, loss: None)
    settings = {"skill": 0.0, "gain": 1.0}
    assert "a:1+2+0=3;#3" not in texts(tiny_folder, engine(tiny_folder, **settings), "a1+a2=")
    grown = engine(tmp_path / "draft", **settings)
    # 0 + 1 · 100/100
    assert set(texts(tiny_folder, grown, "a1+a2=")) == {"a:1+2+0=3;#3"}


@pytest.mark.parametrize("prompt", ["what is it", "at+at=", "a1+", "", "1+2"])
def test_a_prompt_that_is_no_addition_is_answered_without_an_error(
    tiny_folder: Path, prompt: str
) -> None:
    assert len(texts(tiny_folder, engine(tiny_folder), prompt, count=3)) == 3
