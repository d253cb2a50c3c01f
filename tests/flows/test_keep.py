# SPDX-License-Identifier: Apache-2.0
"""`keep` in a config and in a run: which rules there are, and what a run does with one."""

from pathlib import Path

import duckdb
import pytest
from running import TRY, ask, starloop

from configs.load import load
from flows.context import Run
from flows.retention import retain
from flows.screen import Screen
from stages.errors import ConfigError, StoreError
from stages.ids import run_id
from store.db import Store


def test_a_freed_checkpoint_says_so_where_it_is_asked_for(copied: Path) -> None:
    store = Store(copied)
    config = load(TRY, ["keep=last(1)"])
    run = Run("try", run_id("try"), config, store, Screen())
    with store.transaction() as tx:
        (first,) = tx.ask("model_of_round", run_id=run.run_id, round=1)
    retain(run)  # the store's newest config says all: nothing goes
    assert run.checkpoint(first["model_id"]).is_dir()
    with duckdb.connect(str(copied)) as connection:
        sql = "update run set config = replace(config, ?, ?)"
        connection.execute(sql, ['"keep":"all"', '"keep":"last(1)"'])
    retain(run)
    with pytest.raises(StoreError, match=r"was freed at .* by `keep`: put it back, or fork"):
        run.checkpoint(first["model_id"])


@pytest.mark.slow
def test_a_run_with_last_1_has_one_checkpoint_and_goes_on_from_it(copied: Path) -> None:
    go = ("run", TRY, "keep=last(1)", "--store", copied, "--rounds")
    ended = starloop(*go, 3)
    assert (ended.code, ended.err) == (0, "")
    assert "2 checkpoints freed, " in ended.out
    assert "(keep: last(1))" in ended.out
    bases = ask(copied, "select model_id from round_summary where round = 0")
    last = ask(copied, "select model_id from round_summary where round = 3")
    folders = {path.name for path in (copied.parent / "models").iterdir() if path.is_dir()}
    assert folders == {str(model) for (model,) in [*bases, *last]}
    assert starloop(*go, 4).code == 0
    assert starloop("doctor", "--store", copied).code == 0


@pytest.mark.parametrize("keep", ["all", "best", "last(1)", "last(12)"])
def test_a_rule_that_is_allowed_is_taken(keep: str) -> None:
    assert load(TRY, [f"keep={keep}"]).keep == keep


@pytest.mark.parametrize("keep", ["last", "last(0)", "last(-1)", "none", "3", "null", "[best]"])
def test_another_rule_is_refused_with_those_that_are_allowed(keep: str) -> None:
    with pytest.raises(ConfigError, match=r"^keep: .* is not allowed: use all, best or last\(n\)"):
        load(TRY, [f"keep={keep}"])
