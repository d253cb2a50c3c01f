# SPDX-License-Identifier: Apache-2.0
"""The one typed config of a run. Plug-ins bring their own sections; nothing is said twice."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from stages.decontaminate import DecontaminateConfig
from stages.evaluate import EvaluateConfig
from stages.mix import MixConfig
from stages.policies import PolicyConfig
from stages.prompts import PromptsConfig
from stages.rows import PromptSet
from stages.samplers import SamplerConfig
from stages.samplers.base import SamplingConfig
from stages.settings import Settings, later, operational
from stages.tasks import Task, TaskConfig
from stages.update import StepsConfig
from stages.updaters import UpdaterConfig
from stages.verifiers import VerifierConfig


class ProblemsConfig(Settings):
    """Which train problems a round takes; `band` bounds the pass rate seen so far."""

    per_round: Literal["all"] | Annotated[int, Field(ge=1, le=10**9)] = 2000
    order: Literal["seeded", "split", "unsolved_first"] = "seeded"
    band: Annotated[tuple[float, float], Field(strict=False)] | None = None

    @model_validator(mode="after")
    def _band_is_a_range(self) -> "ProblemsConfig":
        if self.band is not None and not 0 <= self.band[0] <= self.band[1] <= 1:
            raise ValueError(f"band is {list(self.band)}: use [low, high] with 0 ≤ low ≤ high ≤ 1")
        return self


class GenerateConfig(Settings):
    """`n` completions for each of a round's problems."""

    problems: ProblemsConfig = ProblemsConfig()
    n: int = Field(1, ge=1, le=65_536)
    sampling: SamplingConfig = SamplingConfig()


class RationalizeConfig(Settings):
    """Failed problems are tried again with the answer as a hint, `n` times each."""

    enabled: bool = False
    n: int = Field(1, ge=1, le=65_536)


class UpdateConfig(Settings):
    """One update a round, from the base or from the model the round began with."""

    init_from: Literal["base", "round_start"] = "base"
    steps: StepsConfig = StepsConfig()
    updater: UpdaterConfig


class GatesConfig(Settings):
    """When a run is held (exit 3).

    `max_unjudged`: share of answers that could not be judged. `max_gap`: mean difference, in nats
    a token, between the sampler's and the trainer's log-probabilities on a new checkpoint (null:
    0.05 where both compute in float32, else 0.15: rounding alone takes a third of that).
    `preflight`: whether a base from which nothing can climb stops the run.
    """

    max_unjudged: float = operational(0.01, ge=0, le=1)
    max_gap: float | None = operational(None, gt=0)
    preflight: Literal["hold", "warn"] = operational("hold")


class Config(Settings):
    """A run: `rounds` is a target that may grow; every field not marked operational is identity.

    `keep` says whose checkpoints stay on disk: all, best (held-out pass@1), or last(n).
    `evaluation_sets` are tasks whose held-out problems are never trained on either.
    """

    recipe: Literal["star", "rejection"]
    rounds: int = operational(5, ge=1, le=100_000)
    keep: str = operational("all")
    seed: int = Field(0, ge=0, lt=2**31)
    task: TaskConfig
    policy: PolicyConfig
    prompts: PromptsConfig | None = later(None)
    sampler: SamplerConfig
    verifier: VerifierConfig
    generate: GenerateConfig = GenerateConfig()
    rationalize: RationalizeConfig = RationalizeConfig()
    mix: MixConfig = MixConfig()
    update: UpdateConfig
    evaluate: EvaluateConfig = EvaluateConfig()
    decontaminate: DecontaminateConfig = later(DecontaminateConfig())
    evaluation_sets: Annotated[tuple[TaskConfig, ...], Field(strict=False)] = later(())
    gates: GatesConfig = GatesConfig()

    @field_validator("verifier", mode="before")
    @classmethod
    def _answers_are_checked(cls, given: Any) -> Any:
        if given in ("none", {"type": "none"}):
            raise ValueError(
                "'none' checks no answer, so nothing can be learned from it: write a section such "
                "as {type: numeric}"
            )
        return given

    @field_validator("keep", mode="before")
    @classmethod
    def _keep_is_a_rule(cls, given: Any) -> Any:
        if not re.fullmatch(r"all|best|last\([1-9][0-9]{0,5}\)", str(given)):
            raise ValueError(
                f"{given!r} is not allowed: use all, best or last(n) with n from 1 on: last(3)"
            )
        return given

    @model_validator(mode="after")
    def _recipe_has_its_steps(self) -> "Config":
        if self.recipe == "rejection" and self.rationalize.enabled:
            raise ValueError(
                "rationalize.enabled is true, but rejection sampling never rationalizes: "
                "set it to false or use `recipe: star`"
            )
        return self

    def prompt_set(self, task: Task) -> PromptSet:
        """The prompt set of `prompts`, else the task's own."""
        return task.prompts if self.prompts is None else self.prompts.build()
