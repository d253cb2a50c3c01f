# SPDX-License-Identifier: Apache-2.0
"""Where a run stands and what comes next: each state by hand."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from report.progress import Standing
from report.status import notes_of, state_of, target_of
from report.text import narrowed
from stages.ids import mint
from store.db import Store

RUN: dict[str, Any] = {
    "name": "one", "recipe": "star", "rounds": 1, "target": 3, "last_event": "gone_on",
    "last_message": "going on at round 2", "last_at": datetime(2026, 1, 2, tzinfo=UTC),
    "stopped": False, "resets": None, "forked_from": None, "forked_at_round": None,
}  # fmt: skip
TYPED = "starloop run a.yaml"


def told(outcome: str | None = None, text: str = "", **fields: Any) -> Standing:
    """What a run of process 7 told last."""
    ended = None if outcome is None else {"outcome": outcome, "code": 1, "text": text}
    at = Standing(run="one", rounds=3, round=2, pid=7, command=TYPED, folder=str(Path.cwd()))
    at.ended, at.stage = ended, "" if ended else "generate"
    for name, value in fields.items():
        setattr(at, name, value)
    return at


@pytest.mark.parametrize(
    ("run", "at", "holder", "word", "why", "next_"),
    [
        ({}, told(), 7, "under way", "round 2 of 3 · generate", "starloop watch one"),
        ({}, told("failed", "x"), 8, "under way", "beginning · process 8", "starloop watch one"),
        ({}, told(), None, "killed", "round 2 of 3 · generate · process 7 is gone", TYPED),
        ({}, told("failed", "UpdaterError: no"), None, "failed", "UpdaterError: no", TYPED),
        ({}, told("held", "held by \x1b a gate"), None, "held", r"held by \x1b a gate", TYPED),
        ({"stopped": True}, told("held", "why"), None, "stopped", "why", TYPED),
        ({}, told("interrupted"), None, "interrupted", "round 2 of 3", TYPED),
        ({}, told("locked", "the store"), None, "failed", "the store", TYPED),
        ({}, told("done"), None, "waiting", "round 2 of 3", TYPED),
        ({"rounds": 3}, told("done"), None, "complete", "", "starloop report one"),
        ({"rounds": 3}, told("failed", "x", rounds=5), None, "failed", "x", TYPED),
        ({"rounds": 3}, None, None, "complete", "", "starloop report one"),
        ({"recipe": "import"}, None, None, "imported", "", "starloop samples one"),
        ({}, None, None, "killed", "no process works on it here", "starloop run CONFIG --name one"),
        ({"last_event": "cut", "last_message": "HeldError: unjudged"}, None, None, "held",
         "HeldError: unjudged", "starloop run CONFIG --name one"),
        ({"last_event": "cut", "last_message": "KeyboardInterrupt: "}, None, None, "interrupted",
         "KeyboardInterrupt: ", "starloop run CONFIG --name one"),
        ({"last_event": "cut", "last_message": "StoreError: full"}, None, None, "failed",
         "StoreError: full", "starloop run CONFIG --name one"),
    ],
)  # fmt: skip
def test_a_state_says_why_and_what_comes_next(
    run: dict[str, Any], at: Standing | None, holder: int | None, word: str, why: str, next_: str
) -> None:
    found = state_of({**RUN, **run}, at, holder)
    assert (found.word, found.next) == (word, next_)
    assert found.why.startswith(why)


def test_the_target_is_the_one_that_was_asked_for_last() -> None:
    assert target_of(RUN, None) == 3
    assert target_of(RUN, told(rounds=8)) == 8


def test_forks_and_resets_are_noted() -> None:
    assert notes_of(RUN) == ""
    run = {**RUN, "forked_from": "other", "forked_at_round": 2, "resets": [3, 5]}
    assert notes_of(run) == "forked from other@2, reset in round 3, 5"


@pytest.mark.parametrize(
    ("width", "head"),
    [(None, "a  bbbb  cccc"), (13, "a  bbbb  cccc"), (12, "a  cccc"), (6, "a"), (1, "a")],
)
def test_a_narrow_table_goes_without_columns(width: int | None, head: str) -> None:
    table = narrowed(["a", "bbbb", "cccc"], [["1", "2", "3"]], width, ["bbbb", "cccc"])
    assert table.splitlines()[0] == head


def test_the_command_loads_no_heavy_package_and_reads_the_copy_alone(tmp_path: Path) -> None:
    heavy = {"torch", "transformers", "trl", "prefect", "pyarrow", "numpy", "datasets", "pandas"}
    store = Store(tmp_path / "store.duckdb")
    store.create()
    with store.transaction() as tx:
        tx.append(
            "begin_run", run_id=mint("r", "one"), name="one", recipe="star",
            config='{"rounds": 3}', identity="{}", manifest="{}", forked_from=None,
            forked_at_round=None,
        )  # fmt: skip
    store.snapshot()
    given = ["starloop", "status", "--json", "--store", str(store.path)]
    code = (
        f"import sys; sys.argv = {given!r}\n"
        "from flows.cli import main\n"
        "try: main()\n"
        f"finally: print(sorted({heavy!r} & set(sys.modules)))"
    )
    with store.transaction():  # shuts all other processes out
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    *rows, loaded = done.stdout.splitlines()
    assert loaded == "[]", done.stderr
    (row,) = map(json.loads, rows)
    assert (row["run"], row["rounds"], row["target"], row["state"]) == ("one", 0, 3, "killed")
