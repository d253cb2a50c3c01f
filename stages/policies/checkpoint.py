# SPDX-License-Identifier: Apache-2.0
"""Checkpoint folders: content id, COMPLETE marker, publishing by rename, tokenizer.

A checkpoint is an ordinary Hugging Face folder. Its id hashes what makes the model: weights,
tokenizer, chat template and config, never a path. It counts only with its COMPLETE marker,
which lists every file's size and hash and is written last.
"""

import hashlib
import json
import os
import shutil
from functools import lru_cache
from pathlib import Path
from typing import Any

from stages.errors import ConfigError, UpdaterError
from stages.ids import Id, hash_text, mint
from stages.rows import Model
from stages.settings import canonical
from stages.shards import sync_folder

MARKER = "COMPLETE"
_TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
)
_VOLATILE = ("transformers_version", "_name_or_path")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def model_id_of(folder: Path) -> Id:
    """The content id of a checkpoint folder."""
    parts = [f"config.json={hash_text(canonical(_config(folder)))}"]
    named = [folder / name for name in _TOKENIZER if (folder / name).exists()]
    for path in sorted([*folder.glob("*.safetensors"), *named]):
        stat = path.stat()
        parts.append(f"{path.name}={_cached_hash(path, stat.st_size, stat.st_mtime_ns)}")
    return mint("m", hash_text(",".join(parts)))


def tokenizer_hash(folder: Path) -> str:
    """SHA-256 over the tokenizer and chat template of a checkpoint folder."""
    named = [folder / name for name in _TOKENIZER if (folder / name).exists()]
    return hash_text(",".join(f"{path.name}={_sha256(path)}" for path in named))


@lru_cache(maxsize=256)
def _cached_hash(path: Path, size: int, mtime_ns: int) -> str:
    return _sha256(path)


def _config(folder: Path) -> dict[str, Any]:
    config = json.loads((folder / "config.json").read_text())
    return {key: value for key, value in config.items() if key not in _VOLATILE}


def model_row(folder: Path, origin: Any, relative_to: Path) -> Model:
    """The store's row for a checkpoint folder; its path is written relative where it can be."""
    architectures = _config(folder).get("architectures") or ["unknown"]
    inside = folder.is_relative_to(relative_to)
    return Model(
        model_id=model_id_of(folder),
        origin=origin,
        architecture=architectures[0],
        parameters=parameters(folder),
        base_model_id=None,
        path=str(folder.relative_to(relative_to) if inside else folder.resolve()),
    )


def parameters(folder: Path) -> int:
    """Number of parameters, read from the headers of the weight files."""
    from math import prod

    total = 0
    for path in folder.glob("*.safetensors"):
        with path.open("rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        total += sum(prod(t["shape"]) for name, t in header.items() if name != "__metadata__")
    return total


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
        str(path.relative_to(folder)): {"bytes": path.stat().st_size, "sha256": _sha256(path)}
        for path in files
    }
    partial = folder / f"{MARKER}.tmp"
    with partial.open("w") as file:
        json.dump(listing, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(folder / MARKER)
    sync_folder(folder)


def is_complete(folder: Path) -> bool:
    """Whether a folder has its marker and every file the marker lists, whole."""
    try:
        listing = json.loads((folder / MARKER).read_text())
        return bool(listing) and all(
            (folder / name).stat().st_size == entry["bytes"]
            and _sha256(folder / name) == entry["sha256"]
            for name, entry in listing.items()
        )
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
