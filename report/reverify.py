# SPDX-License-Identifier: Apache-2.0
"""Who flipped under another verifier, and which training sets and models that touches."""

import io
from collections.abc import Sequence
from typing import Any

from report.pages import Section
from report.query import answer
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
        held_out = read(connection, "held_out_rejudged", **asked)
    turned = sum(row["n"] for row in counts if row["was"] != row["now"])
    total = sum(row["n"] for row in counts)
    return [
        Section(
            f"{run}: judged anew",
            f"{turned:,} of {total:,} verdicts turned; in SQL: "
            f"{_flipped_in_sql(run, verifier_id)}.",
            ("answers", "was", "now", "count"),
            _matrix(counts),
        ),
        Section(
            "Held-out pass@1",
            "The mean over difficulties, as in the round table; unjudged answers are left out.",
            ("round", "was", "now", "questions", "answers"),
            [_held_out(row) for row in held_out],
        ),
        *_flips(flipped, turned),
        *_touched(touched),
    ]


def flips(store: Store, run: str, verifier_id: Id, format_: str) -> bytes:
    """Who flipped, a row each, as CSV or JSON."""
    out = io.BytesIO()
    answer(store, _flipped_in_sql(run, verifier_id), format_, out)
    return out.getvalue()


def _flipped_in_sql(run: str, verifier_id: Id) -> str:
    return f"from rejudged('{run}', '{verifier_id}') where flipped"


def _matrix(counts: Sequence[dict[str, Any]]) -> list[list[str]]:
    sums: dict[tuple[str, str, str], int] = {}
    for row in counts:
        key = (SAYS.get(row["purpose"], row["purpose"]), row["was"], row["now"])
        sums[key] = sums.get(key, 0) + row["n"]
    return [[*key, f"{n:,}"] for key, n in sorted(sums.items())]


def _held_out(row: dict[str, Any]) -> list[str]:
    label = "base" if row["round"] == 0 else str(row["round"])
    shares = ["–" if row[when] is None else f"{row[when]:.3f}" for when in ("was", "now")]
    return [label, *shares, f"{row['questions']:,}", f"{row['answers']:,}"]


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
