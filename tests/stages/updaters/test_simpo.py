# SPDX-License-Identifier: Apache-2.0
"""`simpo`: its loss by plain forward passes, on tokens as they are."""

from pathlib import Path
from typing import Any

import pytest
import torch
from plain_torch import logprobs, losses_of_steps

from stages import ids
from stages.updaters import Item, Plan, simpo

# Pairs of 2 to 9 tokens; every other answer has no end token (2).
PAIRS = [
    Item(
        ids.mint("i", n),
        (1, 5, *range(20, 21 + n)),
        (*range(30, 32 + n), *([2] if n % 2 else [])),
        rejected_ids=(*range(36, 43 - n), 2),
    )
    for n in range(5)
]


@pytest.mark.parametrize("cpo_alpha", [0.0, 0.5])
def test_two_steps_are_those_of_plain_torch(
    tiny_folder: Path, tmp_path: Path, cpo_alpha: float
) -> None:
    def loss(model: Any) -> torch.Tensor:
        found, said = [], []
        for item in PAIRS:
            chosen = logprobs(model, item.prompt_ids, item.completion_ids)
            rejected = logprobs(model, item.prompt_ids, item.rejected_ids)
            difference = 2.5 * (chosen.mean() - rejected.mean())
            found.append(-torch.nn.functional.logsigmoid(difference - 0.7))
            said.append(chosen)
        return torch.stack(found).mean() - cpo_alpha * torch.cat(said).mean()

    config = simpo.Config(
        type="simpo", learning_rate=0.002, batch_size=5, warmup_steps=0, weight_decay=0.0,
        beta=2.5, gamma=0.7, cpo_alpha=cpo_alpha,
    )  # fmt: skip
    plan = Plan(2, 3, tiny_folder, tmp_path / "work", tmp_path / "draft")
    trained = config.build().update(PAIRS, plan, lambda step, loss: None)
    found = [value for _, name, value in trained.series if name == "loss"]
    assert found == pytest.approx(losses_of_steps(tiny_folder, loss, 2, 0.002), abs=1e-5)
    assert set(trained.visits.values()) == {2}


def test_it_has_no_reference() -> None:
    assert not simpo.Config(type="simpo").needs_reference
