# SPDX-License-Identifier: Apache-2.0
"""Trajectories and a verifier to verdicts.

A cut-off completion is `wrong` (truncated). What could not be judged is tried again, and every
try is a verdict of its own.
"""

from collections.abc import Mapping, Sequence

from stages import ids
from stages.errors import HeldError
from stages.ids import Id
from stages.rows import Problem, Trajectory, Verdict, VerdictComponent, Verifier
from stages.verifiers.base import Judgement, VerifierPart

RETRIES = 3


def verifier_row(verifier: VerifierPart) -> Verifier:
    """The store's row for a verifier."""
    row_id = ids.verifier_id(verifier.name, verifier.version, verifier.config)
    return Verifier(row_id, verifier.name, verifier.version, verifier.config)


def verify(
    trajectories: Sequence[Trajectory], problems: Mapping[Id, Problem], verifier: VerifierPart
) -> tuple[list[Verdict], list[VerdictComponent]]:
    """All verdicts, tries that ended `unjudged` included, and the parts of their scores."""
    row = verifier_row(verifier)
    verdicts: list[Verdict] = []
    components: list[VerdictComponent] = []
    for trajectory in trajectories:
        reference = problems[trajectory.problem_id].answer
        for attempt in range(1 + RETRIES):
            judgement = _judge(trajectory, reference, verifier)
            verdict = _verdict(trajectory, row.verifier_id, attempt, judgement, verifier)
            verdicts.append(verdict)
            components += [
                VerdictComponent(verdict.verdict_id, name, value, weight)
                for name, value, weight in judgement.components
            ]
            if judgement.status != "unjudged":
                break
    return verdicts, components


def final_verdicts(verdicts: Sequence[Verdict]) -> dict[Id, Verdict]:
    """The last verdict of each trajectory."""
    return {v.trajectory_id: v for v in sorted(verdicts, key=lambda v: v.attempt)}


def hold_unjudged(verdicts: Sequence[Verdict], most: float, number: int) -> None:
    """HeldError where more than the share `most` of a round's answers could not be judged."""
    final = final_verdicts(verdicts)
    unjudged = [v for v in final.values() if v.status == "unjudged"]
    if len(unjudged) > most * len(final):
        raise HeldError(
            f"round {number} is held: {len(unjudged)} of {len(final)} answers could not be "
            f"judged ({unjudged[0].reason}), gates.max_unjudged allows {most:.0%}: mend the "
            "verifier or the references and run again, or raise the gate"
        )


def _judge(trajectory: Trajectory, reference: str, verifier: VerifierPart) -> Judgement:
    if trajectory.finish_reason == "length":
        return Judgement("wrong", 0.0, None, "truncated")
    return verifier.judge(reference, trajectory.completion)


def _verdict(
    trajectory: Trajectory, verifier_id: Id, attempt: int, found: Judgement, part: VerifierPart
) -> Verdict:
    return Verdict(
        ids.verdict_id(trajectory.trajectory_id, trajectory.content_id, verifier_id, attempt),
        trajectory.trajectory_id,
        verifier_id,
        attempt,
        found.status,
        found.score,
        found.extracted,
        found.reason,
        part.trust,
        part.isolation,
    )
