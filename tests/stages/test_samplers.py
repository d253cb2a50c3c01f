# SPDX-License-Identifier: Apache-2.0
"""Every sampler through the same cases. A new one needs a line in SETTINGS."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest
from openai_server import serving
from plug_ins import in_folder, in_union, type_of
from pydantic import ValidationError

from stages import ids, samplers
from stages.policies import tiny
from stages.policies.checkpoint import load_tokenizer, model_id_of
from stages.rows import Finish
from stages.samplers import Completion, Engine, Request, SamplingConfig
from stages.tasks import addition

SAMPLERS = in_folder(samplers)
SETTINGS: dict[str, dict[str, Any]] = {
    "transformers": {"device": "cpu"},
    "scripted": {},
    "vllm": {"dtype": "float32", "engine_args": {"enforce_eager": True}},
    "openai": {"urls": ["http://127.0.0.1:1"]},
}
# Engines that need more than this environment run where their marker is asked for.
MARKS = {"vllm": [pytest.mark.vllm]}
ENGINES = [pytest.param(name, marks=MARKS.get(name, [])) for name in SAMPLERS]
WARM = SamplingConfig(temperature=0.8, max_tokens=24)
each_sampler = pytest.mark.parametrize("name", SAMPLERS)


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny policy with random weights, its head as wide as the narrowest that vLLM takes."""
    config = tiny.Config(type="tiny", digits=3, hidden_size=32, layers=1, heads=1, steps=0)
    return config.build().prepare(tmp_path_factory.mktemp("models"), lambda done, total: None)


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, tiny_folder: Path) -> Iterator[Engine]:
    name = request.param
    with serving(str(tiny_folder)) as server:
        servers = {"urls": [server.url]} if name == "openai" else {}
        built: Engine = SAMPLERS[name](type=name, **SETTINGS[name] | servers).build(tiny_folder)
        yield built
        built.close()


def needs_determinism(engine: Engine) -> None:
    if not engine.deterministic:
        pytest.skip(f"{engine.name} does not promise it")


@pytest.fixture(scope="module")
def requests(tiny_folder: Path) -> list[Request]:
    """Twelve slots with prompts of many lengths, plain and hinted."""
    tokenizer, found = load_tokenizer(tiny_folder), []
    sums = [(1, 2), (9, 9), (31, 92), (10, 10), (478, 569), (999, 111)]
    for number, (a, b) in enumerate(sums * 2):
        template = addition.HINT if number % 3 == 0 else addition.PLAIN
        text = template.format(question=addition.question_of(a, b), answer=a + b)
        token_ids = tokenizer(f"<bos>{text}\n", add_special_tokens=False)["input_ids"]
        problem = ids.problem_id("tests", text, "")
        seed = ids.slot_seed(0, 1, 0, "train", problem, number)
        found.append(Request(ids.mint("t", number), tuple(token_ids), seed))
    return found


def by_id(replies: Iterable[Completion]) -> dict[ids.Id, Completion]:
    """Replies by slot; each slot once."""
    replies = list(replies)
    found = {reply.trajectory_id: reply for reply in replies}
    assert len(found) == len(replies)
    return found


def said(replies: Iterable[Completion]) -> dict[ids.Id, tuple[tuple[int, ...], str, str]]:
    """What was said in each slot."""
    return {
        slot: (reply.token_ids, reply.text, reply.finish_reason)
        for slot, reply in by_id(replies).items()
    }


def test_every_sampler_file_is_in_the_union() -> None:
    assert set(SAMPLERS.values()) == in_union(samplers.SamplerConfig)
    assert SAMPLERS.keys() == SETTINGS.keys()


@each_sampler
def test_a_config_is_strict_frozen_and_named_by_its_file(name: str) -> None:
    config = SAMPLERS[name](type=name, **SETTINGS[name])
    assert type_of(type(config)) == (name,)
    assert config.shard_size >= 1
    with pytest.raises(ValidationError, match="frozen"):
        config.type = name
    with pytest.raises(ValidationError, match="Extra inputs"):
        type(config)(type=name, **SETTINGS[name], unheard_of=1)


def test_an_engine_says_who_it_is(engine: Engine, tiny_folder: Path) -> None:
    assert engine.name in SAMPLERS
    assert engine.version and engine.dtype
    assert engine.weight_version == str(model_id_of(tiny_folder))
    assert engine.deterministic == (engine.name not in ("vllm", "openai"))


def test_every_request_is_answered_by_its_id(engine: Engine, requests: list[Request]) -> None:
    replies = by_id(engine.sample(requests, WARM))
    assert replies.keys() == {request.trajectory_id for request in requests}


def test_no_request_is_no_reply(engine: Engine) -> None:
    assert list(engine.sample([], WARM)) == []


@pytest.mark.parametrize("sampling", [WARM, SamplingConfig(max_tokens=24)], ids=["warm", "greedy"])
def test_what_a_slot_says_does_not_depend_on_its_batch(
    engine: Engine, requests: list[Request], sampling: SamplingConfig
) -> None:
    needs_determinism(engine)
    together = said(engine.sample(requests, sampling))
    shuffled = Random(0).sample(requests, len(requests))
    alone = [reply for request in requests for reply in engine.sample([request], sampling)]
    assert said(engine.sample(shuffled, sampling)) == together
    assert said(alone) == together


def test_the_same_seeds_say_the_same_again(
    engine: Engine, requests: list[Request], tiny_folder: Path
) -> None:
    needs_determinism(engine)
    once = said(engine.sample(requests, WARM))
    assert said(engine.sample(requests, WARM)) == once
    fresh = SAMPLERS[engine.name](type=engine.name, **SETTINGS[engine.name]).build(tiny_folder)
    assert said(fresh.sample(requests, WARM)) == once


def test_other_seeds_say_something_else(engine: Engine, requests: list[Request]) -> None:
    request = requests[0]
    many = [Request(ids.mint("t", seed), request.prompt_ids, seed) for seed in range(30)]
    assert len({reply.text for reply in engine.sample(many, WARM)}) > 1


@pytest.mark.parametrize("max_tokens", [1, 2, 24, 120])
def test_a_reply_is_well_formed(
    engine: Engine, requests: list[Request], tiny_folder: Path, max_tokens: int
) -> None:
    tokenizer = load_tokenizer(tiny_folder)
    replies = engine.sample(requests, SamplingConfig(temperature=0.8, max_tokens=max_tokens))
    for reply in replies:
        assert 1 <= len(reply.token_ids) <= max_tokens
        assert all(0 <= token < len(tokenizer) for token in reply.token_ids)
        assert reply.logprobs is not None
        assert len(reply.logprobs) == len(reply.token_ids)
        assert all(logprob <= 0 for logprob in reply.logprobs)
        assert reply.finish_reason in get_args(Finish)
        ended = tokenizer.eos_token_id in reply.token_ids
        assert (reply.finish_reason == "length") == (not ended)
        assert tokenizer.eos_token_id not in reply.token_ids[:-1]
        assert len(reply.token_ids) == max_tokens or ended
        assert tokenizer.eos_token not in reply.text


def test_some_replies_end_and_some_are_cut(engine: Engine, requests: list[Request]) -> None:
    many = [Request(ids.mint("t", n), requests[n % 12].prompt_ids, n) for n in range(60)]
    finishes = {reply.finish_reason for reply in engine.sample(many, WARM)}
    assert finishes == {"stop", "length"}
