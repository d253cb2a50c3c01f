# SPDX-License-Identifier: Apache-2.0
"""What the steps of a run share: config, store, folders, built parts, screen."""

import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from configs.schema import Config
from flows.models import checkpoint_at, named_model
from flows.screen import Screen
from flows.tracking import Tracking
from stages.errors import ConfigError
from stages.ids import Id
from stages.policies.checkpoint import (
    context_length,
    is_complete,
    load_tokenizer,
)
from stages.rewards import Rewarded
from stages.rows import Model, Problem, PromptSet
from stages.samplers.base import Engine
from stages.settings import canonical
from stages.tasks import Split, Task, TaskConfig
from stages.verifiers import VerifierPart
from store.db import Store

SYNCED = re.compile(r"synced\(every ([0-9]+)\)")


class Run:
    """A run that holds its lock: everything that stays the same from round to round.

    `verifier` says what is right, `rewarded` what training sees: the same but for control arms.

    `began` is the task as the run began with it (None: as it is now): what step keys hash, so that
    no key changes where a train file has grown.
    """

    def __init__(
        self,
        name: str,
        run_id: Id,
        config: Config,
        store: Store,
        screen: Screen,
        began: TaskConfig | None = None,
    ) -> None:
        self.name, self.run_id, self.config = name, run_id, config
        self.store, self.screen = store, screen
        self.began = began or config.task
        self.task: Task = config.task.build()
        self.verifier: VerifierPart = config.verifier.build()
        self.rewarded: VerifierPart = (
            Rewarded(self.verifier, config.reward.build()) if config.reward else self.verifier
        )
        self.tracking = Tracking(name, run_id, config, store, screen)
        self._engine: tuple[Id, Engine] | None = None
        self._known: dict[Id, Model] = {}

    @cached_property
    def prompts(self) -> PromptSet:
        """The prompt set of the config, else the task's own."""
        return self.config.prompt_set(self.task)

    @cached_property
    def evaluation_problems(self) -> dict[Id, Problem]:
        """Held-out problems of the task and of the evaluation sets that the config names."""
        tasks = [self.task, *(config.build() for config in self.config.evaluation_sets)]
        splits: tuple[Split, ...] = ("dev", "test")
        found = (p for task in tasks for split in splits for p in task.problems(split))
        return {problem.problem_id: problem for problem in found}

    @cached_property
    def context_length(self) -> int | None:
        """Tokens that prompt and completion have together at most, None where it is not said."""
        return context_length(self.base_folder)

    @property
    def models(self) -> Path:
        """Checkpoints, by content id, shared by all runs of the store."""
        return self.store.folder / "models"

    @property
    def optimizers(self) -> Path:
        """Optimizer states, by the update that left them, shared like the checkpoints."""
        return self.store.folder / "optimizers"

    @property
    def folder(self) -> Path:
        """This run's own files: lock, shards, training checkpoints."""
        return self.store.folder / self.name

    @cached_property
    def base_folder(self) -> Path:
        """The base policy's checkpoint, trained now if the policy trains its own."""
        with self.screen.stage("base model") as stage:
            return self.config.policy.build().prepare(self.models, stage.progress)

    @cached_property
    def tokenizer(self) -> Any:
        """The base's tokenizer, which all of the run's checkpoints keep."""
        return load_tokenizer(self.base_folder)

    def checkpoint(self, model_id: Id) -> Path:
        """The folder of a model of the store; StoreError where it does not hold that model."""
        return checkpoint_at(self.store, self.model(model_id), lambda: self.base_folder)

    def model(self, model_id: Id) -> Model:
        """A model of the store; its row stays as it was written."""
        if model_id not in self._known:
            with self.store.transaction() as tx:
                (self._known[model_id],) = tx.rows(Model, "model_by_id", model_id=model_id)
        return self._known[model_id]

    def named(self, name: str, base: Id, start: Id) -> Id:
        """The model that `base`, `round_start` or `model:…` names."""
        if name in ("base", "round_start"):
            return base if name == "base" else start
        return named_model(self.store, name.removeprefix("model:"))

    def optimizer_of(self, update_id: Id) -> Path:
        """Where the optimizer's state of an update lies, if it was kept."""
        return self.optimizers / str(update_id)

    def keep_optimizer(self, draft: Path, update_id: Id) -> None:
        """Move an optimizer's state, which is whole, to its place."""
        target = self.optimizer_of(update_id)
        target.parent.mkdir(exist_ok=True)
        if not is_complete(target):
            shutil.rmtree(target, ignore_errors=True)
            draft.rename(target)

    def engine(self, model_id: Id) -> Engine:
        """The sampler with a model loaded; the last one stays loaded."""
        if self._engine is None or self._engine[0] != model_id:
            self.close()
            begun = time.monotonic()
            self._engine = (model_id, self.config.sampler.build(self.checkpoint(model_id)))
            if self.config.sampler.starts_process:
                self._note_start(time.monotonic() - begun)
        return self._engine[1]

    def _note_start(self, seconds: float) -> None:
        with self.store.transaction() as tx:
            tx.append(
                "add_event",
                run_id=self.run_id,
                round=None,
                refresh=None,
                kind="engine_started",
                message=f"the sampler's engine started in {seconds:.1f} s",
                detail=canonical({"seconds": seconds}),
            )

    def close(self) -> None:
        """End the sampler that is loaded, if one is."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine[1].close()


@dataclass(frozen=True, slots=True)
class Reset:
    """A round that began with reference and optimizer anew, and the model it began with."""

    round: int
    model: Id


@dataclass(frozen=True, slots=True)
class Round:
    """A round of a run, 0 being the base, or one of its refreshes.

    `start` is the model that the round begins with, `current` the one that the refresh does.
    """

    run: Run
    number: int
    start: Id
    base: Id
    refresh: int = 0
    current: Id | None = None

    @property
    def policy(self) -> Id:
        """The model that samples."""
        never = self.run.config.timing.policy_refresh == "never"
        return self.base if never else self.current or self.start

    @property
    def init(self) -> Id:
        """The model that the update starts from: in later refreshes the one before."""
        if self.refresh:
            return self.current or self.start
        return self.run.named(self.run.config.update.init_from, self.base, self.start)

    @property
    def reset(self) -> Reset | None:
        """The run's newest reset, this round's included."""
        if self.run.config.update.resets == "never":
            return None
        with self.run.store.transaction() as tx:
            found = tx.ask("resets", run=self.run.name, round=self.number)
        return Reset(found[-1]["round"], Id(found[-1]["model"])) if found else None

    @property
    def reference(self) -> Id | None:
        """The model that the loss compares with, None for losses without one."""
        name = self.run.config.update.reference
        if name is None:
            return None
        reset = self.reset
        if reset is not None:
            return reset.model
        synced = SYNCED.fullmatch(name)
        if synced is None:
            return self.run.named(name, self.base, self.start)
        with self.run.store.transaction() as tx:
            made = tx.ask("models_made", **self.place)
        models: list[Id] = [row["model_id"] for row in made]
        before = len(models) - 1
        return models[before - before % int(synced[1])]

    def share(self, problems: Sequence[Problem]) -> Sequence[Problem]:
        """The refresh's part of the round's problems, cut in order."""
        count = self.run.config.refreshes_of(self.number)
        if 0 < len(problems) < count:
            raise ConfigError(
                f"timing.policy_refresh: round {self.number} has {count} refreshes and "
                f"{len(problems)} problems: use a larger s, or more problems a round"
            )
        start, end = (place * len(problems) // count for place in (self.refresh, self.refresh + 1))
        return problems[start:end]

    @property
    def steps(self) -> int | None:
        """Optimizer steps of the refresh, the last taking what is left; None: by epochs."""
        return self.run.config.steps_of(self.number, self.refresh)

    @property
    def place(self) -> dict[str, Any]:
        """Where a step of this round stands in the store."""
        return {"run_id": self.run.run_id, "round": self.number, "refresh": self.refresh}
