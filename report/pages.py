# SPDX-License-Identifier: Apache-2.0
"""Reports of runs: sections of text and tables, written as text or as Markdown."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from configs.load import check, differences
from report.diagnosis import LAST, TITLE, diagnosis
from report.imports import import_section
from report.rounds import (
    RoundLine,
    cells,
    columns,
    header,
    is_self_improvement,
    round_lines,
    slices_of,
)
from report.runs import newest_run
from report.text import markdown_table, text_table
from stages.measures import paired_difference
from store.db import Store
from store.transaction import read


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, sentences, and a table (head and rows, maybe empty)."""

    title: str
    text: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def pages(store: Store, names: Sequence[str]) -> list[Section]:
    """A section per run, then how each later run compares with the first."""
    with store.reader() as connection:
        runs = [newest_run(connection, name) for name in names or (None,)]
        found = {name: read(connection, "run_by_name", name=name)[0] for name in runs}
        imports = [name for name in runs if found[name]["recipe"] == "import"]
        sections = [_import_section(connection, found[name]) for name in imports]
    runs = [name for name in runs if name not in imports]
    configs = {name: check(json.loads(found[name]["config"])) for name in runs}
    lines = {name: round_lines(store, name) for name in runs}
    sections += [_run_section(found[name], configs[name], lines[name]) for name in runs]
    for name in runs:
        rows = _gains(store, name, lines[name])
        if rows:
            title = f"{name}: against its base"
            sections.append(Section(title, "The same questions, paired.", GAIN_HEAD, rows))
        sections += [*hint_sections(store, name), *_resets(store, name)]
    for other in runs[1:]:
        changed, operational = differences(configs[runs[0]], configs[other])
        keys = [*changed, *(line for line in operational if not line.startswith("rounds:"))]
        text = "differ in " + ("; ".join(keys) if keys else "nothing")
        rows = _against(store, runs[0], other, lines)
        sections.append(
            Section(f"{other} against {runs[0]}", f"The configs {text}.", GAIN_HEAD, rows)
        )
    for name in runs:
        sections += _diagnosis(store, name, configs[name], lines[name])
    return sections


Strata = Mapping[float, Mapping[Any, float]]  # pass@1 of each question, by difficulty

CONTROL = (
    "A control arm: training saw another reward than the verifier's, which measures. What it gains "
    "is no effect of right answers being rewarded."
)
GAIN_HEAD = ("round", "pass@1 difference", "95 % interval, paired", "questions")


def _import_section(connection: Any, run: Mapping[str, Any]) -> Section:
    (event,) = read(connection, "import_detail", run=run["name"])
    page = import_section(json.loads(run["config"]), json.loads(event["detail"]))
    return Section(run["name"], *page)


def _run_section(run: Mapping[str, Any], config: Any, lines: Sequence[RoundLine]) -> Section:
    slices = slices_of(lines)
    kind = (
        "Nothing is trained yet."
        if not any(line.shares for line in lines)
        else "Self-improvement: every trained row was made by the run's own policies."
        if is_self_improvement(lines)
        else "Not self-improvement alone: the last column names rows from elsewhere."
    )
    what = (
        "Held-out pass@1 is the mean over difficulties (d1, d2 …), with its 95 % interval over "
        "questions; d1 all is every problem of that difficulty, in whatever split. Rationalized: "
        "this round's rows, and in brackets the share of all such rows in its training set."
    )
    fork = (
        f"Forked from {run['forked_from_name']} at round {run['forked_at_round']}: its rounds up "
        "to there are that run's.\n"
        if run["forked_from_name"]
        else ""
    )
    control = f"{CONTROL}\n" if config.reward else ""
    rows = [cells(line, slices) for line in lines]
    text = f"{header(config)}\n{control}{fork}{kind} {what}"
    return Section(run["name"], text, columns(lines), rows)


def hint_sections(store: Store, name: str) -> list[Section]:
    """What the hint brought, by round and difficulty; nothing where no problem was hinted."""
    with store.reader() as connection:
        found = read(connection, "hint_yield", run=name)
    rows = [
        [
            str(row["round"]),
            "–" if row["difficulty"] is None else f"{row['difficulty']:g}",
            f"{row['tried']:,}",
            f"{row['kept']:,}",
            f"{row['kept'] / row['tried']:.0%}",
            str(row["leaks"]),
        ]
        for row in found
    ]
    head = ("round", "difficulty", "failed, tried with the hint", "kept", "share", "leaks")
    title = f"{name}: what the hint brought"
    return [Section(title, "Kept: right, and no hint shows.", head, rows)] if rows else []


