# SPDX-License-Identifier: Apache-2.0
"""Tokens a second of our samplers beside a plain script on the same prompts, loading apart."""

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.contamination import problem
from benchmarks.figures import Figure
from stages import ids
from stages.chat import render_chat
from stages.policies.checkpoint import load_tokenizer
from stages.samplers import Request, SamplingConfig, transformers, vllm
from stages.samplers.base import Engine
from stages.samplers.vllm_child import ON_CPU

N = 4
BATCH = 32
SAMPLING = SamplingConfig(temperature=0.8, max_tokens=48)
ENGINE_ARGS = {**ON_CPU, "max_model_len": 1024}


def requests_of(model: Path, problems: int) -> list[Request]:
    """`N` slots for each of made-up problems of many lengths, in arrival order."""
    tokenizer, rng = load_tokenizer(model), random.Random(0)
    found = []
    for number in range(problems):
        words = problem(rng).split()
        text = " ".join(words[: rng.randint(8, len(words))])
        prompt = render_chat((("user", text),), tokenizer, {})
        found += [
            Request(ids.mint("t", number, slot), prompt, number * 97 + slot) for slot in range(N)
        ]
    return found


def vllm_ratio(model: Path, problems: int = 64) -> dict[str, Figure]:
    """Our child process against `LLM.generate`, the same prompts, seeds and engine arguments."""
    requests = requests_of(model, problems)
    settings = {"type": "vllm", "dtype": "bfloat16", "engine_args": ENGINE_ARGS}
    config = vllm.Config.model_validate(settings)
    begun = time.monotonic()
    engine = config.build(model)
    started = time.monotonic() - begun
    list(engine.sample(requests[:8], SAMPLING))
    ours = _speed(engine, requests, None)
    engine.close()
    bare, plain = (_bare_vllm(model, config, requests, count) for count in (0, None))
    told = f"LLM.generate with log-probabilities; {plain['tokens'] / plain['seconds']:.0f} without"
    return {
        "vLLM sampler, tokens/s": _ratio(ours, bare["tokens"] / bare["seconds"], 0.95, told),
        "vLLM start": Figure(
            f"{started:.0f}", "s", against=f"{bare['start_s']:.0f} s, LLM() alone"
        ),
    }


def _bare_vllm(
    model: Path, config: vllm.Config, requests: list[Request], logprobs: int | None
) -> dict[str, float]:
    """Seconds and tokens of the plain script; `logprobs` 0 asks for those of sampled tokens."""
    arguments: dict[str, Any] = {**ENGINE_ARGS, "generation_config": "vllm"}
    if logprobs is not None:
        arguments["logprobs_mode"] = "processed_logprobs"
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        asked = {
            "model": str(model), "dtype": "bfloat16", "engine_args": arguments,
            "temperature": SAMPLING.temperature, "max_tokens": SAMPLING.max_tokens,
            "seeds": [r.seed for r in requests], "prompts": [r.prompt_ids for r in requests],
            "logprobs": logprobs, "result": file.name,
        }  # fmt: skip
        script = Path(__file__).with_name("bare_vllm.py")
        command = [str(config.interpreter), str(script)]
        subprocess.run(command, input=json.dumps(asked), text=True, check=True)
        found: dict[str, float] = json.load(file)
        return found


def transformers_ratio(model: Path, problems: int = 64) -> dict[str, Figure]:
    """Our loop, prompts by length, against `generate` over batches in arrival order."""
    requests = requests_of(model, problems)
    config = transformers.Config(type="transformers", device="cpu", dtype="bfloat16")
    engine = config.build(model)
    ordered = sorted(requests, key=lambda r: (len(r.prompt_ids), r.trajectory_id))
    ours = _speed(engine, ordered, BATCH)
    engine.close()
    return {
        "transformers sampler, tokens/s": _ratio(
            ours, _plain_generate(model, requests), 1.2, f"generate, batch {BATCH}"
        )
    }


def _speed(engine: Engine, requests: list[Request], batch: int | None) -> float:
    size = batch or len(requests)
    begun, tokens = time.monotonic(), 0
    for start in range(0, len(requests), size):
        for reply in engine.sample(requests[start : start + size], SAMPLING):
            tokens += len(reply.token_ids)
    return tokens / (time.monotonic() - begun)


def _plain_generate(model: Path, requests: list[Request]) -> float:
    """Tokens a second of the loop that people write."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(model, padding_side="left")
    loaded: Any = AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16).eval()
    begun, tokens = time.monotonic(), 0
    for start in range(0, len(requests), BATCH):
        prompts = [list(r.prompt_ids) for r in requests[start : start + BATCH]]
        batch = tokenizer.pad({"input_ids": prompts}, return_tensors="pt")
        with torch.inference_mode():
            output = loaded.generate(
                **batch, do_sample=True, temperature=SAMPLING.temperature, top_k=0, top_p=1.0,
                max_new_tokens=SAMPLING.max_tokens, pad_token_id=tokenizer.pad_token_id,
            )  # fmt: skip
        for row in output[:, batch["input_ids"].shape[1] :].tolist():
            ended = tokenizer.eos_token_id in row
            tokens += row.index(tokenizer.eos_token_id) + 1 if ended else len(row)
    return tokens / (time.monotonic() - begun)


def _ratio(ours: float, plain: float, bar: float, name: str) -> Figure:
    ratio = ours / plain
    told = f"{ratio:.2f} of {name}"
    return Figure(f"{ours:.0f}", told, f"≥ {bar}", ratio >= bar, f"{plain:.0f}")


if __name__ == "__main__":
    print(transformers_ratio(Path(sys.argv[1])), vllm_ratio(Path(sys.argv[1])))
