# SPDX-License-Identifier: Apache-2.0
"""Figures of a benchmark: a value against its bar, printed as a table and written as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from report.text import text_table

RESULTS = Path(__file__).resolve().parent / "results"
VERDICT = {True: "holds", False: "MISSED", None: "–"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value against its bar; `holds` is None where there is no bar."""

    value: float | str
    unit: str
    bar: str | None = None
    holds: bool | None = None
    against: str | None = None
    seeds: Sequence[int] = (0,)


def show_and_write(name: str, figures: Mapping[str, Figure]) -> None:
    """Print the figures and write `benchmarks/results/NAME.json`."""
    head = ["figure", "value", "bar", "against", ""]
    rows = [
        [label, f"{f.value} {f.unit}".strip(), f.bar or "–", f.against or "–", VERDICT[f.holds]]
        for label, f in figures.items()
    ]
    print(text_table(head, rows))
    RESULTS.mkdir(parents=True, exist_ok=True)
    values = {label: asdict(f) for label, f in figures.items()}
    (RESULTS / f"{name}.json").write_text(json.dumps(values, indent=1))
