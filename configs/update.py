# SPDX-License-Identifier: Apache-2.0
"""What a round's update does: where it starts, what it compares with, how long it goes on."""

import re
from typing import Literal

from pydantic import field_validator, model_validator

from stages.resets import RULE
from stages.settings import Settings, later
from stages.update import StepsConfig
from stages.updaters import UpdaterConfig

MODEL = r"base|round_start|model:.+"
REFERENCE = rf"{MODEL}|synced\(every (?P<every>[1-9][0-9]{{0,8}})\)"


class UpdateConfig(Settings):
    """One update a refresh.

    `init_from` is where a round's first update starts: `base`, `round_start` (the model that the
    round began with) or `model:…` (a folder, or an id of the store); later refreshes go on. The
    `reference` of losses that have one is named alike, or `synced(every r)`: the policy of the
    newest refresh whose number in the run is a multiple of r. The optimizer goes on until it is
    reset: each `round`, each `refresh`, or `never`. Beyond that, `resets` are rounds that begin
    with the reference at their start and the optimizer anew: `every(n)` rounds, or `on_plateau(n)`,
    after n rounds without a new best held-out pass@1 (see stages/resets.py).
    """

    init_from: str = "base"
    reference: str | None = later(None)
    reset_optimizer: Literal["round", "refresh", "never"] = later("round")
    resets: str = later("never")
    steps: StepsConfig = StepsConfig()
    updater: UpdaterConfig

    @field_validator("init_from")
    @classmethod
    def _start_is_a_model(cls, text: str) -> str:
        if not re.fullmatch(MODEL, text):
            raise ValueError(
                f"{text!r} is not allowed: use base, round_start, or model:… with a folder or an id"
            )
        return text

    @field_validator("reference")
    @classmethod
    def _reference_is_a_model(cls, text: str | None) -> str | None:
        if text is not None and not re.fullmatch(REFERENCE, text):
            raise ValueError(
                f"{text!r} is not allowed: use base, round_start, synced(every r) with r from 1 "
                "on, or model:… with a folder or an id"
            )
        return text

    @field_validator("resets")
    @classmethod
    def _resets_are_a_rule(cls, text: str) -> str:
        if text != "never" and not RULE.fullmatch(text):
            raise ValueError(
                f"{text!r} is not allowed: use never, every(n) or on_plateau(n), n rounds from 1 on"
            )
        return text

    @model_validator(mode="after")
    def _resets_have_something_to_reset(self) -> "UpdateConfig":
        if self.resets == "never":
            return self
        if self.init_from != "round_start":
            raise ValueError(
                f"resets is {self.resets} and init_from {self.init_from}: a reset goes on from the "
                "round's start, use init_from: round_start, or resets: never"
            )
        reference = self.reference
        if reference is not None and not re.fullmatch(r"base|model:.+", reference):
            raise ValueError(
                f"resets is {self.resets} and reference {reference}, which moves along by itself: "
                "use reference: base or model:…, or resets: never"
            )
        carried = self.reset_optimizer == "never" and self.updater.carries_optimizer
        if reference is None and not carried:
            raise ValueError(
                f"resets is {self.resets}, and there is neither a reference nor an optimizer that "
                "goes on over rounds: use reset_optimizer: never (not with updaters that keep none)"
                ", or resets: never"
            )
        return self

    @model_validator(mode="after")
    def _schedule_has_an_end(self) -> "UpdateConfig":
        schedule = getattr(self.updater, "schedule", "constant_with_warmup")
        if self.reset_optimizer == "never" and schedule != "constant_with_warmup":
            raise ValueError(
                f"reset_optimizer is never, so the {schedule} schedule has no end: use "
                "updater.schedule: constant_with_warmup"
            )
        return self
