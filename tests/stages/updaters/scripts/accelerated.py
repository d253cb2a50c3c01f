# SPDX-License-Identifier: Apache-2.0
"""A plain loop for `accelerate launch`: tokens as they are, one process of several saves."""

import argparse
import json
from pathlib import Path

import pyarrow.parquet as pq
import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM

parser = argparse.ArgumentParser()
for name in ("data", "init", "out"):
    parser.add_argument(f"--{name}", type=Path)
parser.add_argument("--steps", type=int)
given = parser.parse_args()

accelerator = Accelerator(cpu=True)
rows = pq.read_table(given.data).to_pylist()
mine = rows[accelerator.process_index :: accelerator.num_processes]
model = AutoModelForCausalLM.from_pretrained(given.init, dtype=torch.float32)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
model, optimizer = accelerator.prepare(model, optimizer)
metrics = []
for step in range(1, given.steps + 1):
    row = mine[step % len(mine)]
    ids = torch.tensor([row["prompt_ids"] + row["completion_ids"]])
    labels = torch.tensor([[-100] * len(row["prompt_ids"]) + row["completion_ids"]])
    loss = model(input_ids=ids, labels=labels).loss
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    metrics.append({"step": step, "loss": float(accelerator.gather(loss.detach()).mean())})
print(f"process {accelerator.process_index} of {accelerator.num_processes} is done", flush=True)
if accelerator.is_main_process:
    accelerator.unwrap_model(model).save_pretrained(given.out)
    (given.out / "metrics.jsonl").write_text("".join(f"{json.dumps(m)}\n" for m in metrics))
accelerator.end_training()
