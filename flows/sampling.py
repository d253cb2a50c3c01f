# SPDX-License-Identifier: Apache-2.0
"""Filling slots with shards on disk, so that a killed step never samples a slot twice."""

from collections.abc import Sequence

from flows.commit import Workspace
from flows.context import Round
from stages.generate import Draw, Slot, generate
from stages.rows import Origin, Trajectory
from stages.shards import read_shards, write_shard


def fill(
    r: Round,
    slots: Sequence[Slot],
    draw: Draw,
    space: Workspace,
    label: str,
    origin: Origin = "self",
) -> list[Trajectory]:
    """The trajectories of all slots, in the plan's order: stored, in shards, or sampled now."""
    shards = space.folder / "shards"
    found = read_shards(sorted(shards.glob("*.parquet")), Trajectory)
    rows = {row.trajectory_id: row for row in found}
    with r.run.store.transaction() as tx:
        wanted = [slot.trajectory_id for slot in slots]
        stored = tx.rows(Trajectory, "trajectories_by_id", ids=wanted)
    rows |= {row.trajectory_id: row for row in stored}
    with r.run.screen.stage(label, total=len(slots), done=len(rows)) as stage:
        if len(rows) < len(slots):
            with space.working():
                engine = r.run.engine(draw.model_id)
            size = r.run.config.sampler.shard_size
            batches = generate(slots, engine, draw, rows.keys(), size, origin)
            while True:
                with space.working():
                    batch = next(batches, None)
                if batch is None:
                    break
                write_shard(shards / f"{batch[0].trajectory_id}.parquet", Trajectory, batch)
                rows |= {row.trajectory_id: row for row in batch}
                stage.advance(len(batch))
    return [rows[slot.trajectory_id] for slot in slots]
