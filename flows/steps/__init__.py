# SPDX-License-Identifier: Apache-2.0
"""The steps of a round: look up, run the stage, commit once. One file each, as in `stages/`.

Prefect schedules and shows; the store remembers. A step's key names its stage, the stage's
version (the number in its file, raised by hand), what it was given, and the identity config.
"""

from flows.steps.admit import admit
from flows.steps.evaluate import evaluate
from flows.steps.generate import generate
from flows.steps.hand_over import hand_over
from flows.steps.mix import mix
from flows.steps.rationalize import rationalize
from flows.steps.score import score
from flows.steps.setup import setup
from flows.steps.update import update
from flows.steps.verify import verify
from flows.steps.watch import watch

__all__ = [
    "admit",
    "evaluate",
    "generate",
    "hand_over",
    "mix",
    "rationalize",
    "score",
    "setup",
    "update",
    "verify",
    "watch",
]
