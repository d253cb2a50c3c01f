# SPDX-License-Identifier: Apache-2.0
"""How much a run has still to do and what it will take on disk, from its config and the store.

A ceiling where it cannot be known before: every problem may fail and be tried again with a hint,
every completion may be as long as `max_tokens`.
"""

import re
import shutil
from contextlib import suppress
from math import ceil
from pathlib import Path

from configs.schema import Config
from flows.fork import Fork
from flows.starts import starts_warning
from report.forecast import Forecast
from stages.errors import StoreError
from stages.evaluate import held_out
from stages.policies.checkpoint import parameters
from stages.settings import canonical
from store.db import Store
from store.transaction import read

BYTES_PER_PARAMETER = 4  # updaters save float32
ENOUGH = 1000  # trajectories for a mean of their bytes
PER_TRAJECTORY, PER_TOKEN = 280, 8  # measured on stores of the shipped recipes


def forecast(name: str, config: Config, store: Store, fork: Fork | None = None) -> Forecast:
    """What is to come; nothing is written."""
    task = config.task.build()
    asked = config.generate.problems.per_round
    problems = len(task.problems("train")) if asked == "all" else asked
    shown = [held_out(task.problems("dev"), config.evaluate.problems)]
    distinct = {p.problem_id for found in (*shown, *task.extra_slices().values()) for p in found}
    answers = problems * config.generate.n
    hinted = problems * config.rationalize.n if config.rationalize.enabled else 0
    measured = len(distinct) * config.evaluate.n
    done, per_trajectory, weights = _from_store(name, config, store)
    done = fork.round if fork and done is None else done
    first = 0 if done is None else done + 1
    to_go = max(0, config.rounds - (done or 0))
    measures = sum(not number % config.evaluate.every for number in range(first, config.rounds + 1))
    return Forecast(
        run=name,
        rounds=to_go,
        answers=answers,
        hinted=hinted,
        held_out=measured,
        in_all=to_go * (answers + hinted) + measures * measured,
        per_trajectory=per_trajectory or _rule_of_thumb(config),
        measured=per_trajectory is not None,
        store_bytes=_bytes(store.path),
        copy_bytes=_bytes(store.copy),
        keep=config.keep,
        checkpoints=_at_a_time(config.keep, to_go),
        checkpoint_bytes=weights,
        training_bytes=None
        if weights is None
        else _training(config, to_go, weights, answers + hinted),
        free_bytes=shutil.disk_usage(_nearest(store.folder)).free,
        starts=starts_warning(name, config, store, problems),
    )


def _from_store(
    name: str, config: Config, store: Store
) -> tuple[int | None, float | None, int | None]:
    """Last round done, bytes of a trajectory and of a checkpoint, each None where not known."""
    done, per_trajectory, count = None, None, None
    policy = config.policy
    if policy.type == "folder":
        count = parameters(Path(policy.path).expanduser())
    if store.path.exists() and store.copy.exists():
        with suppress(StoreError), store.reader() as connection:
            done = {run["name"]: run["rounds"] for run in read(connection, "run_list")}.get(name)
            (total,) = read(connection, "trajectory_count")
            if total["trajectories"] >= ENOUGH:
                per_trajectory = _bytes(store.copy) / total["trajectories"]
            section = canonical(policy.model_dump(mode="json"))
            for row in read(connection, "base_parameters", policy=section):
                count = row["parameters"]
    return done, per_trajectory, count * BYTES_PER_PARAMETER if count else None


def _rule_of_thumb(config: Config) -> float:
    tokens = max(config.generate.sampling.max_tokens, config.evaluate.sampling.max_tokens)
    return PER_TRAJECTORY + PER_TOKEN * tokens


def _at_a_time(keep: str, rounds: int) -> int:
    """Checkpoints of updates that lie there at once: those kept, and the next before freeing."""
    if keep == "all":
        return rounds
    return min(rounds, 3 if keep == "best" else int(re.findall(r"\d+", keep)[0]) + 1)


def _training(config: Config, rounds: int, weights: int, sampled: int) -> int:
    """An update's own checkpoints: weights and two moments, two kept and one being written.

    At most all that is `sampled` in a round, or in every round, trains the last one. Those of an
    adapter are too small to count.
    """
    updater = config.update.updater
    save_every = getattr(updater, "save_every", None)
    if save_every is None or not rounds or getattr(updater, "lora", None) is not None:
        return 0
    rows = sampled * (config.rounds if config.mix.history == "accumulate" else 1)
    rows, batch_size = rows + config.mix.seed_rows, updater.batch_size
    saved = ceil(config.update.steps.of_round(config.rounds, rows, batch_size) / int(save_every))
    return 3 * weights * min(3, saved)


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    return next(place for place in (folder, *folder.parents) if place.is_dir())
