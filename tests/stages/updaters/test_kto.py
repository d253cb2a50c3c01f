# SPDX-License-Identifier: Apache-2.0
"""`kto`: its losses worked by hand and by plain forward passes, mismatched answers, one label."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_torch import load, losses_of_steps, summed
from pydantic import ValidationError

from stages import ids
from stages.errors import UpdaterError
from stages.scoring import score_tokens
from stages.settings import identity
from stages.updaters import Item, Plan, Trained, kto

# Two answers each to four prompts, of 3 to 6 tokens; 3 of 8 are right.
ROWS = [
    Item(
        ids.mint("i", n),
        (1, 5, *range(20, 21 + n // 2)),
        (*range(30 + n, 33 + n + n // 2), *([2] if n % 2 else [])),
        reward=float(n % 3 == 0),
    )
    for n in range(8)
]


def scored(items: Sequence[Item], reference: Path) -> list[Item]:
    """Items with the reference's log-probability."""
    rows = [(item.prompt_ids, item.completion_ids) for item in items]
    found = score_tokens(reference, "cpu", "float32", rows)
    return [replace(i, reference=(sum(v),)) for i, v in zip(items, found, strict=True)]


def a_config(**more: Any) -> kto.Config:
    given = {"learning_rate": 0.002, "batch_size": 8, "warmup_steps": 0, "weight_decay": 0.0}
    return kto.Config(type="kto", **{**given, **more})


def train(
    init: Path, reference: Path, place: Path, items: Sequence[Item], steps: int = 1, **more: Any
) -> Trained:
    plan = Plan(steps, 3, init, place / "work", place / "draft", reference=reference)
    scored_items = scored(items, reference)
    return a_config(**more).build().update(scored_items, plan, lambda step, loss: None)


def losses(trained: Trained) -> list[float]:
    return [value for _, name, value in trained.series if name == "loss"]


# Before the first step the policy is the reference: each row costs its weight times ½.


@pytest.mark.parametrize("loss", ["kto", "apo_zero_unpaired"])
@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [(1.0, 1.0, 0.5), (2.0, 1.0, (3 * 2 + 5) / 8 / 2), (1.0, 3.0, (3 + 5 * 3) / 8 / 2)],
)
def test_a_policy_that_is_its_reference_costs_half_of_each_rows_weight(
    tiny_folder: Path, tmp_path: Path, loss: str, right: float, wrong: float, expected: float
) -> None:
    trained = train(
        tiny_folder, tiny_folder, tmp_path, ROWS, loss=loss, desirable_weight=right,
        undesirable_weight=wrong,
    )  # fmt: skip
    assert losses(trained) == pytest.approx([expected], abs=1e-5)


def expected_losses(
    start: Path, reference: Path, items: Sequence[Item], steps: int, moved: bool
) -> list[float]:
    """By plain torch, β = 0.3; z is that of the mismatched answers if `moved`, else 0."""
    known = scored(items, reference)
    places = kto.mismatched([item.prompt_ids for item in items], 3)
    others = [items[place].completion_ids for place in places]
    frozen = load(reference)
    before = [summed(frozen, i, other).detach() for i, other in zip(items, others, strict=True)]

    def loss(model: Any) -> torch.Tensor:
        with torch.no_grad():
            gaps = [
                summed(model, item, other) - was
                for item, other, was in zip(items, others, before, strict=True)
            ]
        z = torch.stack(gaps).mean().clamp(min=0) if moved else torch.tensor(0.0)
        found = []
        for item in known:
            r = summed(model, item) - item.reference[0]
            sign = 1 if item.reward else -1
            found.append(1 - torch.sigmoid(0.3 * sign * (r - z)))
        return torch.stack(found).mean()

    return losses_of_steps(start, loss, steps, 0.002)


