# SPDX-License-Identifier: Apache-2.0
"""Settings: strict, frozen, and identity told from operational."""

from random import Random
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from stages.settings import (
    Settings,
    canonical,
    identity,
    identity_json,
    is_operational,
    later,
    operational,
)


class Inner(Settings):
    rate: float = 0.5
    device: str = operational("cpu")


class Outer(Settings):
    count: int = 1
    path: str = operational("runs")
    inner: Inner = Inner()


class Grown(Outer):
    """`Outer`, some time after: with fields that it did not have at first."""

    stop: Annotated[tuple[str, ...], Field(strict=False)] = later(())
    limit: int | None = later(None, ge=0)
    below: Inner | None = later(None)
    more: Inner = later(Inner(rate=0.25))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_identity_leaves_operational_fields_out_at_every_depth() -> None:
    assert identity(Outer()) == {"count": 1, "inner": {"rate": 0.5}}
    assert identity_json(Outer()) == '{"count":1,"inner":{"rate":0.5}}'


def test_an_operational_field_changes_no_identity_and_an_identity_field_does() -> None:
    moved = Outer(path="elsewhere", inner=Inner(device="cuda"))
    assert identity(moved) == identity(Outer()) and moved != Outer()
    assert identity(Outer(inner=Inner(rate=0.6))) != identity(Outer())


def test_a_later_field_leaves_the_identity_as_it_was_until_it_is_used() -> None:
    assert identity_json(Grown()) == identity_json(Outer())
    assert identity_json(Grown(stop=(), limit=None)) == identity_json(Outer())
    used = [Grown(stop=("x",)), Grown(limit=0), Grown(below=Inner()), Grown(more=Inner())]
    assert len({identity_json(grown) for grown in [Grown(), *used]}) == 5
    assert identity(Grown(stop=("x",))) == {**identity(Outer()), "stop": ["x"]}
    assert identity(Grown(below=Inner())) == {**identity(Outer()), "below": {"rate": 0.5}}


def test_a_later_field_has_its_limits_and_is_not_operational() -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        Grown(limit=-1)
    assert not is_operational(Grown(), "stop")


def test_operational_fields_are_known_by_name() -> None:
    assert [is_operational(Outer(), name) for name in Outer.model_fields] == [False, True, False]


@pytest.mark.parametrize(
    "values",
    [
        {"count": "1"},
        {"count": 1.0},
        {"count": True},
        {"counts": 1},
        {"inner": {"rate": "0.5"}},
        {"inner": {"rates": 0.5}},
    ],
)
def test_settings_convert_nothing_and_know_no_other_key(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Outer.model_validate(values)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Outer().count = 2  # type: ignore[misc]


@given(st.dictionaries(st.text(), JSON, max_size=4), st.randoms(use_true_random=False))
def test_canonical_text_does_not_depend_on_the_order_of_keys(
    values: dict[str, Any], random: Random
) -> None:
    shuffled = dict(random.sample(list(values.items()), len(values)))
    assert canonical(shuffled) == canonical(values)


def test_canonical_text_has_no_blanks_and_keeps_letters() -> None:
    assert canonical({"b": [1, "ü"], "a": None}) == '{"a":null,"b":[1,"ü"]}'
