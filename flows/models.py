# SPDX-License-Identifier: Apache-2.0
"""A model that a config names: by its id in the store, or by a folder."""

from pathlib import Path

from stages.errors import ConfigError
from stages.ids import Id
from stages.policies.checkpoint import model_id_of, model_row, tokenizer_hash
from stages.rows import Model
from store.db import Store


def named_model(store: Store, name: str) -> Id:
    """The id of a model of the store, or of the one in a folder, which gets its row now."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        found = model_id_of(folder)
        with store.transaction() as tx:
            tx.insert(Model, [model_row(folder, "outside", store.folder)])
        return found
    with store.transaction() as tx:
        rows = tx.ask("models_like", prefix=name)
    if len(rows) != 1:
        what = "names no model of this store" if not rows else f"names {len(rows)} models"
        raise ConfigError(
            f"model:{name} {what}: give a folder, or an id as `starloop lineage` shows it"
        )
    model: Id = rows[0]["model_id"]
    return model


def check_same_kind(store: Store, model: Id, folder: Path, other: Path, field: str) -> None:
    """ConfigError where two checkpoints differ in architecture or tokenizer."""
    one, two = (model_row(each, "outside", store.folder) for each in (folder, other))
    told: list[tuple[str, str, str]] = [
        ("architecture", one.architecture, two.architecture),
        ("tokenizer", tokenizer_hash(folder), tokenizer_hash(other)),
    ]
    for what, found, wanted in told:
        if found != wanted:
            raise ConfigError(
                f"{field}: model {model} has another {what} than the policy ({found} and {wanted}"
                "): name a model of the policy's own kind"
            )
