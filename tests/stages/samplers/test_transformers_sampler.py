# SPDX-License-Identifier: Apache-2.0
"""`transformers`: its log-probabilities are the model's, and no setting but ours counts."""

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from stages import ids
from stages.policies.checkpoint import load_tokenizer, model_id_of
from stages.samplers import Completion, Request, SamplingConfig, transformers
from stages.samplers.draw import log_distribution

PROMPTS = ["<bos>a1+a2=\n", "<bos>b3a1+b9a2=\n", "<bos>c4b7a8+c5b6a9 (hint 1047)=\n", "<bos>\n"]
GREEDY = SamplingConfig(max_tokens=12)


def requests_for(folder: Path) -> list[Request]:
    tokenizer = load_tokenizer(folder)
    return [
        Request(
            ids.mint("t", n),
            tuple(tokenizer(prompt, add_special_tokens=False)["input_ids"]),
            ids.slot_seed(0, 1, 0, "train", ids.mint("p", n), 0),
        )
        for n, prompt in enumerate(PROMPTS * 2)
    ]


def sample(folder: Path, sampling: SamplingConfig) -> list[Completion]:
    engine = transformers.Config(type="transformers", device="cpu").build(folder)
    return list(engine.sample(requests_for(folder), sampling))


@pytest.mark.parametrize(
    "sampling",
    [
        GREEDY,
        SamplingConfig(temperature=0.8, max_tokens=12),
        SamplingConfig(temperature=1.3, top_p=0.7, top_k=20, max_tokens=12),
    ],
    ids=["greedy", "temperature", "top_p and top_k"],
)
def test_log_probabilities_are_those_of_a_plain_forward_pass(
    tiny_folder: Path, sampling: SamplingConfig
) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.float32).eval()
    asked = requests_for(tiny_folder)
    for request, reply in zip(asked, sample(tiny_folder, sampling), strict=True):
        whole = torch.tensor([[*request.prompt_ids, *reply.token_ids]])
        with torch.inference_mode():
            logits = model(input_ids=whole).logits[0, len(request.prompt_ids) - 1 : -1]
        expected = log_distribution(logits, sampling).gather(-1, whole[0, -len(logits) :, None])
        assert reply.logprobs == pytest.approx(expected[:, 0].tolist(), abs=1e-4)


def test_greedy_takes_the_likeliest_token_of_a_plain_forward_pass(tiny_folder: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.float32).eval()
    asked = requests_for(tiny_folder)
    for request, reply in zip(asked, sample(tiny_folder, GREEDY), strict=True):
        whole = torch.tensor([[*request.prompt_ids, *reply.token_ids]])
        with torch.inference_mode():
            logits = model(input_ids=whole).logits[0, len(request.prompt_ids) - 1 : -1]
        assert tuple(logits.argmax(-1).tolist()) == reply.token_ids


def test_text_is_what_the_tokens_say_without_the_end_token(tiny_folder: Path) -> None:
    tokenizer = load_tokenizer(tiny_folder)
    for reply in sample(tiny_folder, SamplingConfig(temperature=1.0, max_tokens=60)):
        said = [token for token in reply.token_ids if token != tokenizer.eos_token_id]
        assert reply.text == tokenizer.decode(said)


@pytest.mark.parametrize(
    "settings",
    [
        {"repetition_penalty": 5.0},
        {"no_repeat_ngram_size": 1},
        {"suppress_tokens": list(range(4, 40))},
        {"min_new_tokens": 12},
        {"forced_eos_token_id": 2},
        {"eos_token_id": list(range(4, 49))},
        {"do_sample": True, "temperature": 5.0, "top_k": 3},
    ],
    ids=lambda settings: "+".join(settings),
)
def test_the_generation_config_of_the_checkpoint_is_not_read(
    tiny_folder: Path, tmp_path: Path, settings: dict[str, Any]
) -> None:
    folder = copytree(tiny_folder, tmp_path / "copy")
    (folder / "generation_config.json").write_text(json.dumps(settings))
    assert model_id_of(folder) == model_id_of(tiny_folder)
    sampling = SamplingConfig(temperature=0.8, max_tokens=12)
    for mode in (GREEDY, sampling):
        assert sample(folder, mode) == sample(tiny_folder, mode)
