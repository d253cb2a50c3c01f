# SPDX-License-Identifier: Apache-2.0
"""Alarms: rules over what a run's refreshes measured, and which of them hold.

A rule watches one series: a monitor (stages/measures/monitors.py, or `wall_s`, `work_s`, `gpu_s`)
or `train/NAME`, what the trainer measured. All bounds of a rule must hold, on so many refreshes
in a row. `rises_by` and `falls_by` count from the run's first value; of a `train/` series, from
the mean over the first tenth of the same update's steps, its value being that over the last tenth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from stages.measures.monitors import NAMES, SLICED
from stages.settings import Settings

TIMES = ("wall_s", "work_s", "gpu_s")
TRAIN = "train/"


class AlarmConfig(Settings):
    """One rule, and what `then` happens.

    warn; hold (exit 3, the same command goes on); stop (exit 3, the run has ended until the rule
    is changed).
    """

    model_config = ConfigDict(serialize_by_alias=True)

    watch: str
    slice: str = "all"
    above: float | None = None
    below: float | None = None
    rises_by: float | None = None
    falls_by: float | None = None
    in_a_row: int = Field(1, ge=1, le=10_000, alias="for")
    then: Literal["warn", "hold", "stop"] = "warn"

    @field_validator("watch")
    @classmethod
    def _series_is_known(cls, watch: str) -> str:
        if watch not in (*NAMES, *TIMES) and not watch.startswith(TRAIN):
            raise ValueError(
                f"{watch!r} is not watched: use {', '.join((*NAMES, *TIMES))}, or train/ and a "
                "name of the trainer's such as train/logps/chosen"
            )
        return watch

    @model_validator(mode="after")
    def _bounds_fit(self) -> "AlarmConfig":
        if not self.bounds:
            raise ValueError("there is no bound: give above, below, rises_by or falls_by")
        parts = ("all", "correct", "wrong") if self.watch in SLICED else ("all",)
        if self.watch not in TIMES and self.slice not in parts:
            raise ValueError(
                f"slice is {self.slice!r}, and {self.watch} has: {', '.join(parts)}: use one"
            )
        return self

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds that are given."""
        names = ("above", "below", "rises_by", "falls_by")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def plain(self) -> dict[str, Any]:
        """What is given, as in a config."""
        return self.model_dump(mode="json", exclude_none=True)


DEFAULTS = (
    AlarmConfig(watch="train/logps/chosen", falls_by=5.0),
    AlarmConfig(watch="truncated", above=0.2, rises_by=0.0),
    AlarmConfig(watch="mixed", below=0.01),
)


@dataclass(frozen=True, slots=True)
class Point:
    """A refresh's value, and the value that its rise or fall is counted from."""

    round: int
    refresh: int
    value: float
    began: float


Series = Mapping[tuple[str, str], Sequence[Point]]  # by name and slice, oldest first


@dataclass(frozen=True, slots=True)
class Alarm:
    """A rule that holds, on these points."""

    rule: AlarmConfig
    points: Sequence[Point]

    @property
    def sentence(self) -> str:
        """What is seen, in words."""
        rule, last = self.rule, self.points[-1]
        name = rule.watch if rule.slice == "all" else f"{rule.watch} ({rule.slice})"
        said = {
            "above": "above {:g}",
            "below": "below {:g}",
            "rises_by": "{gap:+.4g} from {began:.4g} (rises_by {:g})",
            "falls_by": "{gap:+.4g} from {began:.4g} (falls_by {:g})",
        }
        gap = last.value - last.began
        bounds = ", ".join(
            said[bound].format(value, gap=gap, began=last.began)
            for bound, value in rule.bounds.items()
        )
        count = len(self.points)
        row = f", {count} refreshes in a row" if count > 1 else ""
        return (
            f"round {last.round}, refresh {last.refresh}: {name} is {last.value:.4g}, {bounds}{row}"
        )

    @property
    def detail(self) -> dict[str, Any]:
        """The rule and the values, for the store."""
        return {
            "rule": self.rule.plain,
            "round": self.points[-1].round,
            "refresh": self.points[-1].refresh,
            "values": [point.value for point in self.points],
            "began": self.points[-1].began,
        }


def fired(rules: Sequence[AlarmConfig], series: Series, round_: int, refresh: int) -> list[Alarm]:
    """The rules that hold at a refresh, in their order."""
    found = []
    for rule in rules:
        points = series.get((rule.watch, rule.slice), ())[-rule.in_a_row :]
        here = bool(points) and (points[-1].round, points[-1].refresh) == (round_, refresh)
        if here and len(points) == rule.in_a_row and all(_holds(rule, p) for p in points):
            found.append(Alarm(rule, points))
    return found


def _holds(rule: AlarmConfig, point: Point) -> bool:
    gap = point.value - point.began
    holds = {
        "above": lambda bound: point.value > bound,
        "below": lambda bound: point.value < bound,
        "rises_by": lambda bound: gap > bound,
        "falls_by": lambda bound: -gap > bound,
    }
    return all(holds[name](bound) for name, bound in rule.bounds.items())
