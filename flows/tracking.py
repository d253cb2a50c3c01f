# SPDX-License-Identifier: Apache-2.0
"""A run in a tracker: each refresh's monitors, each round's summary, alarms, the config once.

What was sent is an event (kind `tracked`), written before it is sent: nothing is sent twice, and a
kill between the two loses a point there and none in the store. What was committed and not marked
goes out with the next point. A tracker that fails is left for the rest of the process, with an
event and a warning; no failure of it stops a run.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from configs.schema import Config
from flows.screen import Screen
from report.text import visible
from stages.ids import Id
from stages.settings import canonical
from stages.trackers import Tracked, Tracker, begin
from store.db import Store
from store.transaction import Transaction

LAST = 2**31 - 1
_NO_NUMBER = ("run", "round", "model_id", "k")

Place = tuple[int, int | None]


class Tracking:
    """A run's tracker, opened at its first point; without `tracking` in the config, nothing.

    A step is the number of refreshes up to it, so the round's number where each has one; a round's
    summary has the step of its last refresh.
    """

    def __init__(self, name: str, run_id: Id, config: Config, store: Store, screen: Screen) -> None:
        self._name, self._run_id, self._config = name, run_id, config
        self._store, self._screen = store, screen
        self._tracker: Tracker | None = None
        self._failed = config.tracking is None

    def catch_up(self, *, rounds: bool) -> None:
        """Send what is committed and was not sent: refreshes, and whole rounds too if asked."""
        if self._failed:
            return
        try:
            for place, step, values, alarms in self._missing(rounds):
                self._mark(place)
                self._send(step, values, alarms)
        except Exception as error:
            self._fail(error)

    def close(self) -> None:
        """Send what is left, and leave the tracker."""
        tracker, self._tracker = self._tracker, None
        if tracker is not None:
            try:
                tracker.close()
            except Exception as error:
                self._fail(error)

    def _send(self, step: int, values: Mapping[str, float], alarms: list[str]) -> None:
        if self._tracker is None:
            self._tracker = begin(self._config.tracking, self._tracked())  # type: ignore[arg-type]
        self._tracker.log(step, values)
        for text in alarms:
            self._tracker.alarm(step, text)

    def _tracked(self) -> Tracked:
        """Who the run is there: runs of one name in two stores are two, so its beginning counts."""
        with self._store.transaction() as tx:
            (row,) = tx.ask("run_begun_at", run_id=self._run_id)
        id_ = f"{self._run_id}-{row['created_at']:%Y%m%d%H%M%S}"
        folder = self._store.folder / self._name
        config = self._config.model_dump(mode="json", exclude={"notify"})  # may hold an address
        return Tracked(id_, self._name, folder, config)

    def _missing(self, rounds: bool) -> Iterator[tuple[Place, int, dict[str, float], list[str]]]:
        with self._store.transaction() as tx:
            asked = tx.ask("points_sent", run_id=self._run_id, tracker=self._config.tracking)
            sent = {(row["round"], row["refresh"]) for row in asked}
            done = tx.ask("points_done", run_id=self._run_id)
            watched = {(row["round"], row["refresh"]) for row in done if row["step"] == "watch"}
            refreshes = _refreshes(tx, self._name, watched)
            ended = {row["round"] for row in done if row["step"] == "evaluate"}
            whole = _rounds(tx, self._name, ended) if rounds else {}
            alarms = _alarms(tx, self._run_id)
        steps = {place: number for number, place in enumerate(sorted(refreshes), 1)}
        points: dict[Place, dict[str, float]] = {**refreshes, **whole}
        for place in sorted(points, key=_in_order):
            if place not in sent:
                last = max((n for (round_, _), n in steps.items() if round_ <= place[0]), default=0)
                yield place, steps.get(place, last), points[place], alarms.get(place, [])

    def _mark(self, place: Place) -> None:
        with self._store.transaction() as tx:
            tx.append(
                "add_event",
                run_id=self._run_id,
                round=place[0],
                refresh=place[1],
                kind="tracked",
                message=f"sent to {self._config.tracking}",
                detail=canonical({"tracker": self._config.tracking}),
            )

    def _fail(self, error: Exception) -> None:
        """Leave the tracker: one warning, one event."""
        self._failed, self._tracker = True, None
        why = visible(f"{self._config.tracking} failed: {type(error).__name__}: {error}")[:300]
        self._screen.say(f"warning: tracking: {why}; the run goes on without it")
        with suppress(Exception), self._store.transaction() as tx:
            tx.append(
                "add_event",
                run_id=self._run_id,
                round=None,
                refresh=None,
                kind="tracking_failed",
                message=why,
                detail=None,
            )


def _in_order(place: Place) -> Place:
    """A round's summary comes after its refreshes."""
    return place[0], LAST if place[1] is None else place[1]


def _refreshes(
    tx: Transaction, name: str, watched: Collection[Place]
) -> dict[Place, dict[str, float]]:
    """Each watched refresh's monitors, by name, and by slice where it is not of all."""
    found: dict[Place, dict[str, float]] = defaultdict(dict)
    for row in tx.ask("monitor_history", run=name, round=LAST, refresh=0):
        slice_ = "" if row["slice"] == "all" else f"/{row['slice']}"
        place = (row["round"], row["refresh"])
        if place in watched and row["value"] is not None:
            found[place][f"refresh/{row['name']}{slice_}"] = row["value"]
    return found


def _rounds(tx: Transaction, name: str, ended: Collection[int]) -> dict[Place, dict[str, float]]:
    """Each whole round's summary, and its pass@1 by slice."""
    found: dict[Place, dict[str, float]] = {}
    for row in tx.ask("round_table", run=name):
        if row["round"] in ended:
            found[row["round"], None] = {"round": float(row["round"])} | {
                f"round/{key}": float(value)
                for key, value in row.items()
                if key not in _NO_NUMBER and value is not None
            }
    for row in tx.ask("slices", run=name):
        if (row["round"], None) in found and row["value"] is not None:
            found[row["round"], None][f"round/pass_at_1/{row['slice']}"] = row["value"]
    return found


def _alarms(tx: Transaction, run_id: Id) -> dict[Place, list[str]]:
    found: dict[Place, list[str]] = defaultdict(list)
    for row in tx.ask("alarms", run_id=run_id):
        if row["kind"] == "alarm":
            found[row["round"], row["refresh"]].append(row["message"])
    return found
