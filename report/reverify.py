# SPDX-License-Identifier: Apache-2.0
"""Who flipped under another verifier, and which training sets and models that touches."""

from collections.abc import Sequence
from typing import Any

from report.pages import Section
from report.text import visible
from stages.ids import Id
from store.db import Store
from store.transaction import read

SHOWN = 20
SAYS = {"train": "answers", "rationalize": "rationalized", "eval": "held-out answers"}


def reverify_sections(store: Store, run: str, verifier_id: Id) -> list[Section]:
    """The matrix of old and new verdicts, held-out accuracy, flips, and what they touch."""
    asked: dict[str, Any] = {"run": run, "verifier_id": verifier_id}
    with store.reader() as connection:
        counts = read(connection, "verdict_flips", **asked)
        flipped = read(connection, "flipped", **asked, count=SHOWN)
        touched = read(connection, "flips_touch", **asked)
    turned = sum(row["n"] for row in counts if row["was"] != row["now"])
    total = sum(row["n"] for row in counts)
    return [
        Section(
            f"{run}: judged anew",
            f"{turned:,} of {total:,} verdicts turned; in SQL: "
            f"from rejudged('{run}', '{verifier_id}') where flipped.",
            ("answers", "was", "now", "count"),
            _matrix(counts),
        ),
        Section(
            "Held-out answers that are right",
            "Unjudged ones count as wrong.",
            ("round", "was", "now", "answers"),
            _held_out(counts),
        ),
        *_flips(flipped, turned),
        *_touched(touched),
    ]


def _matrix(counts: Sequence[dict[str, Any]]) -> list[list[str]]:
    sums: dict[tuple[str, str, str], int] = {}
    for row in counts:
        key = (SAYS.get(row["purpose"], row["purpose"]), row["was"], row["now"])
        sums[key] = sums.get(key, 0) + row["n"]
    return [[*key, f"{n:,}"] for key, n in sorted(sums.items())]


def _held_out(counts: Sequence[dict[str, Any]]) -> list[list[str]]:
    rows = []
    for number in sorted({row["round"] for row in counts if row["purpose"] == "eval"}):
        mine = [row for row in counts if row["round"] == number and row["purpose"] == "eval"]
        n = sum(row["n"] for row in mine)
        right = [
            sum(row["n"] for row in mine if row[when] == "correct") / n for when in ("was", "now")
        ]
        label = "base" if number == 0 else str(number)
        rows.append([label, *(f"{share:.3f}" for share in right), f"{n:,}"])
    return rows


def _flips(flipped: Sequence[dict[str, Any]], turned: int) -> list[Section]:
    if not flipped:
        return []
    rows = [
        [
            str(row["trajectory_id"]),
            str(row["round"]),
            f"{row['was']} ({row['was_reason']})",
            f"{row['now']} ({row['now_reason']})",
            visible(row["question"])[:40],
            visible(row["answer"])[:20],
            visible(row["now_extracted"] or row["was_extracted"] or "–")[:20],
            str(row["trained"]),
        ]
        for row in flipped
    ]
    head = ("trajectory", "round", "was", "now", "question", "answer", "found", "trained models")
    return [Section("Who flipped", f"The first {len(rows)} of {turned:,}.", head, rows)]


def _touched(touched: Sequence[dict[str, Any]]) -> list[Section]:
    if not touched:
        return [Section("What that touches", "No training set holds a flipped row.", (), ())]
    rows = [
        [
            row["run"],
            str(row["round"]),
            f"now {row['now']}",
            f"{row['rows']:,}",
            f"{row['trained']:,}",
            str(row["training_set_id"]),
            str(row["model_id"] or "–"),
        ]
        for row in touched
    ]
    head = ("run", "round", "flipped to", "rows", "visited", "training set", "model")
    text = "Rows of each set that flipped, and those among them that the optimizer visited."
    return [Section("What that touches", text, head, rows)]
