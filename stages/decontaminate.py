# SPDX-License-Identifier: Apache-2.0
"""Training problems that stand in an evaluation set, and what is done with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from stages.errors import TaskDataError
from stages.ids import Id
from stages.settings import Settings

Rule = Literal["exact", "template", "13-gram", "10-gram", "8-gram"]


class DecontaminateConfig(Settings):
    """Training problems against evaluation problems by `rules`, then against each other.

    `containment` is the least share of a problem's words in 8-grams of one evaluation problem.
    `drop` leaves overlapping problems out, `fail` stops the run, `warn` trains on them. `dedup`
    keeps the first of equal problems, or of those that differ in their numbers alone.
    """

    rules: Annotated[tuple[Rule, ...], Field(strict=False)] = (
        "exact",
        "template",
        "13-gram",
        "8-gram",
    )
    containment: float = Field(0.5, gt=0, le=1)
    on_contamination: Literal["drop", "fail", "warn"] = "drop"
    dedup: Literal["none", "exact", "template"] = "exact"


@dataclass(frozen=True, slots=True)
class Overlap:
    """`problem_id` overlaps `other_id` by `rule`; `share` of its words, 1 for equal texts."""

    problem_id: Id
    other_id: Id
    rule: Rule
    share: float


def left_out(overlaps: Sequence[Overlap], config: DecontaminateConfig) -> dict[Id, Overlap]:
    """The problems that are not trained on, each with its first overlap.

    Raises TaskDataError where there are any and the config says `fail`.
    """
    first: dict[Id, Overlap] = {}
    for overlap in overlaps:
        first.setdefault(overlap.problem_id, overlap)
    if first and config.on_contamination == "fail":
        found = next(iter(first.values()))
        raise TaskDataError(
            f"{len(first)} training problems overlap evaluation problems (the first: "
            f"{found.problem_id} and {found.other_id}, {found.rule}, share {found.share:.2f}): "
            "take them out, or set on_contamination to drop or warn"
        )
    return first if config.on_contamination == "drop" else {}
