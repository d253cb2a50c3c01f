# SPDX-License-Identifier: Apache-2.0
"""docs/notebook.py: every cell runs on a finished run, answers from the copy, holds up no run."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pages import DOCS
from running import ask, clean_environment

from store.db import Store

NOTEBOOK = DOCS / "notebook.py"


@pytest.fixture(scope="module")
def defined(finished: Path) -> dict[str, Any]:
    """What the notebook's cells define, once all have run."""
    import os

    os.environ["STARLOOP_STORE"] = str(finished)
    try:
        spec = importlib.util.spec_from_file_location("notebook", NOTEBOOK)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _, found = module.app.run()
    finally:
        del os.environ["STARLOOP_STORE"]
    return {**found, "drawn": module.curve}


def test_every_cell_runs_and_shows_the_newest_run(defined: dict[str, Any], finished: Path) -> None:
    assert defined["run"].value == "try"
    stored = ask(finished, "select round, pass_at_1 from round_summary order by round")
    assert [(row["round"], row["pass_at_1"]) for row in defined["rounds"]] == stored


def test_a_checkpoint_a_fate_and_sql_are_answered(defined: dict[str, Any], finished: Path) -> None:
    assert [row["depth"] for row in defined["rests_on"]] == [1, 1]
    visits = ask(finished, "select sum(visits) from training_visit v join training_update u "
                           "using (update_id) join step_output s on s.id = u.update_id "
                           "where s.round = 2")  # fmt: skip
    assert sum(row["visits"] for row in defined["trained"]) == visits[0][0]
    (fate,) = defined["fate"]
    assert fate["kept"] and fate["models"] >= 1
    assert len(defined["answer"]) > 3


def test_the_curve_has_a_point_with_its_interval_for_each_round(defined: dict[str, Any]) -> None:
    drawn = defined["drawn"](defined["rounds"])
    assert drawn.count("<circle") == 3
    assert drawn.count("<line ") == 3


def test_the_store_can_be_written_while_the_notebook_is_open(
    defined: dict[str, Any], finished: Path
) -> None:
    with Store(finished, patience_s=0.0).transaction() as tx:
        assert tx.ask("run_list")
    assert defined["db"].sql("select count(*) from run").fetchall() == [(1,)]


@pytest.mark.slow
def test_it_is_exported_as_a_page(finished: Path, tmp_path: Path) -> None:
    page = tmp_path / "notebook.html"
    done = subprocess.run(
        [sys.executable, "-m", "marimo", "export", "html", str(NOTEBOOK), "-o", str(page)],
        env=clean_environment(STARLOOP_STORE=str(finished), HOME=str(tmp_path)),
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert "What became of a trajectory" in text
    assert "MarimoExceptionRaisedError" not in text
