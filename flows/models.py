# SPDX-License-Identifier: Apache-2.0
"""A model that a config names: by its id in the store, or by a folder; and where one lies."""

from collections.abc import Callable
from pathlib import Path

from stages.errors import ConfigError, StoreError
from stages.ids import Id
from stages.policies.checkpoint import is_complete, model_id_of, model_row, tokenizer_hash
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


def checkpoint_at(store: Store, model: Model, outside: Callable[[], Path]) -> Path:
    """The folder of a model of the store; StoreError where it does not hold that model.

    `outside` gives the folder of a model from elsewhere that is not where it was.
    """
    folder = store.folder / model.path
    if not folder.exists():
        _refuse_freed(store, model.model_id, folder)
    if model.origin == "update" and not is_complete(folder):
        raise StoreError(
            f"checkpoint {folder} is missing or torn, and this run needs it: put it back, "
            "or start a run under another --name"
        )
    if model.origin == "outside" and not folder.is_dir():
        folder = outside()
    found = model_id_of(folder) if (folder / "config.json").is_file() else "no model"
    if found != model.model_id:
        raise StoreError(
            f"checkpoint {folder} holds {found}, and this run needs model {model.model_id}: its "
            "files were changed or replaced; put them back, or start a run under another --name"
        )
    return folder


def _refuse_freed(store: Store, model_id: Id, folder: Path) -> None:
    with store.transaction() as tx:
        freed = tx.ask("freed_last", model=str(model_id))
    if freed:
        raise StoreError(
            f"checkpoint {folder} was freed at {freed[0]['happened_at']:%Y-%m-%d %H:%M} by "
            "`keep`: put it back, or fork from a round whose checkpoint is still there"
        )


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
