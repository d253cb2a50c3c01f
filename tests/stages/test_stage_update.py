# SPDX-License-Identifier: Apache-2.0
"""Planned steps, and the items that an updater is handed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from stage_rows import a_problem, a_prompt, a_trajectory

from stages import ids
from stages.errors import UpdaterError
from stages.mix import Candidate, Mix, MixConfig, mix
from stages.settings import identity
from stages.update import Behind, StepsConfig, items_of, update
from stages.updaters import Item, Plan, Trained
from stages.updaters.base import Progress

PROMPTS = {
    prompt.prompt_id: prompt
    for number in (1, 2, 3)
    for prompt in (a_prompt(a_problem(number)), a_prompt(a_problem(number), hinted=True))
}


class Lazy:
    """Stops one step short."""

    name, deterministic = "lazy", True

    def update(self, items: Sequence[Item], plan: Plan, progress: Progress) -> Trained:
        return Trained(plan.steps - 1, {}, None)


class Empty:
    """Says that it is done, and leaves nothing."""

    name, deterministic = "empty", True

    def update(self, items: Sequence[Item], plan: Plan, progress: Progress) -> Trained:
        return Trained(plan.steps, {}, None)


def a_mix() -> tuple[Mix, list[Behind]]:
    """Three rows and the trajectory behind each, in the rows' order."""
    prompts = [prompt for prompt in PROMPTS.values() if not prompt.hinted]
    found = [
        Candidate(a_trajectory(prompt, f"{n};#12"), "round", "correct", 1.0, prompt)
        for n, prompt in enumerate(prompts)
    ]
    mixed = mix(found, MixConfig(), 0, ids.mint("k", 1))
    known = {c.trajectory.trajectory_id: c.trajectory for c in found}
    behind = {
        link.training_row_id: Behind(
            link.training_row_id, link.role, known[link.trajectory_id], link.reward
        )
        for link in mixed.trajectories
    }
    return mixed, [behind[row.training_row_id] for row in mixed.rows]


def test_steps_grow_by_a_fifth_as_in_star() -> None:
    # 40 · 1.2^(n−1): 40, 48, 57.6, 69.12, 82.94…, 99.53…, 119.4…, 143.3…, rounded down
    steps = StepsConfig(first=40, growth=1.2)
    assert [steps.of_round(n, 9, 9) for n in range(1, 9)] == [40, 48, 57, 69, 82, 99, 119, 143]


def test_a_whole_number_of_steps_is_not_rounded_below_itself() -> None:
    # 100 · 1.15 = 115 and 100 · 1.4² = 196; in binary both products end a hair below
    assert StepsConfig(first=100, growth=1.15).of_round(2, 9, 9) == 115
    assert StepsConfig(first=100, growth=1.4).of_round(3, 9, 9) == 196


def test_without_growth_every_round_has_the_same_steps() -> None:
    assert {StepsConfig(first=7).of_round(n, n, 9) for n in range(1, 50)} == {7}


