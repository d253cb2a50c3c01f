# SPDX-License-Identifier: Apache-2.0
"""Small files as other tools write them, one for each format, and reading them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from stages.imports import FORMATS, Kind, Reading
from stages.imports.files import records_of

Records = list[dict[str, Any]]


def node(parent: int | None, role: str, text: str, ids: list[int], **more: Any) -> dict[str, Any]:
    """A node of a prime-rl trace; without `sampled` all its tokens are prompt."""
    message = {"role": role, "content": text}
    given = {"parent": parent, "message": message, "sampled": False, "token_ids": ids}
    return {**given, "mask": [False] * len(ids), "logprobs": [], **more}


def trace(**more: Any) -> dict[str, Any]:
    """A trace of one turn: 7 8 is the question, 9 opens the reply, 10 11 is sampled."""
    return {
        "id": "t",
        "nodes": [
            node(None, "user", "1+1?", [7, 8], timestamp=1.0),
            node(0, "assistant", "2", [9, 10, 11], sampled=True, mask=[False, True, True],
                 logprobs=[-0.5, -0.25], advantages=[1.0, 1.0]),
        ],
        "calls": [{"node": 1, "finish_reason": "stop"}],
        "rewards": {"right": {"score": 1.0, "weight": 2.0}, "short": {"score": 0.5}},
        "metrics": {"turns": 1.0},
        "ok": True,
        "timing": {"start": 1.0},
        **more,
    }  # fmt: skip


def episode(*traces: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An episode of traces, in group g."""
    task = {"type": "Sum", "data": {"prompt": "1+1?", "answer": "2"}}
    found = {"id": "e", "env": {"id": "sums"}, "task": task, "group": {"id": "g"}, "ok": True}
    return {**found, "traces": list(traces), **more}


SAMPLES: dict[str, Records] = {
    "trl": [
        {"step": 3, "prompt": "1+1=", "completion": "2", "right": 1.0, "advantage": 0.7},
        {"step": 3, "prompt": "1+1=", "completion": "3", "right": 0.0, "advantage": -0.7},
    ],
    "verl": [
        {"input": "1+1=", "output": "2", "gts": "2", "score": 1.0, "step": 3, "uid": "a"},
        {"input": "1+1=", "output": "3", "gts": "2", "score": 0.0, "step": 3, "uid": "b"},
    ],
    "prime-rl": [episode(trace()), episode(trace())],
    "jsonl": [
        {"prompt": "1+1=", "completion": "2", "reward": 1, "group": "x", "id": 1},
        {"prompt": "1+1=", "completion": "3", "reward": 0, "group": "x", "id": 2},
    ],
}


def jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    """The records as JSONL."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def parquet(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    """The records as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(list(records)), path)
    return path


def read(path: Path, format_: str, kind: Kind = "rollouts", **mapping: str) -> Reading:
    """The file's rows."""
    return FORMATS[format_].read(records_of(path), kind, mapping)
