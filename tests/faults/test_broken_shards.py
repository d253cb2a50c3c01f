# SPDX-License-Identifier: Apache-2.0
"""Shards that no run of ours wrote: refused by name or harmless, and the store is as it was."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from firing import Range, check_equal
from rich.console import Console
from running import TRY, ask, contents

from configs.load import load
from flows.commit import Output, once
from flows.context import Round, Run
from flows.screen import Screen
from stages import ids
from stages.errors import SlotConflict
from stages.policies.checkpoint import model_id_of
from stages.rows import Problem, Trajectory
from stages.shards import read_shard, write_shard
from store.db import Store

Killed = Callable[[str], Path]


def shards_of(store: Path) -> list[Path]:
    """The shards of the evaluation that was killed before its commit."""
    return sorted(store.parent.glob("try/work/*/shards/*.parquet"))


def go_on(gun: Range, store: Path, undisturbed: Path) -> None:
    ended = gun.run(store, "rounds=1")
    assert (ended.code, ended.errors) == (0, [])
    check_equal(store, undisturbed)


def columns(change: str, table: pa.Table) -> pa.Table:
    """The table with other columns."""
    if change == "one missing":
        return table.drop_columns(["logprobs"])
    if change == "one more":
        return table.append_column("more", pa.array([1] * len(table)))
    if change == "another type":
        slot = table.schema.get_field_index("slot")
        return table.set_column(slot, "slot", table["slot"].cast(pa.int32()))
    return pa.table({"trajectory_id": pa.array(["t1"])})


@pytest.mark.parametrize("change", ["one missing", "one more", "another type", "nothing of it"])
def test_a_shard_with_other_columns_is_refused_and_the_run_goes_on_without_it(
    shooting_range: Range, one_round: Path, killed: Killed, change: str
) -> None:
    store = killed("commit 0 evaluate")
    shard = shards_of(store)[0]
    pq.write_table(columns(change, pq.read_table(shard)), shard)
    before = contents(store)
    refused = shooting_range.run(store, "rounds=1")
    assert refused.code == 1
    assert refused.errors[0].startswith(f"StoreError shard {shard} does not hold Trajectory rows")
    after = contents(store)
    assert {name for name in after if after[name] != before[name]} <= {"event"}
    shard.unlink()
    if change == "one missing":
        go_on(shooting_range, store, one_round)


def test_a_shard_of_another_row_type_is_refused(shooting_range: Range, killed: Killed) -> None:
    store = killed("commit 0 evaluate")
    shard = shards_of(store)[0].with_name("problems.parquet")
    row = Problem(ids.problem_id("t", "q", "a"), "t", "dev", "q", "a")
    write_shard(shard, Problem, [row])
    refused = shooting_range.run(store, "rounds=1")
    assert refused.errors[0].startswith(f"StoreError shard {shard} does not hold Trajectory rows")


def test_the_same_rows_under_two_names_are_stored_once(
    shooting_range: Range, one_round: Path, killed: Killed
) -> None:
    store = killed("commit 0 evaluate")
    first, second, *_ = shards_of(store)
    write_shard(first.with_name("again.parquet"), Trajectory, read_shard(first, Trajectory))
    both = [*read_shard(first, Trajectory), *read_shard(second, Trajectory)]
    write_shard(first.with_name("both.parquet"), Trajectory, both)
    go_on(shooting_range, store, one_round)


def test_a_row_with_an_id_of_another_kind_never_reaches_the_store(
    shooting_range: Range, one_round: Path, killed: Killed
) -> None:
    """A row of a slot that was not asked for, under the id of a problem."""
    store = killed("commit 0 evaluate")
    shard = shards_of(store)[0]
    row = read_shard(shard, Trajectory)[0]
    strange = replace(row, trajectory_id=row.problem_id)
    write_shard(shard.with_name("strange.parquet"), Trajectory, [strange])
    go_on(shooting_range, store, one_round)
    where = "select count(*) from trajectory where trajectory_id = ?"
    assert ask(store, where, strange.trajectory_id) == [(0,)]


@pytest.mark.parametrize("field", ["token_ids", "model_id"])
def test_a_row_that_is_not_what_its_ids_say_is_refused(
    shooting_range: Range, killed: Killed, field: str
) -> None:
    store = killed("commit 0 evaluate")
    shard = shards_of(store)[0]
    row, *rest = read_shard(shard, Trajectory)
    other = (5, 6) if field == "token_ids" else ids.mint("t", 1)
    write_shard(shard, Trajectory, [replace(row, **{field: other}), *rest])
    before = contents(store)
    refused = shooting_range.run(store, "rounds=1")
    assert refused.errors[0].startswith("StoreError")
    assert "with other content than its ids say" in refused.errors[0]
    after = contents(store)
    assert {name for name in after if after[name] != before[name]} <= {"event"}


def other_content(row: Trajectory, prompt: tuple[int, ...]) -> Trajectory:
    """The slot of a row with another completion, its ids as they should be."""
    said = (*row.token_ids[:-2], row.token_ids[-1])
    return replace(
        row,
        token_ids=said,
        content_id=ids.content_id(prompt, said),
        logprobs=row.logprobs and row.logprobs[:-1],
    )


def prompt_of(store: Path, row: Trajectory) -> tuple[int, ...]:
    """The token ids of a row's prompt, from a store that has it."""
    sql = "select token_ids from prompt where prompt_id = ?"
    ((tokens,),) = ask(store, sql, row.prompt_id)
    return tuple(tokens)


def test_two_shards_that_differ_about_a_slot_are_refused(
    shooting_range: Range, one_round: Path, killed: Killed
) -> None:
    store = killed("commit 0 evaluate")
    shard = shards_of(store)[0]
    row = read_shard(shard, Trajectory)[0]
    other = other_content(row, prompt_of(one_round, row))
    write_shard(shard.with_name("zz.parquet"), Trajectory, [other])
    before = contents(store)
    refused = shooting_range.run(store, "rounds=1")
    assert f"slot {row.trajectory_id} with other content than another shard" in refused.errors[0]
    after = contents(store)
    assert {name for name in after if after[name] != before[name]} <= {"event"}


def test_other_content_for_a_slot_of_the_same_run_is_refused_and_nothing_is_stored(
    one_round: Path, killed: Killed, tiny_folder: Path
) -> None:
    store = Store(killed("end 0 evaluate"))
    base = model_id_of(tiny_folder)
    ((slot,),) = ask(
        store.path, "select trajectory_id from trajectory where purpose = 'eval' order by 1 limit 1"
    )
    with store.transaction() as tx:
        (row,) = tx.rows(Trajectory, "trajectories_by_id", ids=[slot])
    other = other_content(row, prompt_of(store.path, row))
    config = load(TRY, [f"policy={{type: folder, path: {tiny_folder}}}"])
    run = Run("try", ids.run_id("try"), config, store, Screen(Console(quiet=True)))
    before = contents(store.path)
    with pytest.raises(SlotConflict, match="a slot is sampled once; nothing was stored"):
        once(
            Round(run, 1, base, base),
            "generate",
            ids.step_key("generate", 1, [], "another"),
            lambda space: Output([(Trajectory, [other])], {"trajectory": [slot]}),
        )
    assert contents(store.path) == before
