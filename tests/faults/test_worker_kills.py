# SPDX-License-Identifier: Apache-2.0
"""Runs that are killed over and over, in every step and in commits, lose and repeat nothing."""

import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from firing import PLACES, Range, Shot, check_equal

HISTORIES = 3
SEED = 20240301


@pytest.fixture(scope="module")
def timed(shooting_range: Range, tmp_path_factory: pytest.TempPathFactory) -> Shot:
    """How long each step and its commit take when nothing disturbs."""
    ended = shooting_range.run(tmp_path_factory.mktemp("timed") / "store.duckdb")
    assert ended.code == 0
    return ended


def history(gun: Range, store: Path, timed: Shot, rng: random.Random) -> list[tuple[str, ...]]:
    """Kill the run once or twice in each step, then let it end; where each kill hit."""
    hits = []
    for place in PLACES:
        for word in rng.choice((("commit",), ("begin", "commit"))):
            shot = gun.start(store)
            assert gun.wait_for(f"{word} {place}", f"end {place}"), shot.errors
            time.sleep(rng.uniform(0, timed.seconds(word, place)))
            assert gun.kill().code == -signal.SIGKILL
            hits.append(shot.last())
            if f"end {place}" in (" ".join(words) for _, words in shot.lines):
                break  # committed in time: the next step's turn
    last = gun.run(store)
    assert (last.code, last.errors) == (0, [])
    assert last.lines[-2][1] == ["torch", "False"]
    return hits


@pytest.mark.slow
def test_a_run_killed_in_every_step_has_the_rows_of_one_that_was_not(
    shooting_range: Range, undisturbed: Path, timed: Shot, tmp_path: Path
) -> None:
    hits: Counter[tuple[str, ...]] = Counter()
    for number in range(HISTORIES):
        store = tmp_path / str(number) / "store.duckdb"
        hits.update(history(shooting_range, store, timed, random.Random(SEED + number)))
        check_equal(store, undisturbed)
    within = [" ".join(hit[1:]) for hit in hits.elements() if hit[0] in ("begin", "commit")]
    committing = [hit for hit in hits.elements() if hit[0] == "commit"]
    assert hits.total() >= 50
    assert {place.split()[1] for place in within} >= {place.split()[1] for place in PLACES}, hits
    assert len(committing) >= 10, hits
