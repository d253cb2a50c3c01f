# SPDX-License-Identifier: Apache-2.0
"""A bare TRL script as people have it: prompt and completion as text, trained for some steps."""

import argparse
import json
from pathlib import Path

from datasets import load_from_disk
from trl import SFTConfig, SFTTrainer

parser = argparse.ArgumentParser()
for name in ("data", "init", "out", "work"):
    parser.add_argument(f"--{name}", type=Path)
for name in ("steps", "seed"):
    parser.add_argument(f"--{name}", type=int)
given = parser.parse_args()

trainer = SFTTrainer(
    model=str(given.init),
    args=SFTConfig(
        output_dir=str(given.work),
        max_steps=given.steps,
        seed=given.seed,
        learning_rate=1e-2,
        per_device_train_batch_size=4,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
    ),
    train_dataset=load_from_disk(given.data).select_columns(["prompt", "completion"]),
)
trainer.train()
trainer.save_model(str(given.out))
logged = [entry for entry in trainer.state.log_history if "loss" in entry]
(given.out / "metrics.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in logged))