def _resets(store: Store, name: str) -> list[Section]:
    """The rounds that began with reference and optimizer anew; nothing where none did."""
    with store.reader() as connection:
        found = read(connection, "resets", run=name, round=LAST)
    rows = [[str(row["round"]), row["message"].partition(": ")[2]] for row in found]
    title, text = f"{name}: resets", "The reference is the model that such a round began with."
    return [Section(title, text, ("round", "why"), rows)] if rows else []


def _gains(store: Store, name: str, lines: Sequence[RoundLine]) -> list[list[str]]:
    """Each round against round 0 of the same run."""
    rounds = [line.summary["round"] for line in lines if line.summary["round"] > 0]
    values = held_out(store, name)
    return [_difference(number, values.get(0, {}), values.get(number, {})) for number in rounds]


def _diagnosis(store: Store, name: str, config: Any, lines: Sequence[RoundLine]) -> list[Section]:
    """What may hold a DPO run back, where its last measure does not lie above its first."""
    measured = [s["round"] for line in lines if (s := line.summary)["pass_at_1"] is not None]
    if config.recipe != "dpo" or len(measured) < 2:
        return []
    gain = paired(store, (name, measured[0]), (name, measured[-1]))
    if gain is None or gain[1] > 0:
        return []
    return [Section(f"{name}: {TITLE}", *diagnosis(store, name, config, gain))]


def _against(
    store: Store, first: str, other: str, lines: Mapping[str, Sequence[RoundLine]]
) -> list[list[str]]:
    """Each round that both runs have, the other's minus the first's."""
    rounds = [{line.summary["round"] for line in lines[name]} for name in (first, other)]
    values = [held_out(store, name) for name in (first, other)]
    return [
        _difference(number, *(each.get(number, {}) for each in values))
        for number in sorted(rounds[0] & rounds[1])
    ]


def _difference(number: int, one: Strata, other: Strata) -> list[str]:
    found = difference(one, other)
    label = "base" if number == 0 else str(number)
    if found is None:
        return [label, "–", "–", "0"]
    value, low, high, questions = found
    return [label, f"{value:+.3f}", f"{low:+.3f} – {high:+.3f}", str(questions)]


def paired(
    store: Store, one: tuple[str, int], other: tuple[str, int]
) -> tuple[float, float, float, int] | None:
    """Paired difference of pass@1 between two (run, round): value, low, high, questions."""
    values = {run: held_out(store, run) for run in (one[0], other[0])}
    return difference(*(values[run].get(number, {}) for run, number in (one, other)))


def held_out(store: Store, run: str) -> Mapping[int, Strata]:
    """Pass@1 of each held-out question of a run, by round."""
    rounds: dict[int, dict[float, dict[Any, float]]] = {}
    with store.reader() as connection:
        for row in read(connection, "eval_values", run=run):
            strata = rounds.setdefault(row["round"], {})
            strata.setdefault(row["difficulty"] or 0.0, {})[row["problem_id"]] = row["value"]
    return rounds


def difference(one: Strata, other: Strata) -> tuple[float, float, float, int] | None:
    """The second less the first on their common questions: value, low, high, questions."""
    shared = sorted(one.keys() & other.keys())
    if not shared:
        return None
    found = paired_difference([one[d] for d in shared], [other[d] for d in shared])
    return None if found is None else (found.value, found.low, found.high, found.n)


def as_text(sections: Sequence[Section]) -> str:
    """The sections for a terminal."""
    return "\n\n".join(f"{s.title}\n{s.text}\n\n{text_table(s.head, s.rows)}" for s in sections)


def as_markdown(sections: Sequence[Section]) -> str:
    """The sections as a Markdown page."""
    return (
        "\n\n".join(
            f"## {s.title}\n\n{s.text}\n\n{markdown_table(s.head, s.rows)}" for s in sections
        )
        + "\n"
    )
