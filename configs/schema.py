# SPDX-License-Identifier: Apache-2.0
"""The one typed config of a run. Plug-ins bring their own sections; nothing is said twice."""

import re
from math import ceil
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from configs.generate import GenerateConfig
from configs.notify import NotifyConfig
from configs.policy_gradients import check_policy_gradients
from configs.rewards import check_rewards
from configs.update import UpdateConfig
from stages.alarms import DEFAULTS, AlarmConfig
from stages.decontaminate import DecontaminateConfig
from stages.evaluate import EvaluateConfig
from stages.measures.monitors import MonitorsConfig
from stages.mix import MixConfig
from stages.policies import PolicyConfig
from stages.prompts import PromptsConfig
from stages.rewards import RewardConfig
from stages.rows import PromptSet
from stages.samplers import SamplerConfig
from stages.settings import Settings, later, operational
from stages.tasks import Task, TaskConfig
from stages.trackers import TrackerName
from stages.verifiers import VerifierConfig


class RationalizeConfig(Settings):
    """Failed problems are tried again with the answer as a hint, `n` times each."""

    enabled: bool = False
    n: int = Field(1, ge=1, le=65_536)


EVERY = re.compile(r"every\(([1-9][0-9]{0,8})\)")


class TimingConfig(Settings):
    """When the policy that samples is refreshed.

    `every(s)`: each s optimizer steps (1 is online); `every_round`; `never`: the base samples all
    rounds (offline).
    """

    policy_refresh: str = "every_round"

    @field_validator("policy_refresh")
    @classmethod
    def _refresh_is_known(cls, text: str) -> str:
        if text not in ("every_round", "never") and not EVERY.fullmatch(text):
            raise ValueError(
                f"{text!r} is not allowed: use every(s) with s from 1 on, every_round or never"
            )
        return text

    @property
    def steps(self) -> int | None:
        """s of `every(s)`."""
        found = EVERY.fullmatch(self.policy_refresh)
        return int(found[1]) if found else None


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


# Updaters and kinds of rows of the recipes with refreshes; the others imitate.
TRAINED_BY = {
    "dpo": (("dpo", "kto", "simpo"), ("pair", "rollout")),
    "grpo": (("grpo",), ("rollout",)),
}
IMITATED_BY = (("sft", "tally"), ("sft",))


class Config(Settings):
    """A run: `rounds` is a target that may grow; every field not marked operational is identity.

    `keep` says whose checkpoints stay on disk: all, best (held-out pass@1), or last(n).
    `evaluation_sets` are tasks whose held-out problems are never trained on either. Given
    `alarms` take the place of those built in. `reward` is a control arm: what training sees in
    place of the verifier's score. `tracking` names a tracker that shows the run too.
    """

    recipe: Literal["star", "rejection", "dpo", "grpo"]
    rounds: int = operational(5, ge=1, le=100_000)
    keep: str = operational("all")
    seed: int = Field(0, ge=0, lt=2**31)
    task: TaskConfig
    policy: PolicyConfig
    prompts: PromptsConfig | None = later(None)
    sampler: SamplerConfig
    verifier: VerifierConfig
    reward: RewardConfig | None = later(None)
    generate: GenerateConfig = GenerateConfig()
    rationalize: RationalizeConfig = RationalizeConfig()
    mix: MixConfig = MixConfig()
    update: UpdateConfig
    timing: TimingConfig = later(TimingConfig())
    evaluate: EvaluateConfig = EvaluateConfig()
    decontaminate: DecontaminateConfig = later(DecontaminateConfig())
    evaluation_sets: Annotated[tuple[TaskConfig, ...], Field(strict=False)] = later(())
    gates: GatesConfig = GatesConfig()
    monitors: MonitorsConfig = later(MonitorsConfig())
    alarms: Annotated[tuple[AlarmConfig, ...], Field(strict=False)] = operational(DEFAULTS)
    notify: NotifyConfig = operational(NotifyConfig())
    tracking: TrackerName | None = operational(None)

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
    def _reference_is_needed_or_absent(self) -> "Config":
        reference, name = self.update.reference, self.update.updater.type
        needs = self.update.updater.needs_reference or self.mix.groups.kl > 0
        if needs and reference is None:
            raise ValueError(
                f"update.reference is missing: {name} compares with one; use base, round_start, "
                "synced(every r) or model:…"
            )
        if reference is not None and not needs:
            raise ValueError(
                f"update.reference is {reference!r}, and {name} has none: leave it out"
            )
        return self

    @model_validator(mode="after")
    def _recipe_has_its_rows(self) -> "Config":
        parts, rows = TRAINED_BY.get(self.recipe, IMITATED_BY)
        updater = self.update.updater
        if updater.type not in (*parts, "tally", "command") or updater.rows not in rows:
            raise ValueError(
                f"update.updater.type is {updater.type!r}, and recipe {self.recipe} does not make "
                f"its rows: use one of {', '.join(parts)}, or command with rows: "
                f"{' or '.join(rows)}"
            )
        return self

    @model_validator(mode="after")
    def _policy_gradients_have_what_they_need(self) -> "Config":
        check_policy_gradients(self)
        return self

    @model_validator(mode="after")
    def _reward_can_teach(self) -> "Config":
        check_rewards(self)
        return self

    @model_validator(mode="after")
    def _refreshes_are_counted(self) -> "Config":
        refresh = self.timing.policy_refresh
        if self.recipe not in TRAINED_BY and refresh != "every_round":
            raise ValueError(
                f"timing.policy_refresh is {refresh!r}, and recipe {self.recipe} has one refresh a "
                "round: leave it out, or use recipe: dpo"
            )
        if self.timing.steps is not None and self.update.steps.epochs is not None:
            raise ValueError(
                f"timing.policy_refresh is {refresh!r} and update.steps.epochs is set: refreshes "
                "are cut by steps, give update.steps.first"
            )
        return self

    def refreshes_of(self, round_: int) -> int:
        """How many refreshes a round has."""
        s = self.timing.steps
        return 1 if s is None or not round_ else ceil(self._steps(round_) / s)

    def steps_of(self, round_: int, refresh: int) -> int | None:
        """Optimizer steps of a refresh; None where they are counted by epochs."""
        if self.update.steps.epochs is not None:
            return None
        steps, s = self._steps(round_), self.timing.steps
        return steps if s is None else min(s, steps - refresh * s)

    def _steps(self, round_: int) -> int:
        return self.update.steps.of_round(round_, 0, 1)

    @model_validator(mode="after")
    def _recipe_has_its_steps(self) -> "Config":
        if self.recipe != "star" and self.rationalize.enabled:
            raise ValueError(
                f"rationalize.enabled is true, but recipe {self.recipe} never rationalizes: "
                "set it to false or use `recipe: star`"
            )
        return self

    @property
    def measures_kl(self) -> bool:
        """Whether the policy is compared with base and reference: said, else where it fits."""
        fits = self.recipe in TRAINED_BY and self.sampler.holds_weights
        return fits if self.monitors.kl is None else self.monitors.kl

    def prompt_set(self, task: Task) -> PromptSet:
        """The prompt set of `prompts`, else the task's own."""
        return task.prompts if self.prompts is None else self.prompts.build()
