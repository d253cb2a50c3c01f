# SPDX-License-Identifier: Apache-2.0
"""The program that trains with the `sft` updater and tells each step: step, then loss.

Arguments: the start's checkpoint, the folder for training checkpoints, the number of steps. At
the end it tells the model's id and the visits of each row.
"""

import json
import os
import sys
import time
import warnings
from pathlib import Path

from stages import ids
from stages.policies.checkpoint import load_tokenizer, model_id_of
from stages.tasks import addition
from stages.updaters import Item, Plan, sft

SAVE_EVERY = 4
PAUSE_S = 0.03  # after each step, so that a kill meets the one it is meant for


def items(start: Path) -> list[Item]:
    """Worked sums of two digits: more rows than a batch, and no multiple of it."""
    tokenizer = load_tokenizer(start)

    def tokens(text: str) -> tuple[int, ...]:
        return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])

    return [
        Item(ids.mint("i", place), tokens(f"{shown.prompt}\n"), tokens(shown.completion))
        for place, shown in enumerate(addition.examples(2, 29, False, 0))
    ]


def main(start: Path, work: Path, steps: int) -> None:
    """Train, and go on where an earlier try was cut."""
    warnings.simplefilter("ignore")
    config = sft.Config(type="sft", batch_size=8, save_every=SAVE_EVERY, warmup_steps=2)
    plan = Plan(steps=steps, seed=7, init=start, work=work, draft=work.with_name("draft"))

    def progress(step: int, loss: float | None) -> None:
        os.write(1, f"step {step} {loss!r}\n".encode())
        time.sleep(PAUSE_S)

    done = config.build().update(items(start), plan, progress)
    visits = json.dumps([done.visits[key] for key in sorted(done.visits)])
    os.write(1, f"model {model_id_of(plan.draft)}\nvisits {visits}\n".encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
