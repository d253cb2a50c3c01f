# SPDX-License-Identifier: Apache-2.0
"""`verl`: what `trainer.rollout_data_dir` gets, one JSONL file for each step.

A line has input and output (decoded without special tokens), gts (the reference), score, step,
and further numbers of the reward function.
"""

from stages.imports.columns import Columns

FORMAT = Columns(
    name="verl",
    defaults={"prompt": "input", "completion": "output", "answer": "gts", "reward": "score"},
    step="step",
    numbers_are_rewards=True,
    kinds=("rollouts", "demonstrations", "problems"),
)
