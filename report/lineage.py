# SPDX-License-Identifier: Apache-2.0
"""The lineage of a run's last checkpoint as text."""

from report.runs import newest_run
from report.text import text_table
from stages.errors import StoreError
from store.db import Store
from store.transaction import read


def last_checkpoint(store: Store, run: str | None) -> str:
    """What trained the last checkpoint by round, origin and policy, and the models it rests on."""
    with store.reader() as connection:
        name = newest_run(connection, run)
        trained = read(connection, "trained_by_last", run=name)
        if not trained:
            raise StoreError(
                f"run {name} has no trained checkpoint yet: let it finish a round, or "
                "name another run"
            )
        model_id = trained[0]["model_id"]
        ancestors = read(connection, "ancestry_of", model_id=model_id)
    rows = [
        [
            "base" if row["origin_round"] == 0 else str(row["origin_round"]),
            row["origin"],
            str(row["policy_id"] or "–"),
            f"{row['trajectories']:,}",
            f"{row['visits']:,}",
            f"{row['tokens']:,}",
        ]
        for row in trained
    ]
    head = ["round", "origin", "sampled by policy", "trajectories", "visits", "tokens trained"]
    models = [[str(a["depth"]), str(a["ancestor_id"]), a["origin"], a["path"]] for a in ancestors]
    return "\n".join(
        [
            f"last checkpoint of run {name}: {model_id}",
            "",
            "trained on",
            text_table(head, rows),
            "",
            "rests on",
            text_table(["depth", "model", "origin", "folder"], models),
        ]
    )
