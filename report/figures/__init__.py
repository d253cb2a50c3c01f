# SPDX-License-Identifier: Apache-2.0
"""The figures of a report. A new one is a function in a file here, and a line below.

A figure takes what the store holds of a run and gives a picture with its numbers, or None where the
run has nothing to show.
"""

from collections.abc import Callable

from report.evidence import Evidence
from report.figures import accuracy, lineage, monitors, problems
from report.figures.base import Figure

Draw = Callable[[Evidence], Figure | None]

FIGURES: dict[str, Draw] = {  # by the heading of their section
    "Accuracy": accuracy.accuracy,
    "By difficulty": accuracy.difficulty,
    "Lineage": lineage.lineage,
    "Mix": lineage.mix,
    "By domain": accuracy.domains,
    "Problems": problems.journey,
    "Hints": problems.hints,
    "Verdicts": problems.verdicts,
    "By answer length": accuracy.lengths,
    "Reward": monitors.reward,
    "Answer length": monitors.length,
    "Entropy": monitors.entropy,
    "Groups": monitors.groups,
    "KL": monitors.kl,
    "Faults": monitors.faults,
    "Cost": monitors.costs,
}