@pytest.mark.parametrize("loss", ["kto", "apo_zero_unpaired"])
@pytest.mark.parametrize("moved", [True, False])
def test_two_steps_are_those_of_plain_torch(
    tiny_folder: Path, other_folder: Path, tmp_path: Path, loss: str, moved: bool
) -> None:
    # z is 0.04 from the one model to the other, so it is cut off at 0 on the way back
    start, reference = (other_folder, tiny_folder) if moved else (tiny_folder, other_folder)
    trained = train(start, reference, tmp_path, ROWS, 2, loss=loss, beta=0.3)
    expected = expected_losses(start, reference, ROWS, 2, loss == "kto")
    assert losses(trained) == pytest.approx(expected, abs=1e-5)
    z = next(value for step, name, value in trained.series if (step, name) == (1, "kl"))
    assert (z > 0.03) == (moved and loss == "kto") and z >= 0


def test_the_mismatched_answers_count(tiny_folder: Path, other_folder: Path) -> None:
    with_z, without = (
        expected_losses(other_folder, tiny_folder, ROWS, 1, moved) for moved in (True, False)
    )
    assert abs(with_z[0] - without[0]) > 1e-4


@pytest.mark.parametrize("reward", [0.0, 1.0])
@pytest.mark.parametrize("micro", [None, 4])
def test_batches_of_one_label_train(
    tiny_folder: Path, other_folder: Path, tmp_path: Path, reward: float, micro: int | None
) -> None:
    rows = [replace(item, reward=reward) for item in ROWS]
    trained = train(tiny_folder, other_folder, tmp_path, rows, 2, beta=0.3, micro_batch_size=micro)
    assert trained.visits == {item.training_row_id: 2 for item in rows}
    if micro is None:
        expected = expected_losses(tiny_folder, other_folder, rows, 2, True)
        assert losses(trained) == pytest.approx(expected, abs=1e-5)


def test_a_rest_of_one_row_trains(tiny_folder: Path, other_folder: Path, tmp_path: Path) -> None:
    trained = train(tiny_folder, other_folder, tmp_path, ROWS[:3], 2, batch_size=2)
    assert trained.visits == {item.training_row_id: 1 for item in ROWS[:3]}


# Which answers are mismatched.

prompts = st.lists(st.sampled_from([(1,), (2,), (3, 3), (4,)]), min_size=1, max_size=30)


@given(prompts, st.integers(0, 3))
def test_each_answer_is_used_once_and_to_another_prompt_where_that_can_be(
    given_prompts: list[tuple[int, ...]], seed: int
) -> None:
    places = kto.mismatched(given_prompts, seed)
    assert sorted(places) == list(range(len(given_prompts)))
    if len(places) > 1:
        assert all(place != other for place, other in enumerate(places))
    most = max(Counter(given_prompts).values())
    if 2 * most <= len(places):
        assert all(given_prompts[p] != given_prompts[other] for p, other in enumerate(places))


def test_another_seed_pairs_otherwise() -> None:
    many = [(n,) for n in range(20)]
    assert kto.mismatched(many, 0) == kto.mismatched(many, 0) != kto.mismatched(many, 1)


# What is refused.


def test_a_batch_of_one_is_refused_where_z_is_measured() -> None:
    with pytest.raises(ValidationError, match="batch_size is 1, and loss kto measures"):
        a_config(batch_size=1)
    with pytest.raises(ValidationError, match="micro_batch_size is 1, and loss kto measures"):
        a_config(micro_batch_size=1)
    assert a_config(micro_batch_size=1, loss="apo_zero_unpaired").build().name == "kto"


def test_micro_batches_are_part_of_what_is_computed() -> None:
    assert identity(a_config(micro_batch_size=4))["micro_batch_size"] == 4


def test_one_row_has_no_mismatched_answer(tiny_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UpdaterError, match=r"one row to train on.*use loss: apo_zero_unpaired"):
        train(tiny_folder, tiny_folder, tmp_path, ROWS[:1])


def test_a_row_without_reward_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    rows = [*ROWS[:2], replace(ROWS[2], reward=None)]
    with pytest.raises(UpdaterError, match=f"training row {ROWS[2].training_row_id} has no reward"):
        train(tiny_folder, tiny_folder, tmp_path, rows)
