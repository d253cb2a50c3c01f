# SPDX-License-Identifier: Apache-2.0
"""What the updaters on TRL share: its trainers on the token ids that were sampled.

Rows go in as tokens: no text is tokenized again, no end token added, nothing cut. Each training
checkpoint gets a COMPLETE marker with the visits so far; a killed update goes on from the newest
complete one, in the same data order. An update may go on with the optimizer and the learning
rate's schedule that an earlier one left.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from stages.errors import UpdaterError
from stages.memory import hold_memory
from stages.policies.checkpoint import copy_tokenizer, load_tokenizer
from stages.policies.dtype import trained_in
from stages.samplers.base import passed_through
from stages.settings import later, operational
from stages.updaters.adapter import LoraConfig, base_of, fitting, go_on, save_merged
from stages.updaters.base import (
    Item,
    Plan,
    Progress,
    Rows,
    Trained,
    UpdaterSettings,
    accelerator,
    check_any,
)
from stages.updaters.training import (
    VISITS,
    counting,
    keep_state,
    last_loss,
    newest_complete,
    series_of,
    watcher,
)

OWNED = {
    "output_dir": "starloop keeps the checkpoints",
    "seed": "set the run's seed",
    "data_seed": "set the run's seed",
    "max_steps": "set update.steps",
    "resume_from_checkpoint": "a killed update goes on by itself",
    "num_train_epochs": "set update.steps.epochs",
    "per_device_train_batch_size": "set update.updater.batch_size and micro_batch_size",
    "gradient_accumulation_steps": "set update.updater.batch_size and micro_batch_size",
    "train_sampling_strategy": "rows are shuffled by the run's seed",
    "save_strategy": "set update.updater.save_every",
    "save_steps": "set update.updater.save_every",
    "logging_strategy": "every step is kept",
    "logging_steps": "every step is kept",
    "dataset_kwargs": "rows are token ids already",
    "remove_unused_columns": "rows are token ids already",
    "packing": "rows are trained on as they are",
    "max_length": "nothing is cut; bound generate.sampling.max_tokens",
    "bf16": "set update.updater.dtype",
    "fp16": "set update.updater.dtype",
    "precompute_ref_log_probs": "they come from the store",
    "ld_alpha": "the reference's log-probabilities are of whole answers",
    "sync_ref_model": "set update.reference: synced(every r)",
    "report_to": "nothing leaves the machine",
    "push_to_hub": "nothing leaves the machine",
}


class TrlSettings(UpdaterSettings):
    """Optimizer and batch; steps come from the plan. `batch_size` counts training rows.

    `dtype` is that of weights, gradients and moments alike (an adapter's are float32); `auto`:
    bfloat16 where the processor multiplies it, else float32. `lora` trains an adapter in place of
    all weights. `trainer_args` go to TRL's config as they are.
    """

    renamed: ClassVar[Mapping[str, str]] = {}  # by TRL's name, the name of our field
    owned: ClassVar[Mapping[str, str]] = {}  # by TRL's name, why it cannot be set

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
    adam_epsilon: float = later(1e-8, gt=0)
    lora: LoraConfig | None = later(None)
    trainer_args: dict[str, Any] = later({})

    @model_validator(mode="after")
    def _micro_batches_fill_the_batch(self) -> "TrlSettings":
        if self.micro_batch_size and self.batch_size % self.micro_batch_size:
            raise ValueError(
                f"micro_batch_size {self.micro_batch_size} does not divide batch_size "
                f"{self.batch_size}: use a divisor"
            )
        return self

    @model_validator(mode="after")
    def _trainer_knows_its_arguments(self) -> "TrlSettings":
        if not self.trainer_args:
            return self
        ours = {name: name for name in type(self).model_fields} | {
            "lr_scheduler_type": "schedule", **self.renamed
        }  # fmt: skip
        owned = {name: f"set update.updater.{field}" for name, field in ours.items()}
        passed_through(self.trainer_args, {**OWNED, **self.owned, **owned})
        known = {field.name for field in fields(self.trl_config())}
        for name in self.trainer_args:
            if name not in known:
                raise ValueError(f"trainer_args: {self.trl_config().__name__} has no {name!r}")
        return self

    @classmethod
    def trl_config(cls) -> Any:
        """TRL's config class."""
        raise NotImplementedError

    @property
    def rows(self) -> Rows:
        return "sft"

    @property
    def carries_optimizer(self) -> bool:
        return True

    @property
    def precision(self) -> tuple[str, str]:
        return self.dtype, accelerator()

    def check(self) -> None:
        if self.lora is not None:
            self.lora.check()


class TrlUpdater:
    """Trains all weights, or an adapter, on one device with one of TRL's trainers."""

    name: ClassVar[str]
    deterministic: ClassVar[bool] = True
    masks: ClassVar[bool] = False  # whether its loss can leave tokens of a completion out

    def __init__(self, config: Any) -> None:
        self.config = config

    def trainer_class(self) -> Any:
        """TRL's trainer."""
        raise NotImplementedError

    def arguments(self, items: Sequence[Item]) -> Mapping[str, Any]:
        """What the trainer's config has beside optimizer and batch."""
        return {}

    def row(self, item: Item) -> Mapping[str, Any]:
        """An item as a row of the trainer's data set."""
        raise NotImplementedError

    def rows(self, items: Sequence[Item], plan: Plan) -> list[dict[str, Any]]:
        """All items as rows, with what they need beside their own tokens."""
        return [dict(self.row(item)) for item in items]

    def length(self, item: Item) -> int:
        """Tokens of an item's longest sequence; a batch is sorted by it."""
        return len(item.prompt_ids) + max(len(item.completion_ids), len(item.rejected_ids))

    def collator(self, pad: int) -> Any:
        """From rows to a batch of tensors; keeps `row`, each row's place."""
        raise NotImplementedError

    def update(self, items: Sequence[Item], plan: Plan, progress: Progress) -> Trained:
        import torch
        from transformers import AutoModelForCausalLM

        check_any(items)
        self._check_masks(items)
        hold_memory()
        dtype, device = self.config.precision
        wide = getattr(torch, trained_in(dtype, device))
        base = plan.init if self.config.lora is None else base_of(plan)
        model = AutoModelForCausalLM.from_pretrained(base, dtype=wide)
        resume = newest_complete(plan.work)
        visits = json.loads((resume / VISITS).read_text()) if resume else [0] * len(items)
        trainer = self._trainer(model, items, plan, visits, progress)
        trainer.train(resume_from_checkpoint=str(resume) if resume else None)
        if self.config.lora is None:
            trainer.save_model(str(plan.draft))
            (plan.draft / "training_args.bin").unlink(missing_ok=True)
        else:
            save_merged(trainer.model, plan.draft)
        copy_tokenizer(plan.init, plan.draft)
        if plan.state is not None:
            last = plan.work / f"checkpoint-{trainer.state.global_step}"
            keep_state(last, plan.state, None if self.config.lora is None else base)
        series = list(series_of(trainer.state.log_history))
        by_id = {item.training_row_id: count for item, count in zip(items, visits, strict=True)}
        return Trained(trainer.state.global_step, by_id, last_loss(series), series)

    def _check_masks(self, items: Sequence[Item]) -> None:
        masked = [i for i in items if i.loss_mask is not None and not all(i.loss_mask)]
        if masked and not self.masks:
            raise UpdaterError(
                f"training row {masked[0].training_row_id} has tokens that are not to be trained "
                f"on, and the loss of {self.name} is of whole completions: use sft, or rows "
                "without a loss mask"
            )

    def _trainer(
        self, model: Any, items: Sequence[Item], plan: Plan, visits: list[int], progress: Progress
    ) -> Any:
        from datasets import Dataset
        from transformers import PrinterCallback

        config, accelerated = self.config, accelerator() == "cuda"
        micro = config.micro_batch_size or config.batch_size
        given = {
            "output_dir": str(plan.work),
            "max_steps": plan.steps,
            "learning_rate": config.learning_rate,
            "lr_scheduler_type": config.schedule,
            "warmup_steps": min(config.warmup_steps, plan.span or plan.steps),
            "weight_decay": config.weight_decay,
            "adam_beta2": config.adam_beta2,
            "adam_epsilon": config.adam_epsilon,
            "max_grad_norm": config.max_grad_norm,
            "per_device_train_batch_size": micro,
            "gradient_accumulation_steps": config.batch_size // micro,
            "seed": plan.seed % 2**31,
            "data_seed": plan.seed % 2**31,
            "save_strategy": "steps",
            "save_steps": config.save_every,
            "save_total_limit": 2,
            "logging_steps": 1,
            "logging_strategy": "steps",
            "report_to": "none",
            "disable_tqdm": True,
            "bf16": False,
            "use_cpu": not accelerated,
            "dataloader_pin_memory": accelerated,
            "remove_unused_columns": False,
            **self.arguments(items),
            **config.trainer_args,
        }
        rows = [{"row": place, **row} for place, row in enumerate(self.rows(items, plan))]
        tokenizer = load_tokenizer(plan.init)
        lengths = [self.length(item) for item in items]
        adapted = {} if config.lora is None else {"peft_config": config.lora.of_peft()}
        with fitting(config.lora):
            trainer = counting(self.trainer_class())(
                model=model,
                args=config.trl_config()(**given),
                train_dataset=Dataset.from_list(rows),
                processing_class=tokenizer,
                data_collator=self.collator(tokenizer.pad_token_id),
                callbacks=[watcher(visits, progress, plan.state is not None)],
                visits=visits,
                lengths=lengths,
                plan=plan,
                **adapted,
            )
        if adapted and plan.optimizer is not None:
            go_on(trainer.model, plan.optimizer)
        trainer.remove_callback(PrinterCallback)
        return trainer
