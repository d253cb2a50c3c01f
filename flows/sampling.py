# SPDX-License-Identifier: Apache-2.0
"""Filling slots with shards on disk, so that a killed step never samples a slot twice."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from flows.commit import Workspace
from flows.context import Round
from stages.errors import StoreError
from stages.generate import Draw, Slot, generate, sampling_row
from stages.ids import Id, content_id
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
    rows = _from_shards(shards, slots, draw, origin)
    with r.run.store.transaction() as tx:
        wanted = [slot.trajectory_id for slot in slots]
        stored = tx.rows(Trajectory, "trajectories_by_id", ids=wanted)
    rows |= {row.trajectory_id: row for row in stored}
    with r.run.screen.stage(label, total=len(slots), done=len(rows)) as stage:
        if len(rows) < len(slots):
            with space.working():
                engine = r.run.engine(draw.model_id)
            sampler = r.run.config.sampler
            shard, batch_size = sampler.shard_size, sampler.batch_size
            batches = generate(slots, engine, draw, rows.keys(), shard, batch_size, origin)
            while True:
                with space.working():
                    batch = next(batches, None)
                if batch is None:
                    break
                write_shard(shards / f"{batch[0].trajectory_id}.parquet", Trajectory, batch)
                rows |= {row.trajectory_id: row for row in batch}
                stage.advance(len(batch))
    return [rows[slot.trajectory_id] for slot in slots]


def _from_shards(
    folder: Path, slots: Sequence[Slot], draw: Draw, origin: Origin
) -> dict[Id, Trajectory]:
    """What an earlier try sampled of these slots; StoreError if it is not what its ids say."""
    wanted = {slot.trajectory_id: slot for slot in slots}
    sampling = sampling_row(draw.sampling).sampling_id
    rows: dict[Id, Trajectory] = {}
    for row in read_shards(sorted(folder.glob("*.parquet")), Trajectory):
        slot = wanted.get(row.trajectory_id)
        if slot is None:
            continue
        planned = replace(
            row,
            content_id=content_id(slot.prompt.token_ids, row.token_ids),
            problem_id=slot.prompt.problem_id,
            prompt_id=slot.prompt.prompt_id,
            model_id=draw.model_id,
            sampling_id=sampling,
            purpose=draw.purpose,
            origin=origin,
            seed=slot.seed,
            slot=slot.slot,
        )
        first = rows.setdefault(row.trajectory_id, row)
        unscored = row.from_text and row.logprobs is None
        scored = unscored or len(row.logprobs or ()) == len(row.token_ids)
        if not first == row == planned or not scored:
            whose = "its ids say" if first == row else "another shard there"
            raise StoreError(
                f"a shard in {folder} holds slot {row.trajectory_id} with other content than "
                f"{whose}: delete that folder and run again"
            )
    return rows
