# SPDX-License-Identifier: Apache-2.0
"""Our policy-gradient updater beside TRL's own trainer on the same rollouts, loading apart."""

import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from stages import ids
from stages.advantages import grpo as advantages
from stages.policies.checkpoint import load_tokenizer
from stages.tasks import addition
from stages.updaters import Item, Plan, grpo

GROUPS, SIZE, BATCH, STEPS = 32, 8, 64, 12


def grpo_ratio(model: Path) -> dict[str, Figure]:
    """Rollouts of the addition task a second, the same steps and batch, float32 on a CPU."""
    texts = _texts()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        ours = _ours(model, texts, place)
        bare = _bare(model, texts, place / "bare")
    ratio = ours / bare
    told = f"{ratio:.2f} of TRL's trainer, sampling left out"
    return {"GRPO, rollouts/s": Figure(f"{ours:.0f}", told, "≥ 0.95", ratio >= 0.95, f"{bare:.0f}")}


def _texts() -> list[tuple[str, str, float]]:
    """Prompt, answer and reward of made-up sums of three digits, group by group."""
    rng = random.Random(3)
    found = []
    for _ in range(GROUPS):
        a, b = rng.randint(100, 999), rng.randint(100, 999)
        for slot in range(SIZE):
            shift = 0 if slot % 2 else rng.randint(1, 9)
            found.append((f"{addition.question_of(a, b)}=", addition.worked(a, b + shift),
                          float(not shift)))  # fmt: skip
    return found


def _tokens(model: Path, texts: Sequence[tuple[str, str, float]]) -> list[tuple[Any, Any]]:
    tokenizer = load_tokenizer(model)

    def ids_of(text: str) -> tuple[int, ...]:
        return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])

    return [(ids_of(prompt), (*ids_of(answer), tokenizer.eos_token_id))
            for prompt, answer, _ in texts]  # fmt: skip


def _ours(model: Path, texts: Sequence[tuple[str, str, float]], place: Path) -> float:
    weights = [
        value
        for start in range(0, len(texts), SIZE)
        for value in advantages([reward for _, _, reward in texts[start : start + SIZE]])
    ]
    items = [
        Item(
            ids.mint("i", n), prompt, said, reward=texts[n][2], advantage=weights[n],
            logprobs=(-0.1,) * len(said), temperature=1.0,
        )
        for n, (prompt, said) in enumerate(_tokens(model, texts))
    ]  # fmt: skip
    ends: list[float] = []
    config = grpo.Config(type="grpo", batch_size=BATCH, warmup_steps=0)
    plan = Plan(STEPS, 0, model, place / "work", place / "draft")
    config.build().update(items, plan, lambda step, loss: ends.append(time.monotonic()))
    return BATCH * (STEPS - 1) / (ends[-1] - ends[0])


def _bare(model: Path, texts: Sequence[tuple[str, str, float]], place: Path) -> float:
    """The script that people write: a rollout function that hands the answers over."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    ends: list[float] = []
    known: dict[str, list[tuple[Any, Any, float]]] = {}
    for (prompt, _, reward), (read, said) in zip(texts, _tokens(model, texts), strict=True):
        known.setdefault(prompt, []).append((read, said, reward))

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_log(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
            ends.append(time.monotonic())

    def rollouts(prompts: list[str], trainer: Any) -> dict[str, Any]:
        found = [known[prompt][place % SIZE] for place, prompt in enumerate(prompts)]
        return {
            "prompt_ids": [list(read) for read, _, _ in found],
            "completion_ids": [list(said) for _, said, _ in found],
            "logprobs": None,
            "score": [reward for _, _, reward in found],
        }

    def scored(completions: Sequence[Any], score: Sequence[float], **columns: Any) -> list[float]:
        return list(score)

    arguments = GRPOConfig(
        output_dir=str(place), max_steps=STEPS, per_device_train_batch_size=BATCH, use_cpu=True,
        bf16=False, activation_checkpointing=False, dataloader_pin_memory=False,
        report_to="none", save_strategy="no", disable_tqdm=True, logging_steps=1,
        num_generations=SIZE, max_completion_length=96, learning_rate=2e-4, loss_type="grpo",
    )  # fmt: skip
    trainer = GRPOTrainer(
        AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32), reward_funcs=scored,
        args=arguments, train_dataset=Dataset.from_dict({"prompt": list(known)}),
        processing_class=load_tokenizer(model), callbacks=[Clock()], rollout_func=rollouts,
    )  # fmt: skip
    trainer.train()
    return BATCH * (STEPS - 1) / (ends[STEPS - 1] - ends[0])
