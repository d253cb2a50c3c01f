# SPDX-License-Identifier: Apache-2.0
"""What is done with training problems that overlap evaluation problems."""

from uuid import UUID

import pytest
from pydantic import ValidationError

from stages.decontaminate import DecontaminateConfig, Overlap, left_out
from stages.errors import TaskDataError

ONE, TWO, ITEM, OTHER = (UUID(int=i) for i in range(1, 5))
OVERLAPS = [
    Overlap(ONE, ITEM, "exact", 1.0),
    Overlap(ONE, OTHER, "8-gram", 0.9),
    Overlap(TWO, ITEM, "8-gram", 0.625),
]


def test_drop_leaves_out_each_problem_with_its_first_overlap() -> None:
    assert left_out(OVERLAPS, DecontaminateConfig()) == {ONE: OVERLAPS[0], TWO: OVERLAPS[2]}


def test_warn_leaves_nothing_out() -> None:
    assert left_out(OVERLAPS, DecontaminateConfig(on_contamination="warn")) == {}


def test_fail_stops_only_where_there_is_an_overlap_and_names_the_first() -> None:
    config = DecontaminateConfig(on_contamination="fail")
    assert left_out([], config) == {}
    with pytest.raises(TaskDataError, match=f"^2 training problems.*{ONE} and {ITEM}, exact"):
        left_out(OVERLAPS, config)


@pytest.mark.parametrize(
    "values", [{"rules": ["7-gram"]}, {"containment": 0.0}, {"containment": 1.5}, {"dedup": "near"}]
)
def test_a_value_that_means_nothing_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(values))):
        DecontaminateConfig.model_validate(values)


def test_rules_are_read_from_a_list() -> None:
    assert DecontaminateConfig.model_validate({"rules": ["exact"]}).rules == ("exact",)
