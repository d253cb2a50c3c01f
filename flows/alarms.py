# SPDX-License-Identifier: Apache-2.0
"""Alarms of a run: sounded once for each refresh, heeded where they hold the run or end it.

An alarm is an event (kind `alarm`, its detail the rule and the values). One that holds or stops is
heeded by a second event (`held`, `stopped`) with the same detail, once the refresh is committed.
"""

import json
from collections import defaultdict
from typing import Any

from flows.context import Round, Run
from report.text import visible
from stages.alarms import TRAIN, Point, fired
from stages.errors import HeldError
from stages.ids import Id
from stages.settings import canonical
from store.db import Store
from store.transaction import Transaction

MEND = {
    "hold": "look into it (starloop report {run}), then the same command goes on; to hear it no "
    "more, ease the rule or take it out of `alarms`",
    "stop": "the run has ended here; to go on, ease the rule or take it out of `alarms` and run "
    "again",
}
HEEDED = {"hold": "held", "stop": "stopped"}


def sound(r: Round) -> None:
    """Write and say the alarms of a refresh that is watched, each once."""
    run = r.run
    with run.store.transaction() as tx:
        series = _series(tx, r)
        known = {
            canonical(json.loads(row["detail"])["rule"])
            for row in tx.ask("alarms", run_id=run.run_id)
            if (row["kind"], row["round"], row["refresh"]) == ("alarm", r.number, r.refresh)
        }
        new = [
            alarm
            for alarm in fired(run.config.alarms, series, r.number, r.refresh)
            if canonical(alarm.rule.plain) not in known
        ]
        for alarm in new:
            detail = canonical(alarm.detail)
            tx.append("add_event", **r.place, kind="alarm", message=alarm.sentence, detail=detail)
    for alarm in new:
        run.screen.alarm(r.number, r.refresh, alarm.rule.then, alarm.sentence)


def heed(run: Run) -> None:
    """HeldError for an alarm that holds or stops the run and has not done so yet."""
    with run.store.transaction() as tx:
        rows = tx.ask("alarms", run_id=run.run_id)
        done = {row["detail"] for row in rows if row["kind"] in HEEDED.values()}
        waiting = [
            (row, then)
            for row in rows
            if row["kind"] == "alarm"
            and (then := json.loads(row["detail"])["rule"]["then"]) in HEEDED
            and row["detail"] not in done
        ]
        for row, then in waiting:
            tx.append(
                "add_event",
                run_id=run.run_id,
                round=row["round"],
                refresh=row["refresh"],
                kind=HEEDED[then],
                message=row["message"],
                detail=row["detail"],
            )
    if waiting:
        run.store.snapshot()
        # of several, one that ends the run says more than one that holds it
        row, then = max(waiting, key=lambda each: each[1] == "stop")
        raise _held(run.name, row, then)


def refuse_stopped(store: Store, run_id: Id, name: str, rules: Any) -> None:
    """HeldError where an alarm ended the run and its rule is still in the config."""
    current = {canonical(rule.plain) for rule in rules}
    with store.transaction() as tx:
        rows = tx.ask("alarms", run_id=run_id)
    for row in rows:
        rule = canonical(json.loads(row["detail"])["rule"])
        if row["kind"] == "stopped" and rule in current:
            raise _held(name, row, "stop")


def _held(name: str, row: dict[str, Any], then: str) -> HeldError:
    kind = HEEDED[then]
    mend = MEND[then].format(run=name)
    return HeldError(visible(f"run {name} is {kind} by an alarm: {row['message']}: {mend}"))


def _series(tx: Transaction, r: Round) -> dict[tuple[str, str], list[Point]]:
    """What the run measured up to this refresh, by name and slice."""
    place: dict[str, Any] = {"run": r.run.name, "round": r.number, "refresh": r.refresh}
    series: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for row in tx.ask("monitor_history", **place):
        points = series[row["name"], row["slice"]]
        value = row["value"]
        began = points[0].value if points else value
        highest = max(value, points[-1].highest) if points else value
        points.append(Point(row["round"], row["refresh"], value, began, highest))
    for row in tx.ask("training_ends", **place):
        points = series[TRAIN + row["name"], "all"]
        began, ended = row["began"], row["ended"]
        points.append(Point(row["round"], row["refresh"], ended, began, max(began, ended)))
    return series
