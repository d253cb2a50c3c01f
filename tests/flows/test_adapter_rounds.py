# SPDX-License-Identifier: Apache-2.0
"""LoRA through the whole loop: one adapter over rounds and refreshes, a new one after a reset."""

from pathlib import Path
from typing import Any

import pytest
import torch
from running import ROOT, ask, starloop
from safetensors.torch import load_file

from configs.load import load
from report.rounds import header

GRPO = ROOT / "configs" / "tiny" / "grpo.yaml"
RANK = 2
GIVEN = (
    GRPO, "update.reset_optimizer=never", "rounds=3", "keep=last(1)", "monitors.kl=false",
    "timing.policy_refresh=every(2)", "update.steps.first=4", "generate.problems.per_round=32",
    f"update.updater={{type: grpo, batch_size: 16, learning_rate: 0.01, lora: {{rank: {RANK}}}}}",
)  # fmt: skip


def made(store: Path) -> list[tuple[int, int, Any, Any]]:
    """Round, refresh, model, and the update whose optimizer went on, in order."""
    return ask(
        store,
        "select s.round, s.refresh, u.model_id, u.optimizer_from from step_output s "
        "join training_update u on u.update_id = s.id order by s.round, s.refresh",
    )


def rank_between(store: Path, one: Any, other: Any) -> int:
    """The greatest rank of what two checkpoints differ in, up to rounding."""
    folders = [store.parent / path for model in (one, other) for (path,) in ask(
        store, "select path from model where model_id = ?", model)]  # fmt: skip
    first, last = (load_file(folder / "model.safetensors") for folder in folders)
    return max(
        int(torch.linalg.matrix_rank(last[name] - first[name], atol=1e-5))
        for name in first
        if first[name].dim() == 2
    )


def base_of(store: Path) -> Any:
    return ask(store, "select id from step_output where step = 'setup' and kind = 'model'")[0][0]


@pytest.mark.slow
def test_one_adapter_is_trained_over_refreshes_and_rounds_and_every_policy_is_a_whole_model(
    tmp_path: Path,
) -> None:
    store = tmp_path / "store.duckdb"
    ended = starloop("run", *GIVEN, "--store", store)
    assert (ended.code, ended.err) == (0, "")
    assert f"LoRA of rank {RANK}" in ended.out
    found = made(store)
    assert [row[:2] for row in found] == [(n, refresh) for n in (1, 2, 3) for refresh in (0, 1)]
    assert [goes_on is not None for *_, goes_on in found] == [False, *[True] * 5]
    base = base_of(store)
    assert rank_between(store, base, found[-1][2]) == RANK  # after six updates
    # earlier checkpoints are freed; the adapter's base is still beside the last optimizer
    freed = [m for *_, m, _ in found if not (store.parent / "models" / str(m)).is_dir()]
    assert freed == [row[2] for row in found[:-1]]
    (state,) = (store.parent / "optimizers").iterdir()
    (path,) = ask(store, "select path from model where model_id = ?", base)[0]
    kept, ours = (
        load_file(folder / "model.safetensors") for folder in (state / "base", store.parent / path)
    )
    assert all(torch.equal(kept[name], ours[name]) for name in ours)
    longer = starloop("run", *GIVEN, "rounds=4", "--store", store)
    assert longer.code == 0, longer.err
    assert made(store)[-1][3] is not None
    assert starloop("doctor", "--store", store).code == 0


@pytest.mark.slow
def test_a_reset_begins_a_new_adapter_on_the_rounds_start(tmp_path: Path) -> None:
    store = tmp_path / "store.duckdb"
    given = (*GIVEN, "update.resets=every(2)", "keep=all")
    ended = starloop("run", *given, "--store", store)
    assert ended.code == 0, ended.err
    found = made(store)
    assert [goes_on is not None for *_, goes_on in found] == [False, *[True] * 3, False, True]
    models = [base_of(store), *(row[2] for row in found)]
    assert rank_between(store, models[0], models[4]) == RANK
    assert rank_between(store, models[4], models[6]) == RANK
    assert rank_between(store, models[0], models[6]) > RANK


def test_a_header_names_the_rank() -> None:
    assert f"LoRA of rank {RANK}" in header(load(GRPO, [str(given) for given in GIVEN[1:]]))
