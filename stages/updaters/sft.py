# SPDX-License-Identifier: Apache-2.0
"""`sft`: supervised fine-tuning with TRL's SFTTrainer on the token ids that were sampled.

Rows go in as `input_ids` and `labels` (−100 where no loss falls): no text is tokenized again, no
end token added. Each training checkpoint gets a COMPLETE marker with the visits so far; a killed
update goes on from the newest complete one, in the same data order.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from stages.errors import UpdaterError
from stages.ids import Id
from stages.memory import hold_memory
from stages.policies.checkpoint import (
    copy_tokenizer,
    is_complete,
    load_tokenizer,
    mark_complete,
)
from stages.policies.dtype import resolve
from stages.settings import later, operational
from stages.updaters.base import Item, Plan, Progress, Trained, Updater, UpdaterSettings

_VISITS = "visits.json"


class Config(UpdaterSettings):
    """Optimizer and batch; steps come from the plan. Defaults suit the tiny policy.

    `dtype` is that of weights, gradients and moments alike; `auto`: bfloat16 where the processor
    multiplies it, else float32.
    """

    type: Literal["sft"]
    learning_rate: float = Field(1e-3, gt=0)
    schedule: Literal["constant_with_warmup", "cosine", "linear"] = "constant_with_warmup"
    warmup_steps: int = Field(10, ge=0)
    weight_decay: float = Field(0.01, ge=0)
    adam_beta2: float = Field(0.95, gt=0, lt=1)
    max_grad_norm: float = Field(1.0, gt=0)
    batch_size: int = Field(64, ge=1)
    micro_batch_size: int | None = operational(None, ge=1)
    save_every: int = operational(500, ge=1)
    dtype: Literal["auto", "float32", "bfloat16"] = later("float32")

    @model_validator(mode="after")
    def _micro_batches_fill_the_batch(self) -> "Config":
        if self.micro_batch_size and self.batch_size % self.micro_batch_size:
            raise ValueError(
                f"micro_batch_size {self.micro_batch_size} does not divide batch_size "
                f"{self.batch_size}: use a divisor"
            )
        return self

    @property
    def precision(self) -> tuple[str, str]:
        import torch

        return self.dtype, "cuda" if torch.cuda.is_available() else "cpu"

    def build(self) -> Updater:
        return Sft(self)


class Sft:
    """Trains all weights on one device."""

    name = "sft"
    deterministic = True

    def __init__(self, config: Config) -> None:
        self._config = config

    def update(self, items: Sequence[Item], plan: Plan, progress: Progress) -> Trained:
        import torch
        from transformers import AutoModelForCausalLM

        if not items:
            raise UpdaterError("there is no row to train on: lower the bar of `mix` or sample more")
        hold_memory()
        dtype, device = self._config.precision
        found = resolve(dtype, device)
        wide = found if found == "bfloat16" else "float32"  # float16 has too few exponents to train
        model = AutoModelForCausalLM.from_pretrained(plan.init, dtype=getattr(torch, wide))
        resume = _newest_complete(plan.work)
        visits = json.loads((resume / _VISITS).read_text()) if resume else [0] * len(items)
        trainer = self._trainer(model, items, plan, visits, progress)
        trainer.train(resume_from_checkpoint=str(resume) if resume else None)
        trainer.save_model(str(plan.draft))
        copy_tokenizer(plan.init, plan.draft)
        (plan.draft / "training_args.bin").unlink(missing_ok=True)
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        last = losses[-max(1, len(losses) // 10) :]
        by_id: dict[Id, int] = {
            item.training_row_id: count for item, count in zip(items, visits, strict=True)
        }
        return Trained(trainer.state.global_step, by_id, sum(last) / len(last) if last else None)

    def _trainer(
        self, model: Any, items: Sequence[Item], plan: Plan, visits: list[int], progress: Progress
    ) -> Any:
        import torch
        from datasets import Dataset
        from transformers import PrinterCallback
        from trl import SFTConfig

        config, accelerated = self._config, torch.cuda.is_available()
        micro = config.micro_batch_size or config.batch_size
        arguments = SFTConfig(
            output_dir=str(plan.work),
            max_steps=plan.steps,
            learning_rate=config.learning_rate,
            lr_scheduler_type=config.schedule,
            warmup_steps=min(config.warmup_steps, plan.steps),
            weight_decay=config.weight_decay,
            adam_beta2=config.adam_beta2,
            max_grad_norm=config.max_grad_norm,
            per_device_train_batch_size=micro,
            gradient_accumulation_steps=config.batch_size // micro,
            seed=plan.seed % 2**31,
            data_seed=plan.seed % 2**31,
            save_strategy="steps",
            save_steps=config.save_every,
            save_total_limit=2,
            logging_steps=1,
            logging_strategy="steps",
            report_to="none",
            disable_tqdm=True,
            bf16=False,
            use_cpu=not accelerated,
            activation_checkpointing=False,
            dataloader_pin_memory=accelerated,
            remove_unused_columns=False,
            max_length=None,
            packing=False,
            dataset_kwargs={"skip_prepare_dataset": True},
        )
        rows = Dataset.from_list(
            [{"row": place, **_tokens(item)} for place, item in enumerate(items)]
        )
        tokenizer = load_tokenizer(plan.init)
        trainer = _trainer_class()(
            model=model,
            args=arguments,
            train_dataset=rows,
            processing_class=tokenizer,
            data_collator=_Collator(tokenizer.pad_token_id),
            callbacks=[_callback(visits, progress)],
            visits=visits,
        )
        trainer.remove_callback(PrinterCallback)
        return trainer


def _tokens(item: Item) -> dict[str, Any]:
    mask = item.loss_mask or (True,) * len(item.completion_ids)
    labels = [t if keep else -100 for t, keep in zip(item.completion_ids, mask, strict=True)]
    return {
        "input_ids": [*item.prompt_ids, *item.completion_ids],
        "labels": [-100] * len(item.prompt_ids) + labels,
    }


class _Collator:
    """Pads on the right; keeps each row's place."""

    def __init__(self, pad: int) -> None:
        self._pad = pad

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        import torch

        width = max(len(row["input_ids"]) for row in rows)

        def padded(key: str, filler: int) -> Any:
            return torch.tensor([r[key] + [filler] * (width - len(r[key])) for r in rows])

        return {
            "input_ids": padded("input_ids", self._pad),
            "labels": padded("labels", -100),
            "attention_mask": torch.tensor(
                [[1] * len(r["input_ids"]) + [0] * (width - len(r["input_ids"])) for r in rows]
            ),
            "row": torch.tensor([row["row"] for row in rows]),
        }


