# SPDX-License-Identifier: Apache-2.0
"""All that a report of runs shows: their rows, figures and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from report.evidence import Evidence, evidence
from report.figures import FIGURES
from report.figures.base import Figure
from report.figures.compare import compared
from report.pages import Section
from report.runs import newest_run
from store.db import Store
from store.transaction import read


@dataclass(frozen=True, slots=True)
class Told:
    """A run, and its figures by name."""

    evidence: Evidence
    figures: Mapping[str, Figure]

    @property
    def name(self) -> str:
        """The run's name."""
        return self.evidence.name


@dataclass(frozen=True, slots=True)
class Report:
    """Runs with their figures (imports have none), all in one figure, and the tables."""

    runs: Sequence[Told]
    together: Figure | None
    sections: Sequence[Section]

    @property
    def topics(self) -> dict[str, str]:
        """The figures that a run has, with their headings, in order."""
        shown = {name for run in self.runs for name in run.figures}
        named = {draw.__name__: heading for heading, draw in FIGURES.items()}
        return {name: heading for name, heading in named.items() if name in shown}


def gather(store: Store, names: Sequence[str], sections: Sequence[Section]) -> Report:
    """The report of runs (the newest if none is named) whose tables are `sections`."""
    with store.reader() as connection:
        runs = dict.fromkeys(newest_run(connection, name) for name in names or (None,))
        recipes = {row["name"]: row["recipe"] for row in read(connection, "run_list")}
    found = [evidence(store, name) for name in runs if recipes[name] != "import"]
    told = [
        Told(each, {f.name: f for draw in FIGURES.values() if (f := draw(each))}) for each in found
    ]
    return Report(told, compared(found), sections)
