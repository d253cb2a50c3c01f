# SPDX-License-Identifier: Apache-2.0
"""Dynamic sampling: further problems are tried while too few groups have different rewards.

Yu et al. 2025 (DAPO, arXiv 2503.14476, section 3.2). Each turn samples and judges under a key of
its own, so a killed round goes on from the turn that it was in.
"""

from collections.abc import Iterator

from flows.candidates import read_candidates
from flows.context import Round
from flows.steps.base import turned
from flows.steps.generate import problems_of
from stages.groups import mixed_groups


def tries(r: Round) -> Iterator[int]:
    """The turns at a refresh's problems: one, and more until `wanted` groups may train."""
    config = r.run.config.mix.groups
    yield 0
    for turn in range(1, config.tries):
        if not _begun(r, turn):
            found = mixed_groups(read_candidates(r).candidates, config)
            left = len(problems_of(r, turn))
            if found >= (config.wanted or 0) or left < r.run.config.refreshes_of(r.number):
                return
            r.run.screen.say(
                f"round {r.number}: {found} of {config.wanted} groups can train, further problems "
                f"are tried (try {turn + 1} of {config.tries})"
            )
        yield turn


def _begun(r: Round, turn: int) -> bool:
    """Whether a turn was sampled before: its answers must not count against itself."""
    with r.run.store.transaction() as tx:
        return bool(tx.ask("step_committed", **r.place, step=turned("generate", turn)))
