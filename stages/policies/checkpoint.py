# SPDX-License-Identifier: Apache-2.0
"""Checkpoint folders: content id, COMPLETE marker, publishing by rename, tokenizer.

A checkpoint is an ordinary Hugging Face folder. Its id hashes what makes the model: weights,
tokenizer, chat template and config, never a path. It counts only with its COMPLETE marker,
which lists every file's size and hash and is written last. The id of a merged adapter hashes its
base's id and the adapter's files, which its note `merged.json` lists, for as long as the folder
holds what was merged.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stages.errors import ConfigError, UpdaterError
from stages.ids import Id, hash_text, mint
from stages.policies.hashes import file_hashes
from stages.rows import Model
from stages.settings import canonical
from stages.sync import sync_folder

MARKER = "COMPLETE"
MERGED = "merged.json"
_INDEX = "model.safetensors.index.json"
_TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
)
_VOLATILE = ("transformers_version", "_name_or_path")


def model_id_of(folder: Path, *, anew: bool = False) -> Id:
    """The content id of a checkpoint folder; `anew` reads files whose hashes are remembered."""
    content = _content(folder, anew)
    note = _merged(folder)
    return mint("m", content if note.get("content") != content else _adapter_hash(note))


def _content(folder: Path, anew: bool = False) -> str:
    """SHA-256 over config, weights, tokenizer and chat template."""
    parts = [f"config.json={hash_text(canonical(_config(folder)))}"]
    named = [folder / name for name in _TOKENIZER if (folder / name).exists()]
    paths = sorted([*folder.glob("*.safetensors"), *named])
    hashes = file_hashes(paths, anew=anew)
    parts += [f"{path.name}={found}" for path, found in zip(paths, hashes, strict=True)]
    return hash_text(",".join(parts))


def tokenizer_hash(folder: Path) -> str:
    """SHA-256 over the tokenizer and chat template of a checkpoint folder."""
    named = [folder / name for name in _TOKENIZER if (folder / name).exists()]
    hashes = file_hashes(named)
    return hash_text(",".join(f"{p.name}={h}" for p, h in zip(named, hashes, strict=True)))


def note_merged(folder: Path, base: Id, adapter: Mapping[str, str]) -> None:
    """Write down what a merged checkpoint was made of: base id, and the adapter's file hashes."""
    note = {"base_model_id": str(base), "adapter": dict(adapter), "content": _content(folder)}
    (folder / MERGED).write_text(json.dumps(note, indent=1))


def _merged(folder: Path) -> dict[str, Any]:
    """The note of a merged checkpoint; empty where there is none."""
    path = folder / MERGED
    found = json.loads(path.read_text()) if path.exists() else {}
    return found if isinstance(found, dict) else {}


def _adapter_hash(note: dict[str, Any]) -> str:
    return hash_text(canonical({key: note[key] for key in ("base_model_id", "adapter")}))


def _config(folder: Path) -> dict[str, Any]:
    config = json.loads((folder / "config.json").read_text())
    return {key: value for key, value in config.items() if key not in _VOLATILE}


def model_row(folder: Path, origin: Any, relative_to: Path) -> Model:
    """The store's row for a checkpoint folder; its path is written relative where it can be."""
    architectures = _config(folder).get("architectures") or ["unknown"]
    inside = folder.is_relative_to(relative_to)
    model_id, note = model_id_of(folder), _merged(folder)
    adapted = bool(note) and model_id == mint("m", _adapter_hash(note))
    return Model(
        model_id=model_id,
        origin=origin,
        architecture=architectures[0],
        parameters=parameters(folder),
        base_model_id=Id(note["base_model_id"]) if adapted else None,
        path=str(folder.relative_to(relative_to) if inside else folder.resolve()),
    )


