# SPDX-License-Identifier: Apache-2.0
"""`tally`: it records what it was given and keeps the model loadable."""

import json
from pathlib import Path

from transformers import AutoModelForCausalLM

from stages import ids
from stages.policies.checkpoint import copy_tokenizer
from stages.updaters import Item, Plan, tally

ITEMS = [Item(ids.mint("i", n), (1,), (5,) * (n + 1)) for n in range(3)]


def run(init: Path, place: Path, steps: int, batch_size: int) -> tuple[list[int], dict[str, int]]:
    """Visits in the order of the items, and the tally that was written."""
    updater = tally.Config(type="tally", batch_size=batch_size).build()
    plan = Plan(steps, 0, init, place / "work", place / "draft")
    trained = updater.update(ITEMS, plan, lambda step, loss: None)
    written = json.loads((place / "draft" / "config.json").read_text())["tally"]
    return [trained.visits[item.training_row_id] for item in ITEMS], written


def test_rows_are_counted_in_order_and_from_the_first_again(
    tiny_folder: Path, tmp_path: Path
) -> None:
    # two steps of two rows: 0 1, 2 0; completions of 1 + 2 + 3 + 1 tokens
    visits, written = run(tiny_folder, tmp_path, steps=2, batch_size=2)
    assert visits == [2, 1, 1]
    assert (written["steps"], written["rows"], written["tokens"]) == (2, 3, 7)


def test_a_batch_may_be_larger_than_the_set(tiny_folder: Path, tmp_path: Path) -> None:
    visits, _ = run(tiny_folder, tmp_path, steps=1, batch_size=7)
    assert visits == [3, 2, 2]


def test_a_tally_counts_its_start_in(tiny_folder: Path, tmp_path: Path) -> None:
    run(tiny_folder, tmp_path / "one", steps=2, batch_size=2)
    _, written = run(tmp_path / "one" / "draft", tmp_path / "two", steps=3, batch_size=1)
    # 2 + 3 steps, 3 + 3 rows, 7 + (1 + 2 + 3) tokens
    assert (written["steps"], written["rows"], written["tokens"]) == (5, 6, 13)


def test_a_start_in_several_weight_files_stays_loadable(tiny_folder: Path, tmp_path: Path) -> None:
    sharded = tmp_path / "sharded"
    model = AutoModelForCausalLM.from_pretrained(tiny_folder)
    model.save_pretrained(sharded, max_shard_size="5KB")
    copy_tokenizer(tiny_folder, sharded)
    assert len(list(sharded.glob("*.safetensors"))) > 1
    run(sharded, tmp_path, steps=1, batch_size=1)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "draft", local_files_only=True)
    assert loaded.num_parameters() == model.num_parameters()
