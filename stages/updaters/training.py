# SPDX-License-Identifier: Apache-2.0
"""How TRL's trainers train for us: data order, visits, checkpoints, an optimizer carried on."""

import json
import random
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from stages.errors import UpdaterError
from stages.policies.checkpoint import is_complete, mark_complete
from stages.updaters.adapter import keep_adapter
from stages.updaters.base import Plan, Progress

VISITS = "visits.json"
COUNTERS = ("step", "epoch", "num_tokens")  # the last begins anew where a killed update goes on
MODEL_FILES = ("*.safetensors*", "*.bin", "tokenizer*", "*.jinja", "config.json", "README.md")


def padded(rows: Sequence[Sequence[Any]], filler: Any) -> Any:
    """A tensor of rows, shorter ones filled up on the right."""
    import torch

    width = max(map(len, rows))
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows])


class BatchSorted:
    """Sampler over row places: shuffled by seed and epoch, each batch sorted by length.

    A step trains on the rows that it would train on anyway; with micro-batches, those of like
    length share one and little is padded.
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


def counting(trainer_class: Any) -> Any:
    """A trainer of TRL that takes rows as they are and counts its visits."""

    class CountingTrainer(trainer_class):  # type: ignore[misc]
        """The trainer on rows as they are; it counts each that it takes an optimizer step on."""

        def __init__(
            self, *arguments: Any, visits: list[int], lengths: Sequence[int], plan: Plan,
            **options: Any,
        ) -> None:  # fmt: skip
            self.visits, self.lengths, self.plan = visits, lengths, plan
            super().__init__(*arguments, **options)

        def _prepare_dataset(self, dataset: Any, *arguments: Any, **options: Any) -> Any:
            return dataset

        def _precompute_ref_logps(self, dataset: Any, *arguments: Any, **options: Any) -> Any:
            return dataset

        def _get_train_sampler(self, *arguments: Any) -> Any:
            accumulated = self.args.gradient_accumulation_steps
            batch = self.args.per_device_train_batch_size * accumulated
            return BatchSorted(self.lengths, batch, self.args.data_seed)

        def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
            return super().create_scheduler(self.plan.span or num_training_steps, optimizer)

        def _prepare_for_training(self, steps: int, loader: Any, checkpoint: str | None) -> Any:
            prepared = super()._prepare_for_training(steps, loader, checkpoint)
            if checkpoint is None and self.plan.optimizer is not None:
                self._load_optimizer_and_scheduler(str(self.plan.optimizer))
            return prepared

        def training_step(self, model: Any, inputs: Any, *arguments: Any, **options: Any) -> Any:
            for place in inputs.pop("row").tolist():
                self.visits[place] += 1
            return super().training_step(model, inputs, *arguments, **options)

    return CountingTrainer


def watcher(visits: list[int], progress: Progress, keep_last: bool) -> Any:
    """A callback; `keep_last`: the last step leaves a training checkpoint too."""
    from transformers import TrainerCallback

    class Watcher(TrainerCallback):  # type: ignore[misc]
        """Reports steps and completes each checkpoint with visits and marker."""

        def on_step_end(self, args: Any, state: Any, control: Any, **kw: Any) -> Any:
            if keep_last and state.global_step == state.max_steps:
                control.should_save = True
            return control

        def on_log(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
            logs = kw.get("logs") or {}
            if "loss" in logs:
                if not args.fp16:  # which skips the steps that overflow
                    refuse_no_number(logs, state.global_step, state.max_steps)
                progress(state.global_step, logs["loss"])

        def on_save(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            (folder / VISITS).write_text(json.dumps(visits))
            mark_complete(folder)

    return Watcher()


def refuse_no_number(logs: Mapping[str, float], step: int, steps: int) -> None:
    """UpdaterError where loss or gradient of a step is no number: nor is what follows."""
    for name in ("loss", "grad_norm"):
        if not isfinite(logs.get(name, 0.0)):
            raise UpdaterError(
                f"{name} is {logs[name]} at step {step} of {steps}: training has come apart, and "
                "nothing of it was stored; start another --name with a lower "
                "update.updater.learning_rate, or mend the rewards"
            )


def newest_complete(work: Path) -> Path | None:
    """The newest whole training checkpoint."""
    found = [
        (int(match[1]), path)
        for path in work.glob("checkpoint-*")
        if (match := re.fullmatch(r"checkpoint-(\d+)", path.name)) and is_complete(path)
    ]
    return max(found)[1] if found else None


def keep_state(checkpoint: Path, state: Path, base: Path | None) -> None:
    """Move the optimizer's state out of a training checkpoint, without the model.

    Where an adapter is trained, it goes along, with the `base` that it is on.
    """
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    if base is not None:
        keep_adapter(checkpoint, base, state)
    for path in checkpoint.iterdir():
        if not any(path.match(pattern) for pattern in MODEL_FILES) and path.name != "COMPLETE":
            path.rename(state / path.name)
    mark_complete(state)


def series_of(history: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str, float]]:
    """What the trainer measured on each step, by step and name: no counters, no closing sums."""
    for entry in history:
        if "loss" in entry:
            for name, value in entry.items():
                if name not in COUNTERS and isinstance(value, int | float):
                    yield entry["step"], name, float(value)


def last_loss(series: Iterable[tuple[int, str, float]]) -> float | None:
    """The mean loss of the last tenth of the steps, None where none was measured."""
    losses = [value for _, name, value in series if name == "loss"]
    last = losses[-max(1, len(losses) // 10) :]
    return sum(last) / len(last) if last else None
