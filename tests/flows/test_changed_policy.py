# SPDX-License-Identifier: Apache-2.0
"""A policy's folder under a run: changed, moved, or the sum of a base and an adapter."""

import json
from pathlib import Path
from shutil import copytree

import pytest
import yaml
from policy_files import write_adapter
from running import TRY, ask, starloop

from configs.load import load
from flows.context import Run
from flows.screen import Screen
from stages.errors import StoreError
from stages.ids import Id, run_id
from stages.policies.checkpoint import mark_complete, model_id_of
from store.db import Store


def run_of(store: Path) -> Run:
    return Run("try", run_id("try"), load(TRY), Store(store), Screen())


def model_of(store: Path, number: int) -> tuple[Id, Path]:
    (row,) = ask(
        store,
        "select model_id, path from model join round_summary using (model_id) where round = ?",
        number,
    )
    return row[0], store.parent / row[1]


def spoil(folder: Path) -> None:
    """Change a config field, as one who knows how to write the marker again."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "rope_theta": 7.0}))
    mark_complete(folder)


@pytest.mark.parametrize("number", [0, 1])
def test_a_folder_that_changed_is_refused_with_both_ids(copied: Path, number: int) -> None:
    model_id, folder = model_of(copied, number)
    assert run_of(copied).checkpoint(model_id) == folder
    spoil(folder)
    with pytest.raises(StoreError) as refused:
        run_of(copied).checkpoint(model_id)
    said = str(refused.value)
    assert str(model_id) in said and str(model_id_of(folder)) in said and str(folder) in said
    assert len(said.splitlines()) == 1


@pytest.mark.slow
def test_an_adapter_is_run_and_its_base_is_in_the_store(finished: Path, tmp_path: Path) -> None:
    base = copytree(model_of(finished, 0)[1], tmp_path / "base")
    write_adapter(base, tmp_path / "adapter")
    config = yaml.safe_load(TRY.read_text())
    config["policy"] = {
        "type": "lora", "base": str(base), "adapter": str(tmp_path / "adapter"),
    }  # fmt: skip
    (tmp_path / "adapted.yaml").write_text(yaml.safe_dump(config))
    store = tmp_path / "runs" / "store.duckdb"
    ended = starloop("run", tmp_path / "adapted.yaml", "--rounds", 1, "--store", store)
    assert (ended.code, ended.err) == (0, "")
    rows = dict(ask(store, "select model_id, base_model_id from model where origin = 'outside'"))
    (merged,) = [model for model, below in rows.items() if below is not None]
    assert rows == {merged: model_id_of(base), model_id_of(base): None}
    assert model_of(store, 0)[0] == merged
    assert starloop("doctor", "--store", store).code == 0
