# SPDX-License-Identifier: Apache-2.0
"""How much of a run's time goes into starting engines: each refresh starts one (vLLM).

Measured where the run has refreshed before. Else assumed, as is said: a start takes a minute, the
engine samples 5,000 tokens a second, answers are half as long as they may be, and an optimizer
step takes a second.
"""

from contextlib import suppress

from configs.schema import Config
from stages.errors import StoreError
from stages.ids import run_id
from store.db import Store
from store.transaction import read

DOMINATES = 0.5
START_S, TOKENS_PER_S, LENGTH, STEP_S = 60.0, 5000.0, 0.5, 1.0
ASSUMED = "assumed: 60 s a start, 5,000 tokens a second, answers of half max_tokens, 1 s a step"


def starts_warning(name: str, config: Config, store: Store, problems: int) -> str | None:
    """A line where starts take more than half of the time; `problems` are those of a round."""
    if not config.sampler.starts_process:
        return None
    start_s, refresh_s = _measured(name, store)
    how = f"measured: {start_s:.0f} s a start, {refresh_s:.0f} s a refresh with it"
    if not start_s or not refresh_s:
        start_s, refresh_s, how = START_S, START_S + _work_s(config, problems), ASSUMED
    share = min(1.0, start_s / refresh_s)
    if share <= DOMINATES:
        return None
    more = "raise s in timing.policy_refresh" if config.timing.steps else "take more problems"
    return (
        f"warning: {share:.0%} of the time goes into starting the sampler's engine, once a refresh "
        f"({how}): {more} (generate.problems.per_round, generate.n) so that a refresh has more work"
    )


def _measured(name: str, store: Store) -> tuple[float, float]:
    """Mean seconds of this run's starts and of its refreshes, 0 where none is known."""
    with suppress(StoreError):
        if store.copy.exists():
            with store.reader() as connection:
                (row,) = read(connection, "engine_starts", run_id=run_id(name))
            return row["start_s"] or 0.0, row["refresh_s"] or 0.0
    return 0.0, 0.0


def _work_s(config: Config, problems: int) -> float:
    """Assumed seconds of sampling and training in a refresh of round 1."""
    count = config.refreshes_of(1)
    answers = problems * config.generate.n / count
    sampled = answers * config.generate.sampling.max_tokens * LENGTH / TOKENS_PER_S
    batch_size = config.update.updater.batch_size
    steps = config.update.steps.of_round(1, int(answers * count), batch_size) / count
    return sampled + steps * STEP_S
