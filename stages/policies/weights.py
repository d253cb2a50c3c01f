# SPDX-License-Identifier: Apache-2.0
"""The weights in a checkpoint folder, a tensor at a time: what is no number, what does not fit."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from stages.policies.checkpoint import weight_files

SHAPED = (
    *("model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"),
    *("num_attention_heads", "num_key_value_heads", "head_dim"),
)
EXPONENTS = {  # how to read a float's bits, and those of its exponent
    "F64": ("<u8", np.uint64(0x7FF0000000000000)),
    "F32": ("<u4", np.uint32(0x7F800000)),
    "F16": ("<u2", np.uint16(0x7C00)),
    "BF16": ("<u2", np.uint16(0x7F80)),
}
Tensors = Mapping[str, Callable[[], Any]]


@contextmanager
def tensors(folder: Path) -> Iterator[Tensors]:
    """How to read each tensor of a checkpoint, by name; SafetensorError where a file is torn."""
    from safetensors import safe_open

    with ExitStack() as files:
        found: dict[str, Callable[[], Any]] = {}
        for path in weight_files(folder):
            file = files.enter_context(safe_open(path, "pt"))
            found |= {name: _reader(file, name) for name in file.keys()}  # noqa: SIM118
        yield found


def no_number(folder: Path) -> str | None:
    """The first tensor of a checkpoint that holds NaN or infinity, None where none does.

    The bits are read as they lie in the file (no torch, no copy of a model in memory): a float
    whose exponent is all ones is no number (IEEE 754, section 3.4; the same in bfloat16).
    """
    for path in weight_files(folder):
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size))
        data = np.memmap(path, np.uint8, "r", 8 + size) if path.stat().st_size > 8 + size else ()
        for name, tensor in sorted(header.items()):
            if tensor.get("dtype") in EXPONENTS:
                kind, mask = EXPONENTS[tensor["dtype"]]
                bits = np.asarray(data[slice(*tensor["data_offsets"])]).view(kind)
                if bool(((bits & mask) == mask).any()):
                    return str(name)
    return None


def unlike(made: Path, start: Path) -> str | None:
    """Why a checkpoint is not of the start's kind: its config, the names and shapes of weights.

    A tensor that is equal to another of the same checkpoint may be left out or saved too (tied).
    """
    try:
        was, now = (json.loads((folder / "config.json").read_text()) for folder in (start, made))
    except ValueError as error:
        return f"has a broken config.json ({error})"
    for field in SHAPED:
        if was.get(field) != now.get(field):
            return f"has {field} {now.get(field)} in its config.json, the start {was.get(field)}"
    with tensors(start) as before, tensors(made) as after:
        for name in before:
            if name not in after and not _tied(name, before):
                return f"lacks the start's {name}"
        for name, read in after.items():
            if name not in before and not _tied(name, after):
                return f"has {name}, which the start has not"
            if name in before and (one := read().shape) != (other := before[name]().shape):
                return f"has {name} of shape {[*one]}, the start {[*other]}"
    return None


def _tied(name: str, found: Tensors) -> bool:
    """Whether another tensor of the checkpoint is equal to it."""
    import torch

    one = found[name]()
    return any(
        other != name and (value := read()).shape == one.shape and torch.equal(value, one)
        for other, read in found.items()
    )


def _reader(file: Any, name: str) -> Callable[[], Any]:
    return lambda: file.get_tensor(name)
