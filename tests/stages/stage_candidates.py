# SPDX-License-Identifier: Apache-2.0
"""Candidates for a mix, and what became of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from stage_rows import STEP, a_problem, a_prompt, a_trajectory

from stages.mix import Candidate, Mix, MixConfig, mix

ALL = MixConfig(dedup="none", seed_rows=99)
TEXTS = [
    "1+2=12;#12",
    "1+2 = 12;#12",
    "1+2=12;#12 ",
    "other;#12",
    "#12",
    "1+11=12;#12",
    "so 1+11=12 #12",
]
ORIGINS = {
    "round": ["self"],
    "rationalized": ["rationalized"],
    "earlier": ["self", "rationalized"],
    "seed": ["seed"],
}


def a_candidate(
    text: str = "1+2=12;#12", slot: int = 0, problem: int = 1, source: Any = "round", **changes: Any
) -> Candidate:
    """A right answer; origin and sampled prompt are those of its source."""
    origin = changes.pop("origin", ORIGINS[source][0])
    status = changes.pop("status", "correct")
    plain = a_prompt(a_problem(problem))
    sampled = a_prompt(a_problem(problem), hinted=True) if origin == "rationalized" else plain
    trajectory = a_trajectory(sampled, text, slot, origin=origin, **changes)
    return Candidate(trajectory, source, status, 1.0 if status == "correct" else 0.0, plain)


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    """Candidates of all kinds, some that must never train."""
    found = []
    for slot in range(draw(st.integers(0, 12))):
        source = draw(st.sampled_from(sorted(ORIGINS)))
        candidate = a_candidate(
            draw(st.sampled_from(TEXTS)),
            slot,
            draw(st.integers(1, 3)),
            source,
            origin=draw(st.sampled_from(ORIGINS[source])),
            status=draw(st.sampled_from(["correct", "correct", "correct", "wrong", "unjudged"])),
            finish_reason=draw(st.sampled_from(["stop", "stop", "stop", "length"])),
        )
        if draw(st.sampled_from([False, False, False, True])):
            hinted = a_prompt(a_problem(1), hinted=True)
            candidate = replace(candidate, prompt=hinted)
        found.append(candidate)
    return found


configs = st.builds(
    MixConfig,
    seed_rows=st.integers(0, 3),
    cap_per_problem=st.none() | st.integers(1, 3),
    dedup=st.sampled_from(["none", "exact", "normalised", "equations"]),
    check_equations=st.booleans(),
    max_rationalized_share=st.none() | st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.75, 1.0]),
    max_tokens=st.none() | st.integers(1, 60),
)


def kept_of(found: Sequence[Candidate], mixed: Mix) -> list[Candidate]:
    """The candidates behind the training rows, in training order."""
    known = {c.trajectory.trajectory_id: c for c in found}
    by_row = {link.training_row_id: known[link.trajectory_id] for link in mixed.trajectories}
    return [by_row[row.training_row_id] for row in mixed.rows]


def reasons(found: Sequence[Candidate], config: MixConfig, seed: int = 0) -> list[str]:
    """Why each candidate was kept or left out, in the order given."""
    why = {d.trajectory_id: d.why for d in mix(found, config, seed, STEP).decisions}
    return [why[c.trajectory.trajectory_id] for c in found]
