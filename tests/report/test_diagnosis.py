# SPDX-License-Identifier: Apache-2.0
"""Why DPO may not improve: what a store knows, and when it is asked."""

import json
import shutil
from pathlib import Path

import duckdb
import pytest
from running import TRY
from small_history import named

from configs.load import check, load
from report.diagnosis import diagnosis
from report.pages import pages, paired
from stages import rows
from stages.ids import mint
from store.db import Store

CONFIG = {
    "recipe": "dpo",
    "rounds": 2,
    "generate": {"n": 4},
    "update": {
        "init_from": "round_start",
        "reference": "base",
        "steps": {"first": 3},
        "updater": {"type": "dpo", "beta": 0.2, "learning_rate": 2e-5},
    },
}


def dpo_config() -> str:
    config = load(TRY).model_dump(mode="json")
    return json.dumps({**config, **CONFIG, "rationalize": {"enabled": False}})


@pytest.fixture
def preferred(told: Store, tmp_path: Path) -> Store:
    """The small history as if run `one` were DPO: set S1 is a1 against a2, with what it measured.

    Held-out pass@1 is 1/2, 1 and 0.
    """
    store = Store(Path(shutil.copy(told.snapshot(), tmp_path / told.path.name)))
    with duckdb.connect(str(store.path)) as connection:
        connection.execute(
            "update run set recipe = 'dpo', config = ? where name = 'one'", [dpo_config()]
        )
        connection.execute("delete from training_row where kind = 'sft'")
        connection.execute("delete from training_row_trajectory")
    pair = mint("i", "pair")
    key = mint("k", "watched")
    with store.transaction() as tx:
        tx.insert(rows.TrainingRow, [
            rows.TrainingRow(named("S1"), pair, 0, "pair", mint("q", "P1", 0), 1.0, "round", 7, 2)
        ])  # fmt: skip
        tx.insert(rows.TrainingRowTrajectory, [
            rows.TrainingRowTrajectory(named("S1"), pair, named(label), role, None, None)  # type: ignore[arg-type]
            for label, role in (("a1", "chosen"), ("a2", "rejected"))
        ])  # fmt: skip
        tx.insert(rows.TrainingMetric, [
            rows.TrainingMetric(named("U2"), step, name, value)
            for name, values in {"loss": (0.69, 0.69), "rewards/margins": (0.0, 0.125)}.items()
            for step, value in enumerate(values, 1)
        ])  # fmt: skip
        place = {"run_id": mint("r", "one"), "round": 1, "refresh": 0, "step": "watch"}
        tx.append("commit_step", **place, step_key=key, reused=False, wall_s=4.0, work_s=3.0)
        tx.insert(rows.Monitor, [
            rows.Monitor(key, "mixed", "all", 0.25),
            rows.Monitor(key, "kl_reference_k3", "all", 0.0125),
        ])  # fmt: skip
    store.snapshot()
    return store


def test_it_says_what_the_store_knows_of_each_cause(preferred: Store) -> None:
    gain = paired(preferred, ("one", 0), ("one", 2))
    assert gain is not None
    config = check(json.loads(dpo_config()))
    text, head, found = diagnosis(preferred, "one", config, gain)
    assert text.startswith("Held-out pass@1 of the last round against the first: -0.500 (")
    assert {len(row) for row in found} == {len(head)}
    assert [(row[0], row[1], row[2]) for row in found] == [
        ("data", "problems with right and wrong answers", "25% at first, 25% at last"),
        ("data", "pairs a round", "1"),
        ("data", "chosen longer than rejected, tokens", "-1.0"),  # a1 has 3 tokens, a2 has 4
        ("data", "updates since a pair's policy", "2.00"),
        ("hyper-parameters", "β", "0.2"),
        ("hyper-parameters", "learning rate", "2e-05"),
        ("hyper-parameters", "optimizer steps", "6 (s = 3)"),
        ("hyper-parameters", "loss", "sigmoid"),
        ("reference", "which", "base"),
        ("reference", "KL to it at last, nats a token", "0.0125"),
        ("capacity", "parameters", "1, all weights trained"),
        ("capacity", "train loss of the last update", "0.69 → 0.69"),
        ("capacity", "margins of the last update", "0 → 0.125"),
        ("capacity", "chosen log-probability of the last update", "-5 → -4"),
    ]


def test_rounds_that_reset_the_reference_and_an_adapter_are_named(preferred: Store) -> None:
    gain = paired(preferred, ("one", 0), ("one", 2))
    assert gain is not None
    values = json.loads(dpo_config())
    values["update"]["updater"]["lora"] = {"rank": 4}
    with preferred.transaction() as tx:
        for number in (2, 3):
            tx.append(
                "add_event", run_id=mint("r", "one"), round=number, refresh=None, kind="reset",
                message=f"round {number} begins with a reset", detail="{}",
            )  # fmt: skip
    preferred.snapshot()
    found = diagnosis(preferred, "one", check(values), gain)[2]
    said = {row[1]: row[2] for row in found}
    assert said["rounds that reset it"] == "2, 3"
    assert said["parameters"] == "1, an adapter (LoRA)"


def test_a_report_of_a_dpo_run_that_does_not_improve_ends_with_it(preferred: Store) -> None:
    last = pages(preferred, ["one"])[-1]
    assert last.title == "one: Why DPO may not improve"
    assert len(last.rows) == 14


def test_other_recipes_and_runs_that_improve_are_not_diagnosed(
    preferred: Store, finished: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Why DPO" not in pages(finished, ["try"])[-1].title
    monkeypatch.setattr("report.pages.paired", lambda *of: (0.2, 0.05, 0.35, 100))
    assert "Why DPO" not in pages(preferred, ["one"])[-1].title
    monkeypatch.setattr("report.pages.paired", lambda *of: (0.2, 0.0, 0.4, 100))
    assert "Why DPO" in pages(preferred, ["one"])[-1].title
