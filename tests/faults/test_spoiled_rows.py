# SPDX-License-Identifier: Apache-2.0
"""A row in a killed step's shard that is not what its slot was asked for is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from firing import Range, check_equal
from running import contents

from stages import ids
from stages.rows import Trajectory
from stages.shards import read_shard, write_shard

FAULTS: list[dict[str, Any]] = [
    {"problem_id": ids.mint("m", 1)},  # an id of another kind
    {"sampling_id": ids.mint("s", 1)},
    {"content_id": ids.mint("c", 1)},
    {"origin": "human"},
    {"slot": 99},
    {"logprobs": (0.0,)},
]


@pytest.mark.slow
def test_a_row_that_its_slot_did_not_ask_for_is_refused_and_nothing_is_stored(
    shooting_range: Range, undisturbed: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store.duckdb"
    shooting_range.start(store, "sampler.shard_size=4")
    assert shooting_range.wait_for("commit 0 evaluate")
    shooting_range.kill()
    shard, *_ = sorted(store.parent.glob("try/work/*/shards/*.parquet"))
    first, *rest = read_shard(shard, Trajectory)
    before = contents(store)
    for fault in FAULTS:
        write_shard(shard, Trajectory, [replace(first, **fault), *rest])
        refused = shooting_range.run(store)
        assert refused.code == 1, fault
        assert f"holds slot {first.trajectory_id} with other content" in refused.errors[0]
        after = contents(store)
        assert {name for name in after if after[name] != before[name]} <= {"event"}, fault
    write_shard(shard, Trajectory, [first, *rest])
    assert shooting_range.run(store).code == 0
    check_equal(store, undisturbed)
