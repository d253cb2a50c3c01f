# SPDX-License-Identifier: Apache-2.0
"""`tally`: trains nothing and records what it was given, in the checkpoint's config.

The start's weights and tokenizer are copied; `config.json` gains `tally`: steps, rows and
completion tokens seen, start included. So every step of a loop can be seen and tested in
seconds, and each update still gives another model id.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from stages.ids import Id, hash_ids, hash_text
from stages.policies.checkpoint import copy_tokenizer, mark_complete
from stages.settings import later
from stages.updaters.base import (
    Item,
    Plan,
    Progress,
    Rows,
    Trained,
    Updater,
    UpdaterSettings,
    View,
    check_any,
)

STATE = "steps.json"


class Config(UpdaterSettings):
    """`batch_size` rows are counted per step, in order, from the first again when they run out.

    `takes` is the kind of rows that it counts.
    """

    VIEWS: ClassVar[Mapping[str, View]] = {
        "tally": View("rows of the kind that it takes", "not read", {"completion": "0"}, "–")
    }

    type: Literal["tally"]
    batch_size: int = Field(8, ge=1)
    takes: Rows = later("sft")

    @property
    def rows(self) -> Rows:
        return self.takes

    def build(self) -> Updater:
        return Tally(self.batch_size)


class Tally:
    """Counts visits as an optimizer would make them."""

    name = "tally"
    deterministic = True

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size

    def update(self, items: Sequence[Item], plan: Plan, progress: Progress) -> Trained:
        check_any(items)
        visits: dict[Id, int] = {item.training_row_id: 0 for item in items}
        tokens = 0
        for step in range(plan.steps):
            for place in range(step * self._batch_size, (step + 1) * self._batch_size):
                item = items[place % len(items)]
                visits[item.training_row_id] += 1
                tokens += len(item.completion_ids)
            progress(step + 1, None)
        plan.draft.mkdir(parents=True, exist_ok=True)
        for path in [plan.init / "config.json", *plan.init.glob("*.safetensors*")]:
            shutil.copyfile(path, plan.draft / path.name)
        copy_tokenizer(plan.init, plan.draft)
        self._write_tally(plan, items, tokens)
        if plan.state is not None:
            _write_state(plan.state, plan)
        return Trained(plan.steps, visits, None)

    def _write_tally(self, plan: Plan, items: Sequence[Item], tokens: int) -> None:
        path = plan.draft / "config.json"
        config = json.loads(path.read_text())
        before = config.get("tally", {"steps": 0, "rows": 0, "tokens": 0})
        added = {"steps": plan.steps, "rows": len(items), "tokens": tokens}
        data = hash_ids(item.training_row_id for item in items)
        config["tally"] = {key: before[key] + added[key] for key in added}
        config["tally"]["data"] = hash_text(f"{before.get('data')}|{plan.seed}|{data}")
        path.write_text(json.dumps(config, indent=2))


def _write_state(state: Path, plan: Plan) -> None:
    """What an optimizer would leave: the steps it has done, those of carried ones included."""
    before = 0 if plan.optimizer is None else json.loads((plan.optimizer / STATE).read_text())
    state.mkdir(parents=True, exist_ok=True)
    (state / STATE).write_text(json.dumps(before + plan.steps))
    mark_complete(state)
