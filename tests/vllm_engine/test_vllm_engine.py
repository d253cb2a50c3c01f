# SPDX-License-Identifier: Apache-2.0
"""vLLM itself, in the environment of `make vllm`: what it draws, how it ends, how it fails."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stages import ids
from stages.errors import ConfigError, SamplerError
from stages.policies import tiny
from stages.policies.checkpoint import load_tokenizer, model_id_of
from stages.samplers import Completion, Request, SamplingConfig
from stages.samplers import vllm as sampler
from stages.samplers.draw import log_distribution
from stages.samplers.vllm import VLLM

pytestmark = pytest.mark.vllm
EAGER: dict[str, Any] = {"dtype": "float32", "engine_args": {"enforce_eager": True}}
LONG = SamplingConfig(temperature=1.0, max_tokens=240)


def config(**given: Any) -> sampler.Config:
    return sampler.Config.model_validate({"type": "vllm", **EAGER, **given})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny policy with random weights that says `b` is an end too, which nobody may heed."""
    made = tiny.Config(type="tiny", digits=3, hidden_size=32, layers=2, heads=1, steps=0)
    models = tmp_path_factory.mktemp("models")
    copy = models / "policy"
    shutil.copytree(made.build().prepare(models, lambda done, total: None), copy)
    ends = load_tokenizer(copy).convert_tokens_to_ids(["<eos>", "b", "c", "d", "e", "f"])
    (copy / "generation_config.json").write_text(
        json.dumps({"eos_token_id": ends, "temperature": 0.1, "top_k": 1, "do_sample": True})
    )
    return copy


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[VLLM]:
    built = VLLM(config(), folder)
    yield built
    built.close()


def asked(folder: Path, count: int, text: str = "a1b2+a3b4") -> list[Request]:
    """Slots on one prompt, with 63-bit seeds."""
    tokens = load_tokenizer(folder)(f"<bos>{text}\n", add_special_tokens=False)["input_ids"]
    return [Request(ids.mint("t", n), tuple(tokens), 2**63 - 1 - n) for n in range(count)]


