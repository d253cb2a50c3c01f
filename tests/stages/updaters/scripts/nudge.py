# SPDX-License-Identifier: Apache-2.0
"""A trainer that takes a moment: it nudges the start's weights by what it read, or misbehaves.

`--do` says how: `train`, or a fault by name.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file


def read(path: Path) -> list[dict[str, Any]]:
    if path.is_dir():
        from datasets import load_from_disk

        return list(load_from_disk(path))
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows
    return [json.loads(line) for line in path.read_text().splitlines()]


def train(given: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """The weights of the start, each moved by something that depends on all there is."""
    said = json.dumps([rows, given.seed, given.steps], default=str)
    by = int(hashlib.sha256(said.encode()).hexdigest()[:6], 16) / 2**24 + 0.1
    weights = load_file(given.init / "model.safetensors")
    moved = {name: np.asarray(t + np.float32(by)) for name, t in weights.items()}
    shutil.copy(given.init / "config.json", given.out)
    save_file(moved, given.out / "model.safetensors", metadata={"format": "pt"})
    with (given.out / "metrics.jsonl").open("w") as file:
        for step in range(1, given.steps + 1):
            file.write(json.dumps({"step": step, "loss": by / step, "note": "fine"}) + "\n")
    counts = [row["training_row_id"] for row in rows]
    batch = [counts[n % len(counts)] for n in range(given.steps * given.batch)]
    (given.out / "visits.json").write_text(json.dumps({i: batch.count(i) for i in counts}))


def linger(given: argparse.Namespace) -> None:
    """Start a child that would run on, and wait."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pids = given.work / "pids.tmp"
    pids.write_text(f"{os.getpid()} {child.pid}")
    pids.rename(given.work / "pids")
    time.sleep(600)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("data", "init", "out", "work", "reference"):
        parser.add_argument(f"--{name}", type=Path)
    for name in ("steps", "seed", "batch"):
        parser.add_argument(f"--{name}", type=int, default=1)
    parser.add_argument("--do", default="train")
    given = parser.parse_args()
    assert not list(given.out.iterdir())
    print(f"to {given.do}", flush=True)
    rows = read(given.data)
    if given.do == "fail":
        raise SystemExit("the disk\nis full")
    if given.do == "die":
        os.abort()
    if given.do == "linger":
        linger(given)
    if given.do in ("nothing", "adapter"):
        name = "adapter_config.json" if given.do == "adapter" else "notes.txt"
        (given.out / name).write_text("{}")
        return
    train(given, rows)
    model = given.out / "model.safetensors"
    if given.do == "no visits":
        (given.out / "visits.json").unlink()
        (given.out / "metrics.jsonl").unlink()
    if given.do == "untrained":
        shutil.copy(given.init / model.name, model)
    if given.do == "halved":
        save_file(
            {n: t.astype(np.float16) for n, t in load_file(given.init / model.name).items()},
            model, metadata={"format": "pt"},
        )  # fmt: skip
    if given.do in ("partial", "reshaped", "added", "no numbers"):
        weights = load_file(model)
        name = max(weights)
        if given.do == "partial":
            weights = {name: weights[name]}
        if given.do == "reshaped":
            weights[name] = np.concatenate([weights[name], weights[name]])
        if given.do == "added":
            weights["model.new.weight"] = np.ones(3, np.float32)
        if given.do == "no numbers":
            weights[name] = weights[name] * np.float32("nan")
        save_file(weights, model, metadata={"format": "pt"})
    if given.do == "deeper":
        config = json.loads((given.out / "config.json").read_text())
        config["num_hidden_layers"] += 1
        (given.out / "config.json").write_text(json.dumps(config))
    if given.do == "broken config":
        (given.out / "config.json").write_text("{")
    if given.do == "over the start":
        shutil.copy(model, given.init / model.name)
    if given.do == "torn":
        model.write_bytes(model.read_bytes()[:-100])
    if given.do == "renamed":
        save_file({f"module.{n}": t for n, t in load_file(model).items()}, model)
    if given.do == "no config":
        (given.out / "config.json").unlink()
    if given.do == "strange visits":
        (given.out / "visits.json").write_text(json.dumps({"nobody": 1}))
    if given.do == "half visits":
        (given.out / "visits.json").write_text(json.dumps({rows[0]["training_row_id"]: 2.5}))
    if given.do == "one visited":
        (given.out / "visits.json").write_text(json.dumps({rows[0]["training_row_id"]: 3}))
    if given.do == "bad metrics":
        (given.out / "metrics.jsonl").write_text("loss 0.5\n")
    if given.do == "too many":
        (given.out / "metrics.jsonl").write_text(json.dumps({"step": given.steps + 1}) + "\n")
    if given.do == "own tokenizer":
        (given.out / "tokenizer.json").write_text("{}")
        (given.out / "optimizer.safetensors").write_bytes(b"")
    if given.do == "resume":
        times = given.work / "times"
        times.write_text(times.read_text() + "again" if times.exists() else "once")
        if times.read_text() == "once":
            raise SystemExit(1)


if __name__ == "__main__":
    main()