class BatchSorted:
    """Row places, shuffled anew each epoch, each batch sorted by length.

    The micro-batches of a batch then hold rows of like length, which saves padding; the batch,
    and so its gradient, is the same.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        self._lengths, self._batch_size, self._seed = lengths, batch_size, seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Called by the trainer at the begin of each epoch."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        places = list(range(len(self._lengths)))
        random.Random(f"{self._seed}|{self._epoch}").shuffle(places)
        for start in range(0, len(places), self._batch_size):
            batch = places[start : start + self._batch_size]
            yield from sorted(batch, key=lambda place: (self._lengths[place], place))


def _trainer_class() -> Any:
    from trl import SFTTrainer

    class CountingTrainer(SFTTrainer):  # type: ignore[misc]
        """SFTTrainer that counts each row it takes an optimizer step on."""

        def __init__(self, *arguments: Any, visits: list[int], **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.visits = visits

        def _get_train_sampler(self, *arguments: Any) -> Any:
            micro, accumulated = (
                self.args.per_device_train_batch_size,
                self.args.gradient_accumulation_steps,
            )
            lengths = [len(ids) for ids in self.train_dataset["input_ids"]]
            return BatchSorted(lengths, micro * accumulated, self.args.data_seed)

        def training_step(self, model: Any, inputs: Any, *arguments: Any, **options: Any) -> Any:
            for place in inputs.pop("row").tolist():
                self.visits[place] += 1
            return super().training_step(model, inputs, *arguments, **options)

    return CountingTrainer


def _callback(visits: list[int], progress: Progress) -> Any:
    from transformers import TrainerCallback

    class Watcher(TrainerCallback):  # type: ignore[misc]
        """Reports steps and completes each checkpoint with visits and marker."""

        def on_log(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
            loss = (kw.get("logs") or {}).get("loss")
            if loss is not None:
                progress(state.global_step, loss)

        def on_save(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            (folder / _VISITS).write_text(json.dumps(visits))
            mark_complete(folder)

    return Watcher()


def _newest_complete(work: Path) -> Path | None:
    found = [
        (int(match[1]), path)
        for path in work.glob("checkpoint-*")
        if (match := re.fullmatch(r"checkpoint-(\d+)", path.name)) and is_complete(path)
    ]
    return max(found)[1] if found else None
