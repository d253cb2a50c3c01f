# SPDX-License-Identifier: Apache-2.0
"""Samples and differences on a real terminal: colours, none where they are not wanted, a pager."""

import re

import pytest
from terminals import terminal

from store.db import Store

COLOUR = re.compile(rb"\x1b\[(?:\d+;)*3\d")
SHOWN = [("samples", "one", "--verdict", "wrong"), ("diff", "one@1", "one@2")]


@pytest.mark.parametrize("given", SHOWN)
def test_pages_are_coloured_and_shown_by_the_pager(told: Store, given: tuple[str, ...]) -> None:
    with terminal(*given, "--store", told.path, PAGER="sed s/^/PAGED:/") as on:
        assert on.end() == 0
        assert COLOUR.search(on.raw)
        lines = [line for line in on.text.splitlines() if line]
        assert len(lines) > 4 and all(line.startswith("PAGED:") for line in lines)
        assert on.is_restored


@pytest.mark.parametrize("given", SHOWN)
@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colour_where_it_is_not_wanted(
    told: Store, given: tuple[str, ...], variable: str, value: str
) -> None:
    with terminal(*given, "--store", told.path, **{variable: value}) as on:
        assert on.end() == 0
        assert not COLOUR.search(on.raw) and "question" in on.text


@pytest.mark.parametrize("given", SHOWN)
def test_no_pager_shows_all_at_once_within_a_narrow_terminal(
    told: Store, given: tuple[str, ...]
) -> None:
    with terminal(
        *given, "--no-pager", "--store", told.path, columns=60, PAGER="sed s/^/PAGED:/"
    ) as on:
        assert on.end() == 0
        assert "PAGED:" not in on.text and "question" in on.text
        assert max(map(len, on.text.splitlines())) <= 60
