# SPDX-License-Identifier: Apache-2.0
"""`command`: a trainer of your own, run as a child process on a file of rows.

The command reads {data}, starts from the checkpoint {start}, takes {steps} optimizer steps and
leaves a checkpoint in the folder {out}. Beside it may lie `metrics.jsonl`, with lines such as
{"step": 1, "loss": 0.5}, and `visits.json`, how often each training row was visited (once, where
there is none). {work} is a folder that survives a kill, for trainers that resume by themselves:
{out} is empty at each start. The tokenizer stays the start's. Rows are as text and as tokens:
`prompt` and `prompt_ids`, `completion` (or `chosen` and `rejected`) alike, `loss_mask`, `reward`,
and summed log-probabilities (nats) as `reference_…_logprob`.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from stages.errors import ConfigError, UpdaterError
from stages.policies.checkpoint import copy_tokenizer
from stages.settings import operational
from stages.updaters.base import (
    Item,
    Plan,
    Progress,
    Rows,
    Trained,
    Updater,
    UpdaterSettings,
    View,
    accelerator,
    check_any,
)
from stages.updaters.command_files import (
    Format,
    Metrics,
    fault,
    stamps,
    take,
    visits,
    write_rows,
)
from stages.updaters.command_process import missing, run, said
from stages.updaters.training import last_loss

PLACES = ("data", "start", "reference", "out", "work", "steps", "seed")
NEEDED = {"data": "its rows are there", "out": "its checkpoint is looked for there"}
NAMED = re.compile(r"\{(\w+)\}")


class Config(UpdaterSettings):
    """`command` is a program and its arguments, in which {data} and the like are filled in.

    No shell reads them. What the program itself does is not looked into: a changed script is the
    same updater. `batch_size` is what the command trains on at a step; here it only plans epochs.
    """

    VIEWS: ClassVar[Mapping[str, View]] = {
        "command": View("rows of the kind that it asks for", "goes with each rollout", {}, "–")
    }

    type: Literal["command"]
    command: Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
    format: Format = "parquet"
    rows: Rows = "sft"
    uses_reference: bool = False
    batch_size: int = Field(64, ge=1)
    timeout_s: float | None = operational(None, gt=0)

    @field_validator("command", mode="before")
    @classmethod
    def _command_is_a_list(cls, given: Any) -> Any:
        if isinstance(given, str):
            raise ValueError(
                f"{given!r} is one text, and no shell reads it: write a list of a program and its "
                "arguments"
            )
        return given

    @model_validator(mode="after")
    def _places_are_known(self) -> "Config":
        used = {name for argument in self.command for name in NAMED.findall(argument)}
        known = ", ".join(f"{{{name}}}" for name in PLACES)
        for name in sorted(used.difference(PLACES)):
            raise ValueError(
                f"command has {{{name}}}, which nothing fills in (no shell reads it): use {known}"
            )
        for name, why in NEEDED.items():
            if name not in used:
                raise ValueError(f"command has no {{{name}}}: hand it over, {why}; known: {known}")
        if "reference" in used and not self.uses_reference:
            raise ValueError(
                "command has {reference} and uses_reference is false: set it to true, or take "
                "{reference} out"
            )
        return self

    @property
    def needs_reference(self) -> bool:
        return self.uses_reference

    @property
    def precision(self) -> tuple[str, str]:
        return "auto", accelerator()

    def check(self) -> None:
        program = self.command[0]
        if not NAMED.search(program) and (fault := missing(program)):
            raise ConfigError(fault)

    def build(self) -> Updater:
        return Command(self)


class Command:
    """Hands rows to a command and takes the checkpoint that it leaves."""

    name = "command"
    deterministic = False

    def __init__(self, config: Config) -> None:
        self._config = config

    def update(self, items: Sequence[Item], plan: Plan, progress: Progress) -> Trained:
        check_any(items)
        work = plan.work.absolute()
        out, log, kept = work / "out", work / "command.log", work / "kept"
        shutil.rmtree(out, ignore_errors=True)
        for folder in (out, kept):
            folder.mkdir(parents=True, exist_ok=True)
        config = self._config
        places = {
            "data": write_rows(items, config.rows, config.format, work),
            "start": plan.init.absolute(),
            "reference": plan.reference and plan.reference.absolute(),
            "out": out,
            "work": kept,
            "steps": plan.steps,
            "seed": plan.seed,
        }
        arguments = [
            NAMED.sub(lambda found: str(places[found[1]]), argument) for argument in config.command
        ]
        metrics = Metrics(out, plan.steps, progress)
        given = [folder for folder in (plan.init, plan.reference) if folder is not None]
        before = [stamps(folder) for folder in given]
        run(arguments, log, config.timeout_s, metrics.read)
        metrics.read(ended=True)
        for folder, stamped in zip(given, before, strict=True):
            _refuse_changed(folder, stamped)
        wrong = fault(out, plan.init)
        if wrong is not None:
            found = ", ".join(sorted(path.name for path in out.iterdir())) or "nothing"
            raise UpdaterError(
                f"update.updater.command: {out} {wrong}; it holds {found}; {said(log)}"
            )
        counted = visits(out, items)
        take(out, plan.draft)
        copy_tokenizer(plan.init, plan.draft)
        return Trained(plan.steps, counted, last_loss(metrics.series), metrics.series)


def _refuse_changed(folder: Path, before: Mapping[str, tuple[int, int]]) -> None:
    """UpdaterError where the command wrote into a checkpoint that it was given to read."""
    now = stamps(folder)
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if changed:
        raise UpdaterError(
            f"update.updater.command: it changed {changed[0]} in {folder}, which it may only read: "
            "let it write to {out}, and put that checkpoint back as it was (a base that starloop "
            "trains is made anew where its folder is deleted)"
        )
