# SPDX-License-Identifier: Apache-2.0
"""What trainers compute, again by plain forward passes, one sequence at a time."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from stages.policies.checkpoint import weight_files
from stages.updaters import Item

Loss = Callable[[Any], torch.Tensor]


class Killed(BaseException):
    """What a kill looks like from inside."""


def load(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def logprobs(model: Any, prompt: Sequence[int], answer: Sequence[int]) -> torch.Tensor:
    """The log-probability of each of an answer's tokens, with gradients."""
    whole = torch.tensor([[*prompt, *answer]])
    said = model(input_ids=whole).logits[0].log_softmax(-1)
    rows = range(len(prompt) - 1, len(prompt) - 1 + len(answer))
    return torch.stack([said[row, token] for row, token in zip(rows, answer, strict=True)])


def summed(model: Any, item: Item, answer: Sequence[int] | None = None) -> torch.Tensor:
    """The log-probability of an item's answer, the chosen one unless another is given."""
    return logprobs(model, item.prompt_ids, answer or item.completion_ids).sum()


def losses_of_steps(
    start: Path, loss: Loss, steps: int, learning_rate: float, beta2: float = 0.95
) -> list[float]:
    """The loss before each step of AdamW without decay, all rows at once, gradients cut at 1."""
    model = load(start)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=learning_rate, betas=(0.9, beta2), weight_decay=0.0
    )
    said = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(model)
        value.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        said.append(float(value.detach()))
    return said


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return {name: t for path in weight_files(folder) for name, t in load_file(path).items()}
