# SPDX-License-Identifier: Apache-2.0
"""The files between a command and us: its rows; what it measured, how often it visited, its result.

The result is a checkpoint folder: what transformers loads (config, weights) is taken, and nothing
else that lies there.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from stages.errors import UpdaterError
from stages.ids import Id
from stages.policies.checkpoint import lacking, weight_files
from stages.policies.weights import tensors, unlike
from stages.updaters.base import Item, Progress, Rows

Format = Literal["parquet", "jsonl", "datasets"]
METRICS = "metrics.jsonl"
VISITS = "visits.json"
TAKEN = ("config.json", "generation_config.json", "model.safetensors.index.json")


def write_rows(items: Sequence[Item], kind: Rows, format_: Format, folder: Path) -> Path:
    """One row for each item, as text and as tokens: a file, or a folder of `datasets`."""
    rows = [_row(item, kind) for item in items]
    path = folder / ("data" if format_ == "datasets" else f"data.{format_}")
    if format_ == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    elif format_ == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        from datasets import Dataset

        shutil.rmtree(path, ignore_errors=True)
        Dataset.from_list(rows).save_to_disk(path)
    return path


def _row(item: Item, kind: Rows) -> dict[str, Any]:
    prompt, *answers = item.texts
    told = {"training_row_id": str(item.training_row_id), "prompt": prompt}
    tokens: dict[str, Any] = {"prompt_ids": item.prompt_ids}
    sides = ("chosen", "rejected") if kind == "pair" else ("completion",)
    both = zip(sides, answers, (item.completion_ids, item.rejected_ids), strict=False)
    for side, text, ids in both:
        told[side] = text
        tokens[f"{side}_ids"] = ids
    if kind != "pair":
        tokens["loss_mask"] = item.loss_mask or (True,) * len(item.completion_ids)
        tokens["reward"] = item.reward
    if item.advantage is not None:
        tokens |= {"advantage": item.advantage, "logprobs": item.logprobs}
    for side, value in zip(sides, item.reference, strict=False):
        tokens[f"reference_{side}_logprob"] = value
    return told | tokens


class Metrics:
    """What a command writes down as it trains: one object with `step` and numbers on each line."""

    def __init__(self, folder: Path, steps: int, progress: Progress) -> None:
        self._path, self._steps, self._progress = folder / METRICS, steps, progress
        self._read, self._lines = 0, 0
        self._found: dict[tuple[int, str], float] = {}

    def read(self, ended: bool = False) -> None:
        """Take in the whole lines that are new, and say how far it is; `ended`: the rest too."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        whole = new if ended else new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            self._lines += 1
            if line.strip():
                self._take(line)

    @property
    def series(self) -> list[tuple[int, str, float]]:
        """All of it: step, name, value; the last line that names both counts."""
        return [(step, name, value) for (step, name), value in self._found.items()]

    def _take(self, line: bytes) -> None:
        at = f"{self._path} line {self._lines}"
        try:
            entry = json.loads(line)
            step = entry.pop("step")
        except (ValueError, KeyError, AttributeError, TypeError):
            raise UpdaterError(
                f"{at} is {line[:80]!r}: write one object on each line, such as "
                '{"step": 1, "loss": 0.5}'
            ) from None
        if not isinstance(step, int) or not 1 <= step <= self._steps:
            raise UpdaterError(
                f"{at}: step is {step!r}, of {self._steps} planned: count optimizer steps from 1, "
                "and take as many as {steps} says"
            )
        for name, value in entry.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                self._found[step, name] = float(value)
        self._progress(step, self._found.get((step, "loss")))


def visits(folder: Path, items: Sequence[Item]) -> dict[Id, int]:
    """How often each row was visited: once, or what the command's file says, 0 if it does not."""
    path = folder / VISITS
    if not path.exists():
        return {item.training_row_id: 1 for item in items}
    ours = {str(item.training_row_id): item.training_row_id for item in items}
    try:
        said = json.loads(path.read_text())
        wrong = [f"{id_}: {n!r}" for id_, n in said.items() if not _counts(n) or id_ not in ours]
    except (ValueError, AttributeError):
        said, wrong = {}, [path.read_text(errors="replace")[:80]]
    if wrong:
        raise UpdaterError(
            f"{path} has {wrong[0]!r}: write one object of training_row_id (as in the data) and "
            "visits, whole numbers from 0 on"
        )
    return {id_: said.get(text, 0) for text, id_ in ours.items()}


def _counts(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def fault(made: Path, start: Path) -> str | None:
    """Why a folder is no checkpoint that the start was trained to, with the fix; None if it is."""
    if (made / "adapter_config.json").exists():
        return "is an adapter: merge it into the start (merge_and_unload) and save the whole model"
    return lacking(made) or _weights_fault(made, start)


def _weights_fault(made: Path, start: Path) -> str | None:
    from safetensors import SafetensorError

    try:
        with tensors(start) as before, tensors(made) as after:
            shared = [name for name in after if name in before]
            if not shared:
                return (
                    f"has none of the start's weights by name (it has {min(after, default='none')})"
                    ": save the trained model itself with save_pretrained"
                )
            if (other := unlike(made, start)) is not None:
                return f"{other}: save the whole trained model with save_pretrained"
            if any(_differ(before[name](), after[name]()) for name in shared):
                return None
    except SafetensorError as error:
        return f"has torn weights ({error}): save them whole, once, from one process"
    return "has the start's own weights, none has changed: save the model that was trained"


def _differ(was: Any, is_: Any) -> bool:
    import torch

    return not torch.equal(was.to(is_.dtype), is_)


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of a checkpoint's files, by name."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    return {path.name: ((stat := path.stat()).st_size, stat.st_mtime_ns) for path in files}


def take(made: Path, draft: Path) -> None:
    """Move what makes the model."""
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    paths = [*weight_files(made), *(made / name for name in TAKEN)]
    for path in paths:
        if path.exists():
            shutil.move(path, draft / path.name)
