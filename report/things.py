# SPDX-License-Identifier: Apache-2.0
"""From what a person types to a thing of the store: a run, RUN@ROUND, or the beginning of an id."""

import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from report.runs import nearest, newest_run
from report.text import visible
from stages.errors import ConfigError, StoreError
from store.transaction import read

FITS = {
    "trajectory": "fate",
    "problem": "problem",
    "model": "trained-by or ancestors",
}


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing's kind (its table) and id; `label` is what it was called."""

    kind: str
    id: UUID
    label: str


def thing_of(connection: Any, text: str, kind: str | None = None) -> Thing:
    """The one thing whose id begins with `text`; ConfigError if none, several, or another kind."""
    digits = text.replace("-", "").lower()
    if not re.fullmatch(r"[0-9a-f]{4,32}", digits):
        raise ConfigError(f"{visible(text)!r} is not an id: give 4 or more hex digits of one")
    ends = {"low": UUID(digits.ljust(32, "0")), "high": UUID(digits.ljust(32, "f"))}
    found = read(connection, "things", **ends, kind=kind)
    if not found and kind is not None:
        found = read(connection, "things", **ends, kind=None)
    if not found:
        raise ConfigError(f"nothing in the store has an id that begins with {text!r}")
    if len(found) > 1:
        several = ", ".join(f"{row['kind']} {row['id']}" for row in found[:5])
        more = ", …" if len(found) > 5 else ""
        raise ConfigError(f"{text!r} begins several ids: {several}{more}: give more digits")
    (only,) = found
    if kind is not None and only["kind"] != kind:
        fits = FITS.get(only["kind"], "downstream")
        raise ConfigError(
            f"{only['id']} is a {only['kind']}, not a {kind}: `starloop lineage {fits}` fits it"
        )
    return Thing(only["kind"], only["id"], f"{only['kind']} {only['id']}")


def any_thing(connection: Any, text: str) -> Thing:
    """What has the id, or the model that a run or RUN@ROUND names."""
    runs = {row["name"] for row in read(connection, "run_list")}
    if "@" in text or text in runs:
        return model_of(connection, text)
    return thing_of(connection, text)


def model_of(connection: Any, text: str | None) -> Thing:
    """A model: a run's last, `RUN@ROUND`, or an id; the newest run's last if None."""
    name, mark, number = (text or "").rpartition("@")
    if mark:
        if not (number.isascii() and number.isdigit()):
            raise ConfigError(f"{visible(text or '')!r} is not RUN@ROUND: write e.g. star@2")
        return _model(connection, newest_run(connection, name), int(number))
    names = {row["name"] for row in read(connection, "run_list")}
    if text is None or text in names:
        return _model(connection, newest_run(connection, text), None)
    if re.fullmatch(r"[0-9a-fA-F-]{4,36}", text):
        return thing_of(connection, text, "model")
    raise ConfigError(
        f"{visible(text)!r} is no run, no RUN@ROUND and no id of a model"
        f"{nearest(text, sorted(names))}"
    )


def _model(connection: Any, run: str, round_: int | None) -> Thing:
    found = read(connection, "model_at", run=run, round=round_)
    if not found:
        where = "trained checkpoint" if round_ is None else f"model of round {round_}"
        raise StoreError(
            f"run {run} has no {where} yet: let it finish a round, or name another run"
        )
    return Thing("model", found[0]["model_id"], f"{run}@{found[0]['round']}")


def run_and_round(connection: Any, text: str | None) -> tuple[str, int]:
    """A run and a round: `RUN@ROUND`, or a run's last trained round."""
    name, mark, number = (text or "").rpartition("@")
    if mark and number.isascii() and number.isdigit():
        return newest_run(connection, name), int(number)
    run = newest_run(connection, text)
    found = read(connection, "model_at", run=run, round=None)
    if not found:
        raise StoreError(f"run {run} has no trained checkpoint yet: let it finish a round")
    return run, found[0]["round"]