def parameters(folder: Path) -> int:
    """Number of parameters, read from the headers of the weight files."""
    from math import prod

    total = 0
    for path in weight_files(folder):
        with path.open("rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        total += sum(prod(t["shape"]) for name, t in header.items() if name != "__metadata__")
    return total


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files that transformers loads: one, or the shards that the index names."""
    single, index = folder / "model.safetensors", folder / _INDEX
    if single.exists() or not index.exists():
        return [single] if single.exists() else sorted(folder.glob("*.safetensors"))
    return [folder / n for n in sorted(set(json.loads(index.read_text())["weight_map"].values()))]


def lacking(folder: Path) -> str | None:
    """What keeps a folder from being a checkpoint, with the fix; None where nothing does."""
    if not (folder / "config.json").is_file():
        return (
            "is no checkpoint folder (config.json is missing): name a folder with config.json, "
            "*.safetensors and tokenizer.json"
        )
    try:
        weights = weight_files(folder)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"has a broken {_INDEX} ({error}): get that file again"
    absent = [path.name for path in weights if not path.is_file()]
    if absent:
        return f"lacks {absent[0]}, which {_INDEX} names: get the whole model"
    pickled = sorted(path.name for path in folder.glob("pytorch_model*.bin"))
    if not weights and pickled:
        return (
            f"has {pickled[0]} but no *.safetensors: pickled weights may run code as they are "
            "read; load the model once and save it with save_pretrained"
        )
    return None if weights else "has no *.safetensors: save the weights with save_pretrained"


def context_length(folder: Path) -> int | None:
    """Positions that a checkpoint's model has, None where its config does not say."""
    config = _config(folder)
    found = config.get("max_position_embeddings", config.get("text_config", {}).get(
        "max_position_embeddings"))  # fmt: skip
    return found if isinstance(found, int) else None


def mark_complete(folder: Path) -> None:
    """Sync every file of a folder and write its COMPLETE marker, last."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MARKER)
    for path in files:
        with path.open("rb") as file:
            os.fsync(file.fileno())
    listing = {
        str(path.relative_to(folder)): {"bytes": path.stat().st_size, "sha256": found}
        for path, found in zip(files, file_hashes(files), strict=True)
    }
    partial = folder / f"{MARKER}.tmp"
    with partial.open("w") as file:
        json.dump(listing, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(folder / MARKER)
    sync_folder(folder)


def is_complete(folder: Path, *, anew: bool = False) -> bool:
    """Whether a folder has its marker and every file the marker lists, whole.

    `anew` reads files whose hashes are remembered.
    """
    try:
        listing = json.loads((folder / MARKER).read_text())
        paths = [folder / name for name in listing]
        if any(
            path.stat().st_size != listing[n]["bytes"]
            for n, path in zip(listing, paths, strict=True)
        ):
            return False
        found = file_hashes(paths, anew=anew)
        return bool(listing) and found == [entry["sha256"] for entry in listing.values()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def publish(draft: Path, models: Path) -> Path:
    """Mark a finished draft complete and rename it to `models/ID`; returns that folder."""
    if not (draft / "config.json").exists() or not list(draft.glob("*.safetensors")):
        raise UpdaterError(
            f"the checkpoint {draft} has no config.json or no *.safetensors: the update left "
            "nothing to go on from; see its log, then run again"
        )
    folder = models / str(model_id_of(draft))
    if is_complete(folder):
        shutil.rmtree(draft)
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    models.mkdir(parents=True, exist_ok=True)
    mark_complete(draft)
    try:
        draft.rename(folder)
    except OSError:
        if not is_complete(folder):
            raise
        shutil.rmtree(draft)
    sync_folder(models)
    return folder


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a checkpoint; ConfigError where it lacks one, or an end or pad token."""
    if not (folder / "tokenizer.json").exists():
        sentencepiece = [n for n in ("tokenizer.model", "spiece.model") if (folder / n).exists()]
        if sentencepiece:
            raise ConfigError(
                f"policy {folder} has {sentencepiece[0]} but no tokenizer.json: load it once with "
                "AutoTokenizer, which converts it, and save it with save_pretrained"
            )
        raise ConfigError(
            f"policy {folder} has no tokenizer.json: save the tokenizer into the folder "
            "(tokenizer.save_pretrained), a policy is weights and tokenizer together"
        )
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    for token in ("eos_token", "pad_token"):
        if getattr(tokenizer, token) is None:
            raise ConfigError(
                f"policy {folder} has no {token}: set it in tokenizer_config.json; without it "
                "the end of a completion cannot be told from padding"
            )
    if tokenizer.chat_template is None:
        raise ConfigError(
            f"policy {folder} has no chat template: save one as chat_template.jinja; prompts are "
            "written with it"
        )
    return tokenizer


def copy_tokenizer(source: Path, target: Path) -> None:
    """Copy the tokenizer and chat template byte for byte, so that they keep their hashes."""
    for name in _TOKENIZER:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)
