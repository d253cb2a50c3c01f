# SPDX-License-Identifier: Apache-2.0
"""`dpo`: its losses worked by hand and by plain forward passes, kills, an optimizer carried on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from plain_torch import Killed, load, logprobs, losses_of_steps, summed, weights
from pydantic import ValidationError

from stages import ids
from stages.errors import UpdaterError
from stages.ids import Id
from stages.scoring import score_tokens
from stages.update import update
from stages.updaters import Item, Plan, Trained, dpo

# Pairs of 3 to 8 tokens; every other answer has no end token (2).
PAIRS = [
    Item(
        ids.mint("i", n),
        (1, 5, *range(20, 21 + n)),
        (*range(30, 33 + n), *([2] if n % 2 else [])),
        rejected_ids=(*range(40 - n, 44), 2),
    )
    for n in range(5)
]


def scored(items: Sequence[Item], reference: Path) -> list[Item]:
    """Items with the reference's log-probabilities."""
    rows = [
        (item.prompt_ids, answer)
        for item in items
        for answer in (item.completion_ids, item.rejected_ids)
    ]
    sums = [sum(values) for values in score_tokens(reference, "cpu", "float32", rows)]
    return [replace(i, reference=(sums[2 * n], sums[2 * n + 1])) for n, i in enumerate(items)]


def a_config(**more: Any) -> dpo.Config:
    given = {"learning_rate": 0.01, "batch_size": 5, "warmup_steps": 0, "weight_decay": 0.0}
    return dpo.Config(type="dpo", **{**given, **more})


def train(init: Path, place: Path, items: Sequence[Item], steps: int = 1, **more: Any) -> Trained:
    plan = Plan(steps, 3, init, place / "work", place / "draft")
    return a_config(**more).build().update(items, plan, lambda step, loss: None)


def losses(trained: Trained) -> list[float]:
    return [value for _, name, value in trained.series if name == "loss"]


def measured(trained: Trained, name: str) -> float:
    """What the trainer measured on the first step."""
    return next(value for step, said, value in trained.series if (step, said) == (1, name))


# Before the first step the policy is the reference: every log-ratio is 0.


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("sigmoid", math.log(2)),  # −log σ(0)
        ("hinge", 1.0),  # max(0, 1 − 0)
        ("ipo", (1 / (2 * 0.1)) ** 2),  # (0 − 1 / (2β))²
        ("robust", math.log(2)),
        ("bco_pair", 2 * math.log(2)),
        ("apo_zero", 1.0),  # 1 − σ(0) + σ(0)
        ("sppo_hard", 2 * (0.5 / 0.1) ** 2),
        ("sigmoid_norm", math.log(2)),
    ],
)
def test_a_policy_that_is_its_reference_has_the_loss_of_no_difference(
    tiny_folder: Path, tmp_path: Path, loss: str, expected: float
) -> None:
    trained = train(tiny_folder, tmp_path, scored(PAIRS, tiny_folder), losses=[loss])
    assert losses(trained) == pytest.approx([expected], rel=1e-5)


def test_sigmoid_and_sft_add_the_cross_entropy_of_the_chosen_answers(
    tiny_folder: Path, tmp_path: Path
) -> None:
    model = load(tiny_folder)
    chosen = torch.cat([logprobs(model, p.prompt_ids, p.completion_ids) for p in PAIRS]).detach()
    items = scored(PAIRS, tiny_folder)
    for weight in (1.0, 0.5):
        trained = train(
            tiny_folder, tmp_path / str(weight), items, losses=["sigmoid", "sft"],
            weights=[1.0, weight],
        )  # fmt: skip
        expected = math.log(2) - weight * float(chosen.mean())
        assert losses(trained) == pytest.approx([expected], abs=1e-5)


@pytest.mark.parametrize("micro", [None, 1])
def test_two_steps_are_those_of_plain_torch(
    tiny_folder: Path, other_folder: Path, tmp_path: Path, micro: int | None
) -> None:
    items = scored(PAIRS, other_folder)
    beta = 0.3

    def loss(model: Any) -> torch.Tensor:
        found = []
        for item in items:
            chosen = summed(model, item) - item.reference[0]
            rejected = summed(model, item, item.rejected_ids) - item.reference[1]
            found.append(-torch.nn.functional.logsigmoid(beta * (chosen - rejected)))
        return torch.stack(found).mean()

    trained = train(
        tiny_folder, tmp_path, items, 2, beta=beta, micro_batch_size=micro, learning_rate=0.002
    )
    expected = losses_of_steps(tiny_folder, loss, 2, 0.002)
    assert losses(trained) == pytest.approx(expected, abs=1e-5)
    assert abs(expected[0] - math.log(2)) > 0.01 and expected[1] < expected[0]


def test_the_trainer_reads_the_tokens_as_the_reference_is_read_with_or_without_an_end(
    tiny_folder: Path, tmp_path: Path
) -> None:
    items = scored(PAIRS, tiny_folder)
    assert {item.completion_ids[-1] == 2 for item in items} == {True, False}
    trained = train(tiny_folder, tmp_path, items)
    for place, side in enumerate(("chosen", "rejected")):
        mean = sum(item.reference[place] for item in items) / len(items)
        assert measured(trained, f"logps/{side}") == pytest.approx(mean, abs=1e-4)
        assert measured(trained, f"rewards/{side}") == pytest.approx(0, abs=1e-6)


