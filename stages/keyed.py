# SPDX-License-Identifier: Apache-2.0
"""`@keyed`: a frozen dataclass that knows which of its columns are its key."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

Made = TypeVar("Made")


@dataclass_transform(frozen_default=True)
def keyed(*columns: str) -> Callable[[type[Made]], type[Made]]:
    """A frozen dataclass with slots, and `KEY`, the columns named."""

    def make(plain: type[Made]) -> type[Made]:
        made: Any = dataclass(frozen=True, slots=True)(plain)
        made.KEY = columns
        return made  # type: ignore[no-any-return]

    return make
