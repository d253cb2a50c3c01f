# SPDX-License-Identifier: Apache-2.0
"""Trajectories and a verifier to verdicts.

Answers to one prompt by one policy are judged together. What could not be judged is tried again,
and every try is a verdict of its own.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from stages import ids
from stages.errors import HeldError, VerifierError
from stages.ids import Id
from stages.rows import Problem, Trajectory, Verdict, VerdictComponent, Verifier
from stages.verifiers.base import Answer, Judgement, VerifierPart

RETRIES = 3


def verifier_row(verifier: VerifierPart) -> Verifier:
    """The store's row for a verifier."""
    row_id = ids.verifier_id(verifier.name, verifier.version, verifier.config)
    return Verifier(row_id, verifier.name, verifier.version, verifier.config)


def verify(
    trajectories: Sequence[Trajectory],
    problems: Mapping[Id, Problem],
    verifier: VerifierPart,
    advance: Callable[[int], None] = lambda count: None,
) -> tuple[list[Verdict], list[VerdictComponent]]:
    """All verdicts, tries that ended `unjudged` included, and the parts of their scores.

    `advance` is told how many more answers are judged.
    """
    row = verifier_row(verifier)
    groups: dict[tuple[Id | str | None, ...], list[Trajectory]] = defaultdict(list)
    for one in trajectories:
        groups[one.problem_id, one.prompt_id, one.model_id, one.purpose].append(one)
    found: dict[Id, list[tuple[Verdict, Judgement]]] = {}
    for group in groups.values():
        found |= _judge(group, problems[group[0].problem_id].answer, verifier, row.verifier_id)
        advance(len(group))
    tries = [judged for one in trajectories for judged in found[one.trajectory_id]]
    components = [
        VerdictComponent(verdict.verdict_id, name, value, weight)
        for verdict, judgement in tries
        for name, value, weight in judgement.components
    ]
    return [verdict for verdict, _ in tries], components


def _judge(
    group: Sequence[Trajectory], reference: str, verifier: VerifierPart, verifier_id: Id
) -> dict[Id, list[tuple[Verdict, Judgement]]]:
    """Every try at each of the answers to one prompt, by trajectory."""
    answers = [
        Answer(
            reference,
            one.completion,
            len(one.token_ids),
            one.finish_reason == "length",
            str(one.trajectory_id),
        )
        for one in group
    ]
    found: dict[Id, list[tuple[Verdict, Judgement]]] = {one.trajectory_id: [] for one in group}
    for attempt in range(1 + RETRIES):
        for one, judgement in zip(group, verifier.judge(answers), strict=True):
            tries = found[one.trajectory_id]
            if not tries or tries[-1][0].status == "unjudged":
                _check_finite(judgement, verifier, one)
                tries.append((_verdict(one, verifier_id, attempt, judgement, verifier), judgement))
        if all(tries[-1][0].status != "unjudged" for tries in found.values()):
            break
    return found


def _check_finite(judgement: Judgement, verifier: VerifierPart, trajectory: Trajectory) -> None:
    """VerifierError where a reward or a part of it is no number."""
    score = [] if judgement.score is None else [("score", judgement.score)]
    for name, value in [*score, *((name, value) for name, value, _ in judgement.components)]:
        if not math.isfinite(value):
            raise VerifierError(
                f"verifier {verifier.name}: {name} is {value} for trajectory "
                f"{trajectory.trajectory_id}, and a reward must be a finite number: mend the "
                "verifier or its weights (an answer that it cannot judge is `unjudged`)"
            )


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