@pytest.mark.parametrize("values", [{"first": 0}, {"growth": 0.9}, {"growth": 11.0}])
def test_steps_never_shrink_or_vanish(values: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        StepsConfig.model_validate(values)


@pytest.mark.parametrize(
    ("epochs", "rows", "batch_size", "steps"),
    [
        # 54,473 rows three times are 163,419 visits: 1,276.7 batches of 128
        *((3, 54_473, 128, 1277), (3, 128, 128, 3), (3, 129, 128, 4), (0.5, 10, 4, 2)),
        # 0.1 · 30 ends a hair above 3 in binary
        *((0.1, 30, 1, 3), (0.001, 1, 64, 1)),
    ],
)
def test_epochs_are_passes_over_the_rounds_rows_and_a_part_of_a_step_is_a_step(
    epochs: float, rows: int, batch_size: int, steps: int
) -> None:
    found = {StepsConfig(epochs=epochs).of_round(n, rows, batch_size) for n in (1, 2, 9)}
    assert found == {steps}


@given(st.floats(0.01, 100), st.integers(1, 10**6), st.integers(1, 10**4))
def test_epochs_give_enough_visits_and_not_a_step_more(
    epochs: float, rows: int, batch_size: int
) -> None:
    steps = StepsConfig(epochs=epochs).of_round(1, rows, batch_size)
    visits = pytest.approx(epochs * rows, rel=1e-6)
    assert steps >= 1
    assert steps * batch_size >= epochs * rows or steps * batch_size == visits
    assert (steps - 1) * batch_size < epochs * rows


@pytest.mark.parametrize(("field", "value"), [("first", 40), ("growth", 1.2)])
def test_epochs_and_a_count_of_steps_are_refused_together(field: str, value: float) -> None:
    with pytest.raises(ValidationError, match=f"epochs is 3 and {field} is {value:g}: steps are"):
        StepsConfig.model_validate({"epochs": 3, field: value})


def test_a_section_without_epochs_has_the_identity_it_had_before() -> None:
    assert identity(StepsConfig(first=40, growth=1.2)) == {"first": 40, "growth": 1.2}
    assert identity(StepsConfig(epochs=3))["epochs"] == 3.0


def test_items_are_the_rows_in_training_order_with_the_tokens_that_were_sampled() -> None:
    mixed, behind = a_mix()
    items = items_of(mixed.rows[::-1], PROMPTS, behind[::-1])
    assert [item.training_row_id for item in items] == [row.training_row_id for row in mixed.rows]
    for row, item, each in zip(mixed.rows, items, behind, strict=True):
        prompt = PROMPTS[row.prompt_id]
        assert item.prompt_ids == prompt.token_ids
        assert item.completion_ids == each.trajectory.token_ids
        assert item.texts == (prompt.text, each.trajectory.completion)
        assert (item.loss_mask, item.rejected_ids, item.reference) == (None, (), ())
        assert item.reward == 1.0


def test_a_pair_is_one_item_with_both_answers_and_the_references_view_of_them() -> None:
    mixed, (first, *_) = a_mix()
    row, prompt = mixed.rows[0], PROMPTS[mixed.rows[0].prompt_id]
    wrong = a_trajectory(prompt, "9;#9", slot=1)
    behind = [
        Behind(row.training_row_id, "rejected", wrong, 0.0),
        replace(first, role="chosen"),
    ]
    reference = {
        (first.trajectory.trajectory_id, prompt.prompt_id): -1.5,
        (wrong.trajectory_id, prompt.prompt_id): -2.5,
    }
    (item,) = items_of([row], PROMPTS, behind, reference)
    assert item.completion_ids == first.trajectory.token_ids
    assert item.rejected_ids == wrong.token_ids
    assert item.reference == (-1.5, -2.5)
    assert item.texts == (prompt.text, first.trajectory.completion, wrong.completion)


def test_a_loss_mask_is_handed_on() -> None:
    mixed, (first, *_) = a_mix()
    mask = (False,) + (True,) * 4
    masked = replace(first, trajectory=replace(first.trajectory, loss_mask=mask))
    assert items_of(mixed.rows[:1], PROMPTS, [masked])[0].loss_mask == mask


def test_a_hinted_prompt_is_refused() -> None:
    mixed, behind = a_mix()
    row = mixed.rows[0]
    hinted = next(
        p for p in PROMPTS.values()
        if p.hinted and p.problem_id == PROMPTS[row.prompt_id].problem_id
    )  # fmt: skip
    with pytest.raises(UpdaterError, match="has a hinted prompt: nothing was trained"):
        items_of([replace(row, prompt_id=hinted.prompt_id)], PROMPTS, behind)


def test_a_completion_of_another_problem_is_refused() -> None:
    mixed, behind = a_mix()
    one, other = mixed.rows[:2]
    with pytest.raises(UpdaterError, match="has another problem's completion"):
        items_of([replace(one, prompt_id=other.prompt_id)], PROMPTS, behind)


def plan_in(folder: Path) -> Plan:
    return Plan(3, 0, folder / "init", folder / "work", folder / "draft")


def test_an_updater_that_stops_early_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UpdaterError, match="lazy did 2 of 3 steps: run again"):
        update([], Lazy(), plan_in(tmp_path), tmp_path, lambda step, loss: None)


def test_an_updater_that_leaves_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UpdaterError, match=r"has no config\.json or no \*\.safetensors"):
        update([], Empty(), plan_in(tmp_path), tmp_path, lambda step, loss: None)
