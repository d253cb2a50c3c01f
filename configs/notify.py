# SPDX-License-Identifier: Apache-2.0
"""Who is told how a run ended."""

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator

from stages.settings import Settings, operational

Ending = Literal["done", "held", "failed"]


class NotifyConfig(Settings):
    """`command` (an argument vector) gets JSON on its input, `webhook` the same as a POST.

    The JSON has run, round, event and message. `webhook` may hold environment variables (`$NAME`),
    so that a secret address stays out of the store. `when` names the ends that count.
    """

    command: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] | None = operational(
        None
    )
    webhook: str | None = operational(None)
    when: Annotated[tuple[Ending, ...], Field(strict=False)] = operational(
        ("done", "held", "failed")
    )

    @field_validator("webhook")
    @classmethod
    def _webhook_is_an_address(cls, address: str | None) -> str | None:
        if address is not None and not re.match(r"https?://.|\$", address):
            raise ValueError(
                f"{address!r} is not allowed: use an http or https address, or $NAME of an "
                "environment variable that has one"
            )
        return address
