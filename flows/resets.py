# SPDX-License-Identifier: Apache-2.0
"""Resets of a run: decided once at the start of a round, from what is committed, as an event.

The event (kind `reset`) has the rule, the model that becomes the reference, and the held-out values
that it was decided by. Later rounds read it, a killed one too; a fork takes it over.
"""

from dataclasses import asdict

from flows.context import Round
from stages.measures.intervals import Z
from stages.resets import Held, due
from stages.settings import canonical


def take(r: Round) -> None:
    """Note a reset where the round is to begin with one and has not done so yet."""
    rule, last = r.run.config.update.resets, r.reset
    if rule == "never" or (last is not None and last.round == r.number):
        return
    with r.run.store.transaction() as tx:
        rows = tx.ask("held_out", run_id=r.run.run_id, round=r.number)
        values = [
            Held(row["round"], row["value"], ((row["high"] or 0) - (row["low"] or 0)) / (2 * Z))
            for row in rows
        ]
        found = due(rule, r.number, last.round if last else 1, values)
        if found is None:
            return
        message = f"round {r.number} begins with a reset of reference and optimizer: {found.why}"
        tx.append(
            "add_event",
            run_id=r.run.run_id,
            round=r.number,
            refresh=None,
            kind="reset",
            message=message,
            detail=canonical({"rule": rule, "model": str(r.start), **asdict(found)}),
        )
    r.run.screen.say(message)
