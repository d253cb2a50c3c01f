# SPDX-License-Identifier: Apache-2.0
"""Alarms: rules over what a run's refreshes measured, and which of them hold.

A rule watches one series: a monitor (stages/measures/monitors.py, or `wall_s`, `work_s`, `gpu_s`)
or `train/NAME`, what the trainer measured. All bounds of a rule must hold, on so many refreshes
in a row. `rises_by` and `falls_by` count from the run's first value, `above_times` and
`below_times` are multiples of it, `drops_by` counts from the highest value so far. The first value
of a `train/` series is the mean over the first tenth of the same update's steps, its value that
over the last tenth. What must hold of other series at the same time is said with `also`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from stages.measures.monitors import NAMES, SLICED
from stages.settings import Settings

TIMES = ("wall_s", "work_s", "gpu_s")
TRAIN = "train/"


BOUNDS = ("above", "below", "rises_by", "falls_by", "drops_by", "above_times", "below_times")


class Bounds(Settings):
    """What is to hold of one series."""

    watch: str
    slice: str = "all"
    above: float | None = None
    below: float | None = None
    rises_by: float | None = None
    falls_by: float | None = None
    drops_by: float | None = None
    above_times: float | None = Field(None, gt=0)
    below_times: float | None = Field(None, gt=0)

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
    def _bounds_fit(self) -> "Bounds":
        if not self.bounds:
            raise ValueError(f"there is no bound: give {', '.join(BOUNDS[:-1])} or {BOUNDS[-1]}")
        parts = ("all", "correct", "wrong") if self.watch in SLICED else ("all",)
        if self.watch not in TIMES and self.slice not in parts:
            raise ValueError(
                f"slice is {self.slice!r}, and {self.watch} has: {', '.join(parts)}: use one"
            )
        return self

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds that are given."""
        return {name: value for name in BOUNDS if (value := getattr(self, name)) is not None}

    @property
    def name(self) -> str:
        """The series, as it is said."""
        return self.watch if self.slice == "all" else f"{self.watch} ({self.slice})"


class AlarmConfig(Bounds):
    """One rule, and what `then` happens.

    warn; hold (exit 3, the same command goes on); stop (exit 3, the run has ended until the rule
    is changed).
    """

    model_config = ConfigDict(serialize_by_alias=True)

    also: Annotated[tuple[Bounds, ...], Field(strict=False)] = ()
    in_a_row: int = Field(1, ge=1, le=10_000, alias="for")
    then: Literal["warn", "hold", "stop"] = "warn"

    @property
    def plain(self) -> dict[str, Any]:
        """What is given, as in a config."""
        given = self.model_dump(mode="json", exclude_none=True)
        return given if self.also else {k: v for k, v in given.items() if k != "also"}


DEFAULTS = (
    AlarmConfig(watch="train/logps/chosen", falls_by=5.0),
    AlarmConfig(watch="truncated", above=0.2, rises_by=0.0),
    AlarmConfig(watch="mixed", below=0.01),
    AlarmConfig(watch="entropy", below_times=0.1),  # it has settled on one answer
    AlarmConfig(watch="entropy", above_times=3.0),  # it says anything
    AlarmConfig(watch="length", above_times=3.0),
    AlarmConfig(watch="reward_at_top", above=0.98),
    AlarmConfig(  # the reward is learned, and what it stands for is lost
        watch="reward_gap", rises_by=0.1, also=(Bounds(watch="held_out", drops_by=0.03),)
    ),
)


@dataclass(frozen=True, slots=True)
class Point:
    """A refresh's value, what its rise or fall is counted from, and the highest so far."""

    round: int
    refresh: int
    value: float
    began: float
    highest: float


Series = Mapping[tuple[str, str], Sequence[Point]]  # by name and slice, oldest first


@dataclass(frozen=True, slots=True)
class Alarm:
    """A rule that holds, on these points; `beside` are those of the series in `also`."""

    rule: AlarmConfig
    points: Sequence[Point]
    beside: Sequence[Sequence[Point]] = ()

    @property
    def sentence(self) -> str:
        """What is seen, in words."""
        last, count = self.points[-1], len(self.points)
        watched = [(self.rule, self.points), *zip(self.rule.also, self.beside, strict=True)]
        seen = " and ".join(_said(bounds, points[-1]) for bounds, points in watched)
        row = f", {count} refreshes in a row" if count > 1 else ""
        return f"round {last.round}, refresh {last.refresh}: {seen}{row}"

    @property
    def detail(self) -> dict[str, Any]:
        """The rule and the values, for the store."""
        return {
            "rule": self.rule.plain,
            "round": self.points[-1].round,
            "refresh": self.points[-1].refresh,
            "values": [point.value for point in self.points],
            "began": self.points[-1].began,
        } | ({"beside": [[p.value for p in each] for each in self.beside]} if self.beside else {})


def fired(rules: Sequence[AlarmConfig], series: Series, round_: int, refresh: int) -> list[Alarm]:
    """The rules that hold at a refresh, in their order."""
    found = []
    for rule in rules:
        every = [
            (bounds, series.get((bounds.watch, bounds.slice), ())[-rule.in_a_row :])
            for bounds in (rule, *rule.also)
        ]
        if all(
            len(points) == rule.in_a_row
            and (points[-1].round, points[-1].refresh) == (round_, refresh)
            and all(_holds(bounds, point) for point in points)
            for bounds, points in every
        ):
            found.append(Alarm(rule, every[0][1], [points for _, points in every[1:]]))
    return found


def _holds(bounds: Bounds, point: Point) -> bool:
    """Multiples of a first value that is not above 0 say nothing."""
    gap, known = point.value - point.began, point.began > 0
    holds: dict[str, Callable[[float], bool]] = {
        "above": lambda bound: point.value > bound,
        "below": lambda bound: point.value < bound,
        "rises_by": lambda bound: gap > bound,
        "falls_by": lambda bound: -gap > bound,
        "drops_by": lambda bound: point.highest - point.value > bound,
        "above_times": lambda bound: known and point.value > bound * point.began,
        "below_times": lambda bound: known and point.value < bound * point.began,
    }
    return all(holds[name](bound) for name, bound in bounds.bounds.items())


def _said(bounds: Bounds, point: Point) -> str:
    """A series with its value, and where its bounds are."""
    gap, drop = point.value - point.began, point.value - point.highest
    said = {
        "above": "above {:g}",
        "below": "below {:g}",
        "rises_by": f"{gap:+.4g} from {point.began:.4g} (rises_by {{:g}})",
        "falls_by": f"{gap:+.4g} from {point.began:.4g} (falls_by {{:g}})",
        "drops_by": f"{drop:+.4g} from its highest, {point.highest:.4g} (drops_by {{:g}})",
        "above_times": f"above {{:g}} times its first, {point.began:.4g}",
        "below_times": f"below {{:g}} times its first, {point.began:.4g}",
    }
    parts = [f"{bounds.name} is {point.value:.4g}"]
    return ", ".join([*parts, *(said[name].format(v) for name, v in bounds.bounds.items())])