def test_a_pair_is_one_visit(tiny_folder: Path, tmp_path: Path) -> None:
    trained = train(tiny_folder, tmp_path, scored(PAIRS, tiny_folder), 3, batch_size=2)
    assert trained.visits == {item.training_row_id: 1 for item in PAIRS}


def test_losses_and_weights_go_together() -> None:
    with pytest.raises(ValidationError, match="weights has 1 values for 2 losses: give one for"):
        a_config(losses=["sigmoid", "sft"], weights=[1.0])
    with pytest.raises(ValidationError, match="micro_batch_size is 2, and aot compares all"):
        a_config(losses=["sigmoid", "aot"], micro_batch_size=2, batch_size=4)
    a_config(losses=["aot"], micro_batch_size=4, batch_size=4)
    with pytest.raises(ValidationError, match="label_smoothing is 0, exo_pair needs more"):
        a_config(losses=["exo_pair"])


# Going on after a kill: 6 steps, a checkpoint every 2, 5 pairs in batches of 2.


def run(init: Path, place: Path, kill_at: int | None = None) -> tuple[str, Mapping[Id, int]]:
    """Model id and visits of an update, killed at a step if asked for."""

    def progress(step: int, loss: float | None) -> None:
        if step == kill_at:
            raise Killed

    (place / "models").mkdir(parents=True, exist_ok=True)
    updater = a_config(batch_size=2, save_every=2, schedule="cosine").build()
    plan = Plan(6, 3, init, place / "work", place / "draft")
    folder, trained = update(scored(PAIRS, init), updater, plan, place / "models", progress)
    return folder.name, trained.visits


def test_a_killed_update_ends_as_the_undisturbed_one(tiny_folder: Path, tmp_path: Path) -> None:
    undisturbed = run(tiny_folder, tmp_path / "undisturbed")
    assert set(undisturbed[1].values()) == {2}
    for kill_at in (3, 5):
        place = tmp_path / str(kill_at)
        with pytest.raises(Killed):
            run(tiny_folder, place, kill_at)
        assert list((place / "models").iterdir()) == []
        assert run(tiny_folder, place) == undisturbed


# Going on with the optimizer: three updates of 2 steps against one of 6, all pairs at each step.


def adam_steps(state: Path) -> set[float]:
    kept = torch.load(state / "optimizer.pt", weights_only=True)["state"]
    return {float(of_parameter["step"]) for of_parameter in kept.values()}


@pytest.mark.parametrize("schedule", ["constant_with_warmup", "cosine"])
def test_updates_that_hand_on_the_optimizer_are_one_long_update(
    tiny_folder: Path, other_folder: Path, tmp_path: Path, schedule: Any
) -> None:
    items = scored(PAIRS, other_folder)
    updater = a_config(schedule=schedule, warmup_steps=3, weight_decay=0.1).build()
    whole = Plan(6, 3, tiny_folder, tmp_path / "work", tmp_path / "draft")
    expected = losses(updater.update(items, whole, lambda step, loss: None))
    found: list[float] = []
    init, optimizer = tiny_folder, None
    for part in range(3):
        place = tmp_path / str(part)
        plan = Plan(
            2, part, init, place / "work", place / "draft",
            optimizer=optimizer, span=6, state=place / "state",
        )  # fmt: skip
        found += losses(updater.update(items, plan, lambda step, loss: None))
        assert adam_steps(place / "state") == {2 * part + 2}
        assert not list((place / "state").glob("*.safetensors"))
        init, optimizer = plan.draft, plan.state
    assert found == pytest.approx(expected, abs=1e-6)
    ours, theirs = weights(init), weights(whole.draft)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=0, atol=1e-6)


def test_without_the_optimizer_the_second_update_is_another(
    tiny_folder: Path, other_folder: Path, tmp_path: Path
) -> None:
    items = scored(PAIRS, other_folder)
    first = Plan(2, 0, tiny_folder, tmp_path / "work", tmp_path / "draft", state=tmp_path / "state")
    a_config().build().update(items, first, lambda step, loss: None)
    made = []
    for name, optimizer in (("with", first.state), ("without", None)):
        plan = Plan(
            2, 0, first.draft, tmp_path / f"{name} work", tmp_path / name, optimizer=optimizer
        )
        a_config().build().update(items, plan, lambda step, loss: None)
        made.append(weights(plan.draft))
    assert any(not torch.equal(tensor, made[1][name]) for name, tensor in made[0].items())


def test_a_pair_with_tokens_left_out_of_the_loss_is_refused(
    tiny_folder: Path, tmp_path: Path
) -> None:
    pairs = scored(PAIRS, tiny_folder)
    whole = (True,) * len(pairs[0].completion_ids)
    train(tiny_folder, tmp_path / "whole", [replace(pairs[0], loss_mask=whole), *pairs[1:]])
    partly = [pairs[0], replace(pairs[1], loss_mask=(False, *(True,) * 4))]
    with pytest.raises(UpdaterError, match=f"{partly[1].training_row_id} has tokens that are not"):
        train(tiny_folder, tmp_path / "partly", partly)