def scored(folder: Path, request: Request, reply: Completion, sampling: SamplingConfig) -> Any:
    """The reply's log-probabilities by transformers in float32, one per token."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokens = torch.tensor([[*request.prompt_ids, *reply.token_ids]])
    with torch.inference_mode():
        logits = model(tokens).logits[0, len(request.prompt_ids) - 1 : -1]
    chosen = torch.tensor(reply.token_ids).unsqueeze(-1)
    return log_distribution(logits, sampling).gather(-1, chosen).squeeze(-1).tolist()


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingConfig(max_tokens=40),
        SamplingConfig(temperature=1.0, max_tokens=40),
        SamplingConfig(temperature=0.7, top_p=0.9, top_k=20, max_tokens=40),
    ],
    ids=["greedy, at temperature 1", "plain", "cut by top_p and top_k"],
)
def test_log_probabilities_are_those_of_the_distribution_drawn_from(
    engine: VLLM, folder: Path, sampling: SamplingConfig
) -> None:
    requests = {request.trajectory_id: request for request in asked(folder, 4)}
    for reply in engine.sample(list(requests.values()), sampling):
        request = requests[reply.trajectory_id]
        assert reply.logprobs == pytest.approx(scored(folder, request, reply, sampling), abs=2e-3)


def test_greedy_says_what_transformers_says(engine: VLLM, folder: Path) -> None:
    from stages.samplers import transformers

    other = transformers.Config(type="transformers", device="cpu").build(folder)
    for text in ("a1+a2", "a9b8+a7b6"):
        (here,) = engine.sample(asked(folder, 1, text), SamplingConfig(max_tokens=20))
        (there,) = other.sample(asked(folder, 1, text), SamplingConfig(max_tokens=20))
        assert (here.token_ids, here.text) == (there.token_ids, there.text)


def test_seeds_differ_and_return(engine: VLLM, folder: Path) -> None:
    requests = asked(folder, 40)
    said = {r.trajectory_id: r.token_ids for r in engine.sample(requests, LONG)}
    assert len(set(said.values())) > 30
    (again,) = engine.sample(requests[:1], LONG)
    assert again.token_ids[:8] == said[again.trajectory_id][:8]


def test_the_end_tokens_of_the_generation_config_are_not_heeded(engine: VLLM, folder: Path) -> None:
    replies = list(engine.sample(asked(folder, 30), SamplingConfig(temperature=1.0, max_tokens=60)))
    end = load_tokenizer(folder).eos_token_id
    assert any("b" in reply.text[:-1] for reply in replies)
    assert all((r.finish_reason == "stop") == (r.token_ids[-1] == end) for r in replies)


def test_a_stop_string_cuts_the_text_and_not_the_ids(engine: VLLM, folder: Path) -> None:
    sampling = SamplingConfig(temperature=1.0, max_tokens=120, stop=("7", "x"))
    tokenizer, stopped = load_tokenizer(folder), 0
    for reply in engine.sample(asked(folder, 20), sampling):
        whole = tokenizer.decode(reply.token_ids)
        assert not {"7", "x"} & set(reply.text)
        assert len(reply.logprobs or ()) == len(reply.token_ids)
        if whole[-1] in "7x":
            stopped += 1
            assert (reply.finish_reason, reply.text) == ("stop", whole[:-1])
    assert stopped > 0


def test_a_chat_is_rendered_by_the_engines_own_template(engine: VLLM, folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    wanted = tokenizer("<bos>a1+a2\n", add_special_tokens=False)["input_ids"]
    assert engine.render((("user", "a1+a2"),)) == tuple(wanted)


def test_the_process_says_which_weights_it_read(engine: VLLM, folder: Path) -> None:
    assert engine.weight_version == str(model_id_of(folder))
    assert (engine.name, engine.dtype, engine.deterministic) == ("vllm", "float32", False)
    assert engine.version[0].isdigit()


def test_a_prompt_longer_than_the_context_is_refused_by_its_slot(
    engine: VLLM, folder: Path
) -> None:
    long = Request(ids.mint("t", 7), (5,) * 256, 1)
    with pytest.raises(SamplerError, match=rf"slot {long.trajectory_id} has 256 tokens"):
        list(engine.sample([*asked(folder, 2), long], LONG))
    assert len(list(engine.sample(asked(folder, 2), LONG))) == 2


def test_a_token_that_the_model_lacks_is_refused_by_its_slot(engine: VLLM, folder: Path) -> None:
    odd = Request(ids.mint("t", 8), (10**6,), 1)
    with pytest.raises(SamplerError, match=f"vLLM refuses slot {odd.trajectory_id}"):
        list(engine.sample([odd], LONG))
    assert len(list(engine.sample(asked(folder, 2), LONG))) == 2


def test_a_call_that_is_left_leaves_nothing_to_the_next(engine: VLLM, folder: Path) -> None:
    replies = engine.sample(asked(folder, 30), LONG)
    next(replies)
    replies.close()  # type: ignore[attr-defined]
    assert len(list(engine.sample(asked(folder, 3), LONG))) == 3


def test_an_unknown_engine_argument_is_refused_with_near_ones(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"max_model_lem: unknown to vLLM .*max_model_len"):
        config(engine_args={"max_model_lem": 128}).build(folder)


def test_prompts_that_do_not_fit_one_step_together_are_sampled(folder: Path) -> None:
    args = {"enforce_eager": True, "max_model_len": 128, "max_num_batched_tokens": 128}
    engine = VLLM(config(engine_args=args), folder)
    try:
        requests = asked(folder, 12, "a1b2c3" * 15)
        replies = list(engine.sample(requests, SamplingConfig(temperature=1.0, max_tokens=20)))
    finally:
        engine.close()
    assert len({reply.trajectory_id for reply in replies}) == 12


def test_an_engine_argument_that_cannot_be_is_a_config_error(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"sampler.engine_args: vLLM refuses them"):
        config(engine_args={"max_model_len": -7}).build(folder)


def group(pid: int) -> list[int]:
    """The living processes of a process group."""
    found = subprocess.run(["ps", "-eo", "pid=,pgid=,stat="], capture_output=True, text=True)
    rows = [line.split() for line in found.stdout.splitlines()]
    return [int(p) for p, g, state in rows if int(g) == pid and not state.startswith("Z")]


def wait_until_gone(pid: int) -> None:
    end = time.monotonic() + 30
    while group(pid):
        assert time.monotonic() < end, f"left behind: {group(pid)}"
        time.sleep(0.1)


def test_two_device_sets_share_the_slots_and_a_killed_one_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Engine cores in processes of their own, as on accelerators: all of them must end."""
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")
    args = {"enforce_eager": True, "max_num_seqs": 8, "kv_cache_memory_bytes": 2**28}
    engine = VLLM(config(devices=["0", "1"], engine_args=args), folder)
    first, second = engine._processes
    try:
        requests = asked(folder, 33)
        done = {reply.trajectory_id for reply in engine.sample(requests, LONG)}
        assert done == {request.trajectory_id for request in requests}
        assert len(group(second.pid)) > 1
        replies = engine.sample(asked(folder, 40), LONG)
        next(replies)
        os.kill(second.pid, signal.SIGKILL)
        with pytest.raises(SamplerError, match=rf"process {second.pid}\) ended with status -9"):
            list(replies)
        wait_until_gone(second.pid)
    finally:
        began = time.monotonic()
        engine.close()
    assert time.monotonic() - began < 20
    wait_until_gone(first.pid)


PARENT = """
import sys, time
from pathlib import Path
from stages.samplers import vllm

class Telling(vllm.Process):
    def __init__(self, *args):
        super().__init__(*args)
        print(self.pid, flush=True)

vllm.Process = Telling
config = vllm.Config.model_validate(
    {"type": "vllm", "dtype": "float32", "engine_args": {"enforce_eager": True}}
)
vllm.VLLM(config, Path(sys.argv[1]))
print("loaded", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("how", ["killed when loaded", "interrupted while it starts"])
def test_an_engine_does_not_outlive_its_parent(folder: Path, how: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=sampler.CHECKOUT,
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        if how == "killed when loaded":
            assert parent.stdout.readline() == b"loaded\n"
            assert group(pid)
            parent.kill()
        else:
            assert group(pid)
            parent.send_signal(signal.SIGINT)
        wait_until_gone(pid)
