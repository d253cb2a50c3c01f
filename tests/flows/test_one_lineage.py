# SPDX-License-Identifier: Apache-2.0
"""STaR, then DPO, then GRPO by forks: one query walks from the last model to the first answer."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from running import ROOT, ask, starloop

TINY = ROOT / "configs" / "tiny"
WALK = """
    with recursive walk (model_id, depth) as (
        select model_id, 0 from round_summary where run = ? and round = ?
        union
        select p.parent_id, depth + 1 from walk join model_parent p using (model_id)
    )
    select s.run, s.round, s.refresh, r.kind, x.role, t.origin, t.trajectory_id, walk.model_id
    from walk
    join training_update u on u.model_id = walk.model_id
    join training_visit v on v.update_id = u.update_id and v.visits > 0
    join training_row r using (training_set_id, training_row_id)
    join training_row_trajectory x using (training_set_id, training_row_id)
    join trajectory t using (trajectory_id)
    join step_output s on s.kind = 'trajectory' and s.id = t.trajectory_id and not s.reused
    order by walk.depth desc, s.round, s.refresh, t.trajectory_id
"""


@pytest.fixture(scope="module")
def store(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`try` (STaR) forked at round 1 to `pairs` (DPO), that at round 2 to `rollouts` (GRPO)."""
    folder = tmp_path_factory.mktemp("lineage") / "runs"
    shutil.copytree(finished.parent, folder, ignore=shutil.ignore_patterns(".prefect"))
    path = folder / "store.duckdb"
    for config, name, fork, rounds in (
        ("dpo.yaml", "pairs", "try@1", 2),
        ("grpo.yaml", "rollouts", "pairs@2", 3),
    ):
        ended = starloop(
            "run", TINY / config, "--name", name, "--fork", fork, "--rounds", rounds,
            "--store", path,
        )  # fmt: skip
        assert (ended.code, ended.err) == (0, "")
    return path


def test_one_query_walks_from_the_last_checkpoint_to_the_first_trajectory(store: Path) -> None:
    found = ask(store, WALK, "rollouts", 3)
    assert found[0][:3] == ("try", 0, 0)  # the seed rows of the first run
    kinds = Counter((run, round_, kind) for run, round_, _, kind, *_ in found)
    assert {*kinds} >= {
        ("try", 1, "sft"), ("pairs", 2, "pair"), ("rollouts", 3, "rollout"),
    }  # fmt: skip
    assert {row[2] for row in found if row[0] == "pairs"} == {0, 1, 2}
    assert {row[2] for row in found if row[0] == "rollouts"} == {0, 1}
    roles = {(kind, role) for _, _, _, kind, role, *_ in found}
    assert roles == {
        ("sft", "completion"), ("pair", "chosen"), ("pair", "rejected"), ("rollout", "completion"),
    }  # fmt: skip


def test_the_macros_and_the_command_say_the_same_as_the_walk(store: Path) -> None:
    found = ask(store, WALK, "rollouts", 3)
    last = ask(store, "select model_id from round_summary where run = 'rollouts' and round = 3")
    (model,) = last[0]
    ancestors = {row[0] for row in ask(store, "select ancestor_id from ancestors(?)", model)}
    assert {row[-1] for row in found} <= ancestors | {model}
    for made in {row[-1] for row in found}:
        trained = ask(store, "select distinct trajectory_id from trained_by(?)", made)
        assert {row[0] for row in trained} == {row[-2] for row in found if row[-1] == made}
    shown = starloop("lineage", "ancestors", "rollouts@3", "--format", "json", "--store", store)
    # `rollouts@3` is the round's last refresh, whose parent is its first
    assert {row.get("run") for row in json.loads(shown.out)} == {"try", "pairs", "rollouts"}
    trained_by = starloop("lineage", "trained-by", "rollouts@3", "--store", store)
    assert trained_by.code == 0 and "rollouts" in trained_by.out


def test_what_the_first_answer_came_to_is_found_from_its_side_too(store: Path) -> None:
    first = ask(store, WALK, "rollouts", 3)[0][-2]
    (model,) = ask(
        store, "select model_id from round_summary where run = 'rollouts' and round = 3"
    )[0]
    below = ask(store, "select id from descendants(?)", first)
    assert (model,) in below


def test_the_doctor_finds_nothing_in_a_store_of_all_of_them(store: Path) -> None:
    ended = starloop("doctor", "--store", store)
    assert (ended.code, ended.err) == (0, ""), ended.out
