# SPDX-License-Identifier: Apache-2.0
"""The `vllm` sampler without vLLM: its config, and its side of the talk with a stand-in child."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import vllm_stub
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stages import ids
from stages.errors import ConfigError, SamplerError
from stages.policies.checkpoint import model_id_of
from stages.samplers import Request, SamplingConfig, vllm_child
from stages.samplers import vllm as sampler
from stages.samplers.vllm import OWNED, VLLM
from stages.settings import identity

WARM = SamplingConfig(temperature=1.0)


def config(**given: Any) -> sampler.Config:
    return sampler.Config.model_validate({"type": "vllm", "python": sys.executable, **given})


def asked(*firsts: int) -> list[Request]:
    return [Request(ids.mint("t", n), (first, n), n) for n, first in enumerate(firsts)]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_child, "__file__", vllm_stub.__file__)


@pytest.fixture
def pair(stub: None, tiny_folder: Path) -> Iterator[VLLM]:
    """Two stand-ins, on two device sets."""
    engine = VLLM(config(devices=["3", "4,5"]), tiny_folder)
    yield engine
    engine.close()


@pytest.mark.parametrize("name", OWNED)
def test_an_argument_that_is_ours_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(ValidationError, match=f"'{name}' cannot be set here: {OWNED[name]}"):
        config(engine_args={name: 1})


def test_arguments_must_be_json_and_device_sets_must_differ() -> None:
    with pytest.raises(ValidationError, match="not JSON"):
        config(engine_args={"max_model_len": float("nan")})
    with pytest.raises(ValidationError, match="names a device set twice"):
        config(devices=["0", "0"])


def test_what_changes_the_text_is_identity_and_where_it_runs_is_not() -> None:
    assert identity(config(devices=["0"], shard_size=3, start_timeout_s=1.0)) == {
        "type": "vllm",
        "dtype": "auto",
        "engine_args": {},
    }
    assert identity(config(engine_args={"max_model_len": 9}))["engine_args"] == {"max_model_len": 9}


def test_a_missing_environment_says_make_vllm(
    monkeypatch: pytest.MonkeyPatch, tiny_folder: Path
) -> None:
    with pytest.raises(ConfigError, match=r"^sampler.python: /none/python .*`make vllm`"):
        config(python="/none/python").build(tiny_folder)
    monkeypatch.setenv("STARLOOP_VLLM_PYTHON", "/none/other")
    with pytest.raises(ConfigError, match="/none/other is not there"):
        config(python=None).build(tiny_folder)
    with pytest.raises(ConfigError, match=r"does not start .*`make vllm`"):
        config(python=str(tiny_folder / "config.json")).build(tiny_folder)


def test_a_python_without_vllm_says_so(tiny_folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot import vLLM \(ModuleNotFoundError"):
        config().build(tiny_folder)


def test_every_slot_is_answered_once_whichever_process_has_it(pair: VLLM) -> None:
    requests = asked(*range(20, 43))
    replies = list(pair.sample(requests, WARM))
    found = {reply.trajectory_id: reply for reply in replies}
    assert len(replies) == len(found) == 23
    for request in requests:
        reply = found[request.trajectory_id]
        assert reply.token_ids == request.prompt_ids[::-1]
        assert reply.text.endswith(f" {request.seed}")
    assert {reply.text.split()[0] for reply in replies} == {"3", "4,5"}


def test_a_refused_slot_is_named_and_the_next_call_is_clean(pair: VLLM) -> None:
    requests = asked(20, 21, 13, 22, 23, 24)
    with pytest.raises(SamplerError, match=rf"{requests[2].trajectory_id}: ValueError: thirteen"):
        list(pair.sample(requests, WARM))
    assert len(list(pair.sample(asked(*range(30, 35)), WARM))) == 5


def test_what_was_said_before_a_death_is_kept(stub: None, tiny_folder: Path) -> None:
    engine = VLLM(config(), tiny_folder)
    kept = []
    try:
        with pytest.raises(SamplerError, match=r"status -9: run again .*the engine is on fire"):
            for reply in engine.sample(asked(*range(20, 30), 666, 31), WARM):
                kept.append(reply)
        assert len(kept) == 10
        with pytest.raises(SamplerError, match="status -9"):
            list(engine.sample(asked(20), WARM))
        with pytest.raises(SamplerError, match="status -9"):
            engine.render((("user", "hello"),))
    finally:
        engine.close()


def test_a_prompt_that_fills_the_context_is_refused(pair: VLLM) -> None:
    fits, full = (Request(ids.mint("t", n), (5,) * n, 1) for n in (99, 100))
    assert len(list(pair.sample([fits], WARM))) == 1
    with pytest.raises(SamplerError, match="has 100 tokens, the model reads at most 100"):
        list(pair.sample([full], WARM))


@pytest.mark.parametrize("temperature", [0.009, 2.01])
def test_a_temperature_that_vllm_would_change_is_refused(pair: VLLM, temperature: float) -> None:
    with pytest.raises(ConfigError, match=r"sampling.temperature: .* use 0, or 0.01 to 2"):
        list(pair.sample(asked(20), SamplingConfig(temperature=temperature)))


def test_a_start_that_fails_names_the_cause(
    stub: None, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"enforce_eagre: unknown .* did you mean enforce_eager"):
        config(engine_args={"enforce_eagre": True}).build(tiny_folder)
    monkeypatch.setenv("VLLM_STUB", "no memory")
    with pytest.raises(SamplerError, match="vLLM did not start: RuntimeError: no memory"):
        config().build(tiny_folder)
    monkeypatch.setenv("VLLM_STUB", "")
    monkeypatch.setenv("VLLM_STUB_VOCABULARY", "48")
    with pytest.raises(SamplerError, match="the folder changed meanwhile"):
        config().build(tiny_folder)


def test_a_start_that_takes_too_long_is_ended(tiny_folder: Path) -> None:
    with pytest.raises(SamplerError, match=r"start_timeout_s: vLLM was not ready in time"):
        config(start_timeout_s=1e-9).build(tiny_folder)


def test_the_child_names_weights_by_the_rule_of_model_ids(
    tiny_folder: Path, tmp_path: Path
) -> None:
    for path in tiny_folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for name, text in (("", ""), ("chat_template.jinja", "{{ 1 }} é"), ("notes.txt", "x")):
        if name:
            (tmp_path / name).write_text(text)
        assert vllm_child.weight_version(tmp_path) == str(model_id_of(tmp_path))


@given(st.text("abc", max_size=20), st.lists(st.text("abc", min_size=1, max_size=2), max_size=3))
def test_a_text_is_cut_at_the_first_stop_string(text: str, stop: list[str]) -> None:
    kept = vllm_child.cut(text, stop)
    assert text.startswith(kept)
    assert not any(s in kept for s in stop)
    assert kept == text or any(text.startswith(s, len(kept)) for s in stop)
