# SPDX-License-Identifier: Apache-2.0
"""The room that a run will take, as lines for a person."""

from dataclasses import dataclass

from report.text import size, visible

SNAPSHOTS = 3  # the store, the readers' copy, and the draft of the next store or copy
LOG = 2  # bytes in the log for each byte that rows take in the file, measured on trajectories


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run has still to do, and the bytes that it will take; None where not known.

    `starts` is what is to be said of engine starts, None where nothing is.
    """

    run: str
    rounds: int
    answers: int
    hinted: int
    held_out: int
    in_all: int
    per_trajectory: float
    measured: bool
    store_bytes: int
    copy_bytes: int
    keep: str
    checkpoints: int
    checkpoint_bytes: int | None
    training_bytes: int | None
    free_bytes: int
    starts: str | None = None

    @property
    def grown(self) -> float:
        """Bytes of the store file at the end."""
        return self.store_bytes + self.in_all * self.per_trajectory

    @property
    def log(self) -> float:
        """Bytes of the log that the largest step of a round leaves, before it is folded in."""
        return LOG * max(self.answers, self.hinted, self.held_out) * self.per_trajectory

    @property
    def needed(self) -> float:
        """Bytes that the disk must have left."""
        models = self.checkpoints * (self.checkpoint_bytes or 0) + (self.training_bytes or 0)
        folding = 2 * self.log  # itself, and its copy beside the draft
        return SNAPSHOTS * self.grown - self.store_bytes - self.copy_bytes + folding + models


def forecast_page(f: Forecast) -> str:
    """The forecast; its last lines are warnings: of engine starts, and of too little room."""
    kinds = f"{f.answers:,} answers, up to {f.hinted:,} with a hint, {f.held_out:,} held out"
    how = "as in this store" if f.measured else "a rule of thumb: 280 and 8 a token, at most"
    store = f"{size(f.grown)} at the end ({f.per_trajectory:,.0f} bytes a trajectory, {how})"
    known, count = f.checkpoint_bytes, f"up to {f.checkpoints:,}"
    if known is None:
        models = f"{count} at a time (keep: {f.keep}), of a size that is known once a run began"
        training = "not known either"
    else:
        models = f"{count} of {size(known)} at a time (keep: {f.keep})"
        training = size(f.training_bytes or 0) + " while an update trains"
    lines = [
        f"forecast for run {f.run}, rounds to go: {f.rounds:,}",
        f"  trajectories  {f.answers + f.hinted + f.held_out:,} a round ({kinds}), "
        f"{f.in_all:,} in all",
        f"  store         {store}, {SNAPSHOTS} times while the readers' copy is renewed, "
        f"and twice a log of {size(f.log)}",
        f"  checkpoints   {models}",
        f"  optimizer     {training}",
        f"  disk          {size(f.needed)} needed{' without the checkpoints' * (known is None)}, "
        f"{size(f.free_bytes)} free",
    ]
    if f.starts is not None:
        lines.append(f.starts)
    if f.needed > f.free_bytes:
        lines.append(
            f"warning: {size(f.needed - f.free_bytes)} are missing: make room, keep fewer "
            "checkpoints (keep=best or keep=last(1)), or use a --store on another disk"
        )
    return "\n".join(map(visible, lines))
