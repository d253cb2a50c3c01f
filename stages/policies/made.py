# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that a policy makes itself: made once, found again by a note beside them."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from stages.policies.checkpoint import is_complete, publish


def made_once(models: Path, name: str, make: Callable[[Path], None]) -> Path:
    """The complete checkpoint that `make` writes into an empty folder, below `models`.

    `name` says what it is made of. The note `NAME.json` holds the id of the checkpoint; while
    that folder is complete, it is used and `make` is not called.
    """
    note = models / f"{name}.json"
    if note.exists():
        folder = models / str(json.loads(note.read_text())["model_id"])
        if is_complete(folder):
            return folder
    draft = models / f"{name}.{os.getpid()}.tmp"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        make(draft)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    folder = publish(draft, models)
    partial = note.with_suffix(f".{os.getpid()}.tmp")
    partial.write_text(json.dumps({"model_id": folder.name}))
    partial.rename(note)
    return folder
