# SPDX-License-Identifier: Apache-2.0
"""Our updaters beside bare TRL scripts on the same rows, loading apart."""

import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.contamination import problem
from benchmarks.figures import Figure
from stages import ids
from stages.chat import render_chat
from stages.policies.checkpoint import load_tokenizer
from stages.policies.dtype import resolve
from stages.tasks import addition
from stages.updaters import Item, Plan, dpo, sft

ROWS, BATCH, STEPS = 96, 16, 8


def sft_ratio(model: Path) -> dict[str, Figure]:
    """Rows of many lengths, the same steps, batch and number format."""
    items = _items(model)
    config = sft.Config(
        type="sft", dtype="auto", batch_size=BATCH, micro_batch_size=BATCH, warmup_steps=0
    )
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        ours = _ours(model, items, config, place)
        bare = _bare_trl(model, items, resolve("auto", "cpu"), place / "bare")
    ratio = ours / bare
    told = f"{ratio:.2f} of a bare TRL script, {resolve('auto', 'cpu')}"
    return {"SFT, tokens/s": Figure(f"{ours:.0f}", told, "≥ 0.97", ratio >= 0.97, f"{bare:.0f}")}


def _items(model: Path) -> list[Item]:
    tokenizer, rng = load_tokenizer(model), random.Random(1)
    found = []
    for number in range(ROWS):
        question, answer = problem(rng), problem(rng).split()
        prompt = render_chat((("user", question),), tokenizer, {})
        text = " ".join(answer[: rng.randint(5, 40)])
        completion = (*tokenizer(text)["input_ids"], tokenizer.eos_token_id)
        found.append(Item(ids.mint("i", number), prompt, completion))
    return found


def _ours(model: Path, items: Sequence[Item], config: sft.Config, place: Path) -> float:
    """Tokens of the rows that were visited, a second, from the end of the first step on."""
    ends: list[float] = []
    plan = Plan(STEPS, 0, model, place / "work", place / "draft")
    trained = config.build().update(items, plan, lambda step, loss: ends.append(time.monotonic()))
    lengths = {i.training_row_id: len(i.prompt_ids) + len(i.completion_ids) for i in items}
    tokens = sum(lengths[row] * visits for row, visits in trained.visits.items())
    return tokens * (STEPS - 1) / STEPS / (ends[-1] - ends[0])


def _bare_trl(model: Path, items: Sequence[Item], dtype: str, place: Path) -> float:
    """The script that people write: rows with labels, TRL's own collator and order."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, TrainerCallback
    from trl import SFTConfig, SFTTrainer

    ends: list[float] = []

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
            ends.append(time.monotonic())

    rows = [
        {"input_ids": [*i.prompt_ids, *i.completion_ids],
         "labels": [-100] * len(i.prompt_ids) + list(i.completion_ids)}
        for i in items
    ]  # fmt: skip
    arguments = SFTConfig(
        output_dir=str(place), max_steps=STEPS, per_device_train_batch_size=BATCH, use_cpu=True,
        bf16=False, gradient_checkpointing=False, dataloader_pin_memory=False, report_to="none",
        save_strategy="no", disable_tqdm=True, logging_steps=1, max_length=None,
        dataset_kwargs={"skip_prepare_dataset": True},
    )  # fmt: skip
    loaded = AutoModelForCausalLM.from_pretrained(model, dtype=getattr(torch, dtype))
    trainer = SFTTrainer(
        loaded, args=arguments, train_dataset=Dataset.from_list(rows),
        processing_class=load_tokenizer(model), callbacks=[Clock()],
    )  # fmt: skip
    trainer.train()
    tokens = sum(len(row["input_ids"]) for row in rows) * STEPS * BATCH / len(rows)
    return tokens * (STEPS - 1) / STEPS / (ends[-1] - ends[0])


PAIRS, PAIR_BATCH, PAIR_STEPS = 320, 32, 30


def dpo_ratio(model: Path) -> dict[str, Figure]:
    """Pairs of the addition task a second, the same steps and batch, float32 on a CPU."""
    texts = _pairs()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        ours = _our_pairs(model, texts, place)
        bare = _bare_pairs(model, texts, place / "bare")
    ratio = ours / bare
    told = f"{ratio:.2f} of a bare TRL script"
    return {"DPO, pairs/s": Figure(f"{ours:.0f}", told, "≥ 0.95", ratio >= 0.95, f"{bare:.0f}")}


def _pairs() -> list[tuple[str, str, str]]:
    """Prompt, right and wrong answer of made-up sums of three digits."""
    rng = random.Random(2)
    found = []
    for _ in range(PAIRS):
        a, b = rng.randint(100, 999), rng.randint(100, 999)
        right, wrong = (addition.worked(a, b + shift) for shift in (0, rng.randint(1, 9)))
        found.append((f"{addition.question_of(a, b)}=", right, wrong))
    return found


def _our_pairs(model: Path, texts: Sequence[tuple[str, str, str]], place: Path) -> float:
    tokenizer = load_tokenizer(model)
    read = [[tokenizer(text, add_special_tokens=False)["input_ids"] for text in row]
            for row in texts]  # fmt: skip
    end = tokenizer.eos_token_id
    items = [
        Item(
            ids.mint("i", n), tuple(prompt), (*right, end), rejected_ids=(*wrong, end),
            reference=(-20.0, -20.0),
        )
        for n, (prompt, right, wrong) in enumerate(read)
    ]  # fmt: skip
    ends: list[float] = []
    config = dpo.Config(type="dpo", batch_size=PAIR_BATCH, warmup_steps=0)
    plan = Plan(PAIR_STEPS, 0, model, place / "work", place / "draft")
    config.build().update(items, plan, lambda step, loss: ends.append(time.monotonic()))
    return PAIR_BATCH * (PAIR_STEPS - 1) / (ends[-1] - ends[0])


def _bare_pairs(model: Path, texts: Sequence[tuple[str, str, str]], place: Path) -> float:
    """The script that people write: text columns, reference scored beforehand."""
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, TrainerCallback
    from trl import DPOConfig, DPOTrainer

    ends: list[float] = []

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_log(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
            ends.append(time.monotonic())

    arguments = DPOConfig(
        output_dir=str(place), max_steps=PAIR_STEPS, per_device_train_batch_size=PAIR_BATCH,
        use_cpu=True, bf16=False, activation_checkpointing=False, dataloader_pin_memory=False,
        report_to="none", save_strategy="no", disable_tqdm=True, logging_steps=1, max_length=None,
        precompute_ref_log_probs=True, learning_rate=3e-5,
    )  # fmt: skip
    columns = dict(zip(("prompt", "chosen", "rejected"), zip(*texts, strict=True), strict=True))
    trainer = DPOTrainer(
        AutoModelForCausalLM.from_pretrained(model), args=arguments,
        train_dataset=Dataset.from_dict(columns), processing_class=load_tokenizer(model),
        callbacks=[Clock()],
    )  # fmt: skip
    trainer.train()
    return PAIR_BATCH * (PAIR_STEPS - 1) / (ends[PAIR_STEPS - 1] - ends[0])
