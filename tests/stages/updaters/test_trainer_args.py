# SPDX-License-Identifier: Apache-2.0
"""`trainer_args`: what TRL knows goes through, the rest is refused by name."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from stages import ids
from stages.settings import identity
from stages.updaters import Item, Plan, dpo, grpo, kto, sft, simpo

ITEMS = [Item(ids.mint("i", n), (1, 5, 6 + n), (7, 8 + n, 2)) for n in range(4)]
CONFIGS: dict[str, Any] = {"dpo": dpo, "grpo": grpo, "kto": kto, "sft": sft, "simpo": simpo}


@pytest.mark.parametrize("name", CONFIGS)
def test_what_the_trainer_knows_is_taken(name: str) -> None:
    config = CONFIGS[name].Config(type=name, trainer_args={"label_smoothing_factor": 0.1})
    assert identity(config)["trainer_args"] == {"label_smoothing_factor": 0.1}


def test_an_argument_reaches_the_trainer(tiny_folder: Path, tmp_path: Path) -> None:
    said: dict[str, list[tuple[int, str, float]]] = {}
    for optim in ("adamw_torch", "sgd"):
        config = sft.Config(type="sft", batch_size=4, warmup_steps=0, trainer_args={"optim": optim})
        plan = Plan(2, 0, tiny_folder, tmp_path / optim, tmp_path / f"{optim} draft")
        said[optim] = list(config.build().update(ITEMS, plan, lambda step, loss: None).series)
    first, second = ({(s, n): v for s, n, v in series} for series in said.values())
    assert first[1, "loss"] == second[1, "loss"]
    assert first[2, "loss"] != second[2, "loss"]


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("sft", {"seed": 1}, "'seed' cannot be set here: set the run's seed"),
        ("sft", {"output_dir": "x"}, "'output_dir' cannot be set here: starloop keeps"),
        ("sft", {"max_steps": 3}, "'max_steps' cannot be set here: set update.steps"),
        ("sft", {"lr_scheduler_type": "linear"}, "set update.updater.schedule"),
        ("sft", {"learning_rate": 1.0}, "set update.updater.learning_rate"),
        ("sft", {"per_device_train_batch_size": 1}, "set update.updater.batch_size"),
        ("sft", {"push_to_hub": True}, "nothing leaves the machine"),
        ("dpo", {"beta": 0.2}, "'beta' cannot be set here: set update.updater.beta"),
        ("dpo", {"loss_type": ["ipo"]}, "'loss_type' cannot be set here: set update.updater"),
        ("kto", {"loss_type": "kto"}, "'loss_type' cannot be set here: set update.updater"),
        ("kto", {"train_sampling_strategy": "random"}, "shuffled by the run's seed"),
        ("simpo", {"simpo_gamma": 1.0}, "'simpo_gamma' cannot be set here: set update.updater"),
        ("sft", {"learnin_rate": 1.0}, "SFTConfig has no 'learnin_rate'"),
        ("kto", {"loss_weights": [1.0]}, "KTOConfig has no 'loss_weights'"),
        ("sft", {"optim": {1, 2}}, "not JSON"),
    ],
)
def test_what_we_own_and_what_it_does_not_know_is_refused(
    name: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        CONFIGS[name].Config(type=name, trainer_args=given)
    assert message in str(caught.value)
