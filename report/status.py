# SPDX-License-Identifier: Apache-2.0
"""Where each run of a store stands, why, and the command that comes next."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from report.progress import Standing, line_of, resuming
from report.text import visible

# The last event of a run that tells nothing else, by how its message begins.
CUTS = (
    (r"HeldError: ", "held"),
    (r"(KeyboardInterrupt|Interrupted|SystemExit)\b", "interrupted"),
    (r"", "failed"),
)
ENDS = {"refused": "failed", "locked": "failed", "done": "waiting"}


@dataclass(frozen=True, slots=True)
class State:
    """A run's state in a word, what there is to say of it, and the next command."""

    word: str
    why: str
    next: str


def state_of(run: Mapping[str, Any], at: Standing | None, holder: int | None) -> State:
    """A run of `run_list`; `at`: what it told last, `holder`: the process that works on it."""
    name = str(run["name"])
    if run["recipe"] == "import":
        return State("imported", "", f"starloop samples {name}")
    if holder is not None:
        line = line_of(at, time.time()) if at is not None and at.pid == holder else "beginning"
        return State("under way", f"{line} · process {holder}", f"starloop watch {name}")
    if run["rounds"] >= target_of(run, at):
        return State("complete", "", f"starloop report {name}")
    word, why = _ended(run, at)
    return State("stopped" if run["stopped"] else word, visible(why), resuming(at, name))


def target_of(run: Mapping[str, Any], at: Standing | None) -> int:
    """The rounds that were asked for last; an import has none."""
    return int(at.rounds if at is not None else run["target"] or 0)


def _ended(run: Mapping[str, Any], at: Standing | None) -> tuple[str, str]:
    if at is not None and at.ended is None:
        return "killed", f"{line_of(at)} · process {at.pid} is gone"
    if at is not None and at.ended is not None:
        outcome = at.ended["outcome"]
        return ENDS.get(outcome, outcome), at.ended["text"] or line_of(at)
    if run["last_event"] != "cut":
        return "killed", "no process works on it here"
    said = run["last_message"]
    return next((word, said) for start, word in CUTS if re.match(start, said))


def notes_of(run: Mapping[str, Any]) -> str:
    """Where a fork began, and which rounds began with a reset."""
    source = f"forked from {run['forked_from']}@{run['forked_at_round']}"
    resets = f"reset in round {', '.join(map(str, run['resets'] or ()))}"
    found = [source] * bool(run["forked_from"]) + [resets] * bool(run["resets"])
    return ", ".join(found)
