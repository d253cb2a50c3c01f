# SPDX-License-Identifier: Apache-2.0
"""Training items of every kind, for tests of updaters."""

from stages import ids
from stages.updaters import Item


def items_for(rows: str, first: int = 0, step: int = 1) -> list[Item]:
    """Eight items of a kind, the first numbered `first`; `step` −1 turns completions round."""
    return [
        Item(
            ids.mint("i", first + n),
            (1, 5, 6 + n),
            (7, 8 + n, *range(9, 9 + n), 2)[::step],
            rejected_ids=(20 + n, 2) if rows == "pair" else (),
            reward=float(n % 2) if rows == "rollout" else None,
            reference={"sft": (), "rollout": (-9.0 - n,), "pair": (-9.0 - n, -8.0)}[rows],
            texts=("1+2", "=3", "=4")[: 3 if rows == "pair" else 2],
            advantage=(-1.0) ** n if rows == "rollout" else None,
            logprobs=(-2.0,) * (3 + n) if rows == "rollout" else None,
            temperature=1.0 if rows == "rollout" else None,
        )
        for n in range(8)
    ]
