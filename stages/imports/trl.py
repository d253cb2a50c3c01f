# SPDX-License-Identifier: Apache-2.0
"""`trl`: what GRPOTrainer logs with `log_completions`, and TRL's own data sets.

`completions/completions_NNNNN.parquet` has step, prompt, completion (text or chat messages), one
column for each reward function, whatever `log_extra` added, and advantage. An advantage follows
from the rewards of its group and has no place here. Preference data has prompt, chosen, rejected.
"""

from stages.imports.columns import Columns

FORMAT = Columns(
    name="trl",
    defaults={name: name for name in ("prompt", "completion", "chosen", "rejected")},
    step="step",
    numbers_are_rewards=True,
    no_rewards=("advantage", "__index_level_0__"),
)
