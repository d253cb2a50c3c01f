# SPDX-License-Identifier: Apache-2.0
"""A round's refreshes: sample with the newest policy, train some steps, sample again.

`every(s)` cuts the round's problems in order into as many shares as the round has times s steps;
`every_round` and `never` have one refresh a round, and with `never` the base goes on sampling.
"""

from collections.abc import Iterator
from dataclasses import replace

from flows.alarms import heed
from flows.context import Round
from flows.retention import retain
from stages.ids import Id


def refreshes(r: Round) -> Iterator[Round]:
    """The round's refreshes, each with the model that the one before came to."""
    for number in range(r.run.config.refreshes_of(r.number)):
        if number:
            heed(r.run)
            retain(r.run)
        yield replace(r, refresh=number, current=_came_to(r, number) if number else r.start)


def _came_to(r: Round, refresh: int) -> Id:
    """The newest model, the round's start where no refresh of it has trained yet."""
    with r.run.store.transaction() as tx:
        found = tx.ask("model_before", **{**r.place, "refresh": refresh})
    model: Id = found[0]["model_id"] if found and found[0]["round"] == r.number else r.start
    return model
