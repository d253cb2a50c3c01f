# SPDX-License-Identifier: Apache-2.0
"""`sft`: where the loss falls, and going on after a kill as if there had been none."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_torch import Killed
from transformers import AutoModelForCausalLM

from stages import ids
from stages.ids import Id
from stages.policies.checkpoint import MARKER, is_complete
from stages.update import update
from stages.updaters import Item, Plan, sft
from stages.updaters.training import BatchSorted

# Completions of 2 to 6 tokens after prompts of 3 to 7.
ITEMS = [
    Item(ids.mint("i", n), (1, 5, *range(20, 21 + n)), (*range(30, 31 + n), 2)) for n in range(5)
]
MASKED = [replace(ITEMS[4], loss_mask=(False, True, False, True, True, False)), *ITEMS[:4]]


def mean_loss(folder: Path, items: Sequence[Item]) -> float:
    """The mean over completion tokens with loss of −log p, by plain forward passes."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    losses: list[float] = []
    for item in items:
        whole = torch.tensor([[*item.prompt_ids, *item.completion_ids]])
        with torch.inference_mode():
            logprobs = model(input_ids=whole).logits[0].log_softmax(-1)
        mask = item.loss_mask or (True,) * len(item.completion_ids)
        for place, (token, counts) in enumerate(zip(item.completion_ids, mask, strict=True)):
            if counts:
                losses.append(-float(logprobs[len(item.prompt_ids) + place - 1, token]))
    return sum(losses) / len(losses)


def first_loss(init: Path, place: Path, items: Sequence[Item], micro: int | None = None) -> float:
    """The loss that the trainer logs for its first step over all items."""
    said: list[float | None] = []
    config = sft.Config(type="sft", batch_size=len(items), micro_batch_size=micro)
    plan = Plan(1, 0, init, place / "work", place / "draft")
    config.build().update(items, plan, lambda step, loss: said.append(loss))
    assert len(said) == 1 and said[0] is not None
    return said[0]


@pytest.mark.parametrize("items", [ITEMS, MASKED], ids=["whole", "masked"])
def test_loss_falls_on_completion_tokens_and_all_of_them_count_alike(
    tiny_folder: Path, tmp_path: Path, items: list[Item]
) -> None:
    expected = mean_loss(tiny_folder, items)
    assert first_loss(tiny_folder, tmp_path, items) == pytest.approx(expected, abs=1e-4)


def test_micro_batches_change_no_loss(tiny_folder: Path, tmp_path: Path) -> None:
    expected = mean_loss(tiny_folder, ITEMS[:4])
    found = first_loss(tiny_folder, tmp_path, ITEMS[:4], micro=1)
    assert found == pytest.approx(expected, abs=1e-4)


def test_micro_batches_that_do_not_divide_the_batch_are_refused() -> None:
    with pytest.raises(ValueError, match="micro_batch_size 3 does not divide batch_size 4"):
        sft.Config(type="sft", batch_size=4, micro_batch_size=3)


# The order of the rows.


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 8), st.integers(0, 3))
def test_an_epoch_is_every_row_once_each_batch_in_order_of_length(
    lengths: list[int], batch_size: int, epoch: int
) -> None:
    order = BatchSorted(lengths, batch_size, seed=0)
    order.set_epoch(epoch)
    places = list(order)
    assert sorted(places) == list(range(len(lengths))) and len(order) == len(lengths)
    for start in range(0, len(places), batch_size):
        batch = [lengths[place] for place in places[start : start + batch_size]]
        assert batch == sorted(batch)


def test_the_rows_of_a_batch_do_not_follow_from_its_length() -> None:
    def batches(epoch: int, seed: int) -> list[set[int]]:
        order = BatchSorted(range(40), 8, seed)
        order.set_epoch(epoch)
        places = list(order)
        return [set(places[start : start + 8]) for start in range(0, 40, 8)]

    assert batches(0, 0) == batches(0, 0)
    assert batches(0, 0) != batches(1, 0) != batches(0, 1)
    assert all(max(batch) - min(batch) > 8 for batch in batches(0, 0))


def test_the_trainer_shuffles_every_epoch_anew(tiny_folder: Path, tmp_path: Path) -> None:
    # Weights that hardly move make the loss of a step the loss of its batch: 5 rows one by one.
    said: list[float | None] = []
    config = sft.Config(type="sft", batch_size=1, learning_rate=1e-12, warmup_steps=0)
    plan = Plan(20, 0, tiny_folder, tmp_path / "work", tmp_path / "draft")
    config.build().update(ITEMS, plan, lambda step, loss: said.append(loss))
    rounded = [round(loss or 0, 4) for loss in said]
    epochs = [rounded[start : start + 5] for start in range(0, 20, 5)]
    assert len(set(rounded)) == 5
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1


# Going on after a kill: 6 steps, a checkpoint every 2, 10 rows in batches of 4 (so an epoch is
# two full batches and a rest of two).


def run(init: Path, place: Path, kill_at: int | None = None) -> tuple[str, Mapping[Id, int]]:
    """Model id and visits of an update, killed at a step if asked for."""

    def progress(step: int, loss: float | None) -> None:
        if step == kill_at:
            raise Killed

    items = [replace(ITEMS[n % 5], training_row_id=ids.mint("i", n)) for n in range(10)]
    config = sft.Config(
        type="sft", batch_size=4, learning_rate=0.01, warmup_steps=1, save_every=2,
        schedule="cosine",
    )  # fmt: skip
    (place / "models").mkdir(parents=True, exist_ok=True)
    plan = Plan(6, 3, init, place / "work", place / "draft")
    folder, trained = update(items, config.build(), plan, place / "models", progress)
    return folder.name, trained.visits


@pytest.fixture(scope="module")
def undisturbed(
    tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Mapping[Id, int]]:
    return run(tiny_folder, tmp_path_factory.mktemp("undisturbed"))


def test_visits_follow_the_epochs(undisturbed: tuple[str, Mapping[Id, int]]) -> None:
    # 6 steps are two epochs of 4 + 4 + 2 rows
    assert set(undisturbed[1].values()) == {2}


@pytest.mark.parametrize("kill_at", [1, 3, 5, 6])
def test_a_killed_update_ends_as_the_undisturbed_one(
    tiny_folder: Path, tmp_path: Path, undisturbed: tuple[str, Mapping[Id, int]], kill_at: int
) -> None:
    with pytest.raises(Killed):
        run(tiny_folder, tmp_path, kill_at)
    assert list((tmp_path / "models").iterdir()) == []
    assert run(tiny_folder, tmp_path) == undisturbed


def test_a_checkpoint_without_its_marker_does_not_count(
    tiny_folder: Path, tmp_path: Path, undisturbed: tuple[str, Mapping[Id, int]]
) -> None:
    name, _ = run(tiny_folder, tmp_path)
    rmtree(tmp_path / "models" / name)
    last = tmp_path / "work" / "checkpoint-6"
    assert is_complete(last)
    (last / MARKER).unlink()
    (last / "model.safetensors").write_bytes(b"torn")
    assert run(tiny_folder, tmp_path) == undisturbed


def test_a_result_that_was_lost_is_made_from_the_last_checkpoint(
    tiny_folder: Path, tmp_path: Path, undisturbed: tuple[str, Mapping[Id, int]]
) -> None:
    name, _ = run(tiny_folder, tmp_path)
    rmtree(tmp_path / "models" / name)
    assert run(tiny_folder, tmp_path) == undisturbed
