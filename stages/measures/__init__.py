# SPDX-License-Identifier: Apache-2.0
"""What is measured: pass@k and maj@k of one question, and means over questions with intervals.

Counts and plain numbers go in, plain numbers come out; None says that there is too little data.
"""

from stages.measures.intervals import (
    Estimate,
    mean_over_problems,
    paired_difference,
    wilson_interval,
)
from stages.measures.maj_at_k import maj_at_k
from stages.measures.pass_at_k import pass_at_k

__all__ = [
    "Estimate",
    "maj_at_k",
    "mean_over_problems",
    "paired_difference",
    "pass_at_k",
    "wilson_interval",
]
