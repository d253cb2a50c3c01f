# SPDX-License-Identifier: Apache-2.0
"""Every updater through the same cases. A new one needs a line in SETTINGS."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from plug_ins import in_folder, in_union, type_of
from pydantic import ValidationError
from training_items import items_for
from transformers import AutoModelForCausalLM

from stages import updaters
from stages.errors import UpdaterError
from stages.ids import Id
from stages.policies.checkpoint import is_complete, load_tokenizer, model_id_of
from stages.update import update
from stages.updaters import Item, Plan

UPDATERS = in_folder(updaters)
NUDGE = [
    *(sys.executable, str(Path(__file__).parent / "updaters" / "scripts" / "nudge.py")),
    *("--data={data}", "--init={start}", "--out={out}", "--work={work}", "--steps={steps}"),
    *("--seed={seed}", "--batch=4"),
]
TRL = {"batch_size": 4, "learning_rate": 0.01, "warmup_steps": 1}
SETTINGS: dict[str, dict[str, Any]] = {
    "command": {"batch_size": 4, "command": NUDGE},
    "dpo": TRL,
    "grpo": TRL,
    "kto": TRL,
    "sft": TRL,
    "simpo": TRL,
    "tally": {"batch_size": 4},
}
STEPS = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an update left."""

    folder: Path
    steps_done: int
    visits: Mapping[Id, int]
    loss: float | None
    said: list[tuple[int, float | None]]


def run(
    name: str, init: Path, place: Path, items: Sequence[Item] | None = None, seed: int = 5
) -> Outcome:
    """An update of STEPS steps in a folder of its own; the start is the reference too."""
    models = place / "models"
    models.mkdir(parents=True)
    said: list[tuple[int, float | None]] = []
    config = UPDATERS[name](type=name, **SETTINGS[name])
    reference = init if config.needs_reference else None
    plan = Plan(STEPS, seed, init, place / "work", place / "draft", reference=reference)
    given = items_for(config.rows) if items is None else items
    folder, trained = update(
        given, config.build(), plan, models, lambda step, loss: said.append((step, loss))
    )
    return Outcome(folder, trained.steps_done, trained.visits, trained.loss, said)


@pytest.fixture(scope="module", params=UPDATERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def outcome(name: str, tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run(name, tiny_folder, tmp_path_factory.mktemp(name))


def test_every_updater_file_is_in_the_union() -> None:
    assert set(UPDATERS.values()) == in_union(updaters.UpdaterConfig)
    assert UPDATERS.keys() == SETTINGS.keys()


def test_a_config_is_strict_frozen_and_named_by_its_file(name: str) -> None:
    config = UPDATERS[name](type=name, **SETTINGS[name])
    assert type_of(type(config)) == (name,)
    assert config.build().name == name
    assert config.build().deterministic == (name != "command")
    assert config.rows in ("sft", "pair", "rollout")
    with pytest.raises(ValidationError, match="frozen"):
        config.type = name
    with pytest.raises(ValidationError, match="Extra inputs"):
        type(config)(type=name, **SETTINGS[name], unheard_of=1)
    with pytest.raises(ValidationError, match="greater than"):
        type(config)(type=name, **{**SETTINGS[name], "batch_size": 0})


def test_an_update_leaves_a_complete_checkpoint_that_loads(outcome: Outcome) -> None:
    assert is_complete(outcome.folder)
    assert outcome.folder.name == str(model_id_of(outcome.folder))
    model = AutoModelForCausalLM.from_pretrained(outcome.folder, local_files_only=True)
    assert model.get_input_embeddings().num_embeddings == len(load_tokenizer(outcome.folder))


def test_an_update_leaves_another_model_and_the_start_as_it_was(
    outcome: Outcome, tiny_folder: Path
) -> None:
    assert model_id_of(outcome.folder) != model_id_of(tiny_folder)
    assert is_complete(tiny_folder)


@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
def test_the_tokenizer_stays_byte_for_byte(outcome: Outcome, tiny_folder: Path, file: str) -> None:
    assert (outcome.folder / file).read_bytes() == (tiny_folder / file).read_bytes()


def test_every_step_is_done_and_said(outcome: Outcome) -> None:
    assert outcome.steps_done == STEPS
    assert [step for step, _ in outcome.said] == list(range(1, STEPS + 1))


def test_visits_are_batches_times_steps_of_known_rows(outcome: Outcome) -> None:
    assert outcome.visits.keys() == {item.training_row_id for item in items_for("sft")}
    # 4 steps of 4 rows go twice through 8 rows
    assert sum(outcome.visits.values()) == STEPS * 4
    assert set(outcome.visits.values()) == {2}


def test_the_same_again_is_the_same_model(
    name: str, outcome: Outcome, tiny_folder: Path, tmp_path: Path
) -> None:
    again = run(name, tiny_folder, tmp_path)
    assert again.folder.name == outcome.folder.name
    assert (again.visits, again.loss, again.said) == (outcome.visits, outcome.loss, outcome.said)


def test_another_seed_is_another_model(
    name: str, outcome: Outcome, tiny_folder: Path, tmp_path: Path
) -> None:
    assert run(name, tiny_folder, tmp_path, seed=6).folder.name != outcome.folder.name


def test_other_items_of_the_same_size_are_another_model(
    name: str, outcome: Outcome, tiny_folder: Path, tmp_path: Path
) -> None:
    kind = UPDATERS[name](type=name, **SETTINGS[name]).rows
    others = items_for(kind, first=100, step=-1)
    assert run(name, tiny_folder, tmp_path, others).folder.name != outcome.folder.name


def test_no_rows_are_an_error(name: str, tiny_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UpdaterError, match="no row to train on"):
        run(name, tiny_folder, tmp_path, [])
    assert list((tmp_path / "models").iterdir()) == []


def test_an_update_goes_on_from_an_update(name: str, outcome: Outcome, tmp_path: Path) -> None:
    further = run(name, outcome.folder, tmp_path)
    assert further.folder.name != outcome.folder.name
    assert is_complete(further.folder) and is_complete(outcome.folder)


def test_an_updater_that_hands_on_its_optimizer_leaves_it_whole(
    name: str, tiny_folder: Path, tmp_path: Path
) -> None:
    config = UPDATERS[name](type=name, **SETTINGS[name])
    if not config.carries_optimizer:
        pytest.skip("it keeps no optimizer")
    plan = Plan(
        STEPS, 5, tiny_folder, tmp_path / "work", tmp_path / "draft",
        state=tmp_path / "state", reference=tiny_folder,
    )  # fmt: skip
    config.build().update(items_for(config.rows), plan, lambda step, loss: None)
    assert is_complete(tmp_path / "state")
    assert not list((tmp_path / "state").glob("*.safetensors"))
