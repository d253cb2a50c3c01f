# SPDX-License-Identifier: Apache-2.0
"""Failed problems to new trajectories: the answer is shown as a hint, then taken away again.

A problem failed if it has no right answer and at least one wrong one. Its hinted completions
must verify, and then pass an audit: no word about the hint, no answer before any work, no text
of the hint template. Training later uses the problem's own prompt, never this one.
"""

import re
from collections.abc import Collection, Mapping, Sequence

from stages.ids import Id
from stages.rows import Decision, Problem, Trajectory, TrajectoryParent, Verdict

HINT_WORDS = (
    "hint",
    "as given",
    "given answer",
    "answer given",
    "answer provided",
    "provided answer",
    "the answer is known",
    "we know the answer",
    "we are told",
)


def failed_problems(trajectories: Sequence[Trajectory], verdicts: Mapping[Id, Verdict]) -> list[Id]:
    """Problems with no correct trajectory and at least one wrong one, in order of first sight."""
    outcomes: dict[Id, set[str]] = {}
    for trajectory in trajectories:
        status = verdicts[trajectory.trajectory_id].status
        outcomes.setdefault(trajectory.problem_id, set()).add(status)
    return [p for p, seen in outcomes.items() if "wrong" in seen and "correct" not in seen]


def hint_parents(
    hinted: Sequence[Trajectory], forward: Sequence[Trajectory], verdicts: Mapping[Id, Verdict]
) -> list[TrajectoryParent]:
    """Each hinted trajectory with the wrong forward ones of its problem."""
    wrong: dict[Id, list[Id]] = {}
    for trajectory in forward:
        if verdicts[trajectory.trajectory_id].status == "wrong":
            wrong.setdefault(trajectory.problem_id, []).append(trajectory.trajectory_id)
    return [
        TrajectoryParent(trajectory.trajectory_id, parent, "hint")
        for trajectory in hinted
        for parent in wrong.get(trajectory.problem_id, [])
    ]


def audit(
    hinted: Sequence[Trajectory],
    problems: Mapping[Id, Problem],
    verdicts: Mapping[Id, Verdict],
    hint_template: str,
    step_key: Id,
) -> list[Decision]:
    """A decision for every hinted trajectory: `rationalized`, or why not."""
    marks = template_marks(hint_template)
    decisions = []
    for trajectory in hinted:
        verdict = verdicts[trajectory.trajectory_id]
        answer = problems[trajectory.problem_id].answer
        why: str = "rationalized"
        if verdict.status != "correct":
            why = "truncated" if verdict.reason == "truncated" else verdict.status
        elif hint_shows(trajectory.completion, answer, marks):
            why = "hint_leak"
        kept = why == "rationalized"
        decisions.append(Decision(step_key, trajectory.trajectory_id, "rationalized", kept, why))
    return decisions


def template_marks(hint_template: str) -> tuple[str, ...]:
    """The pieces of text that the hint template itself puts around question and answer."""
    pieces = re.split(r"\{question\}|\{answer\}", hint_template)
    return tuple(piece.strip() for piece in pieces if len(piece.strip()) >= 2)


def hint_shows(completion: str, answer: str, marks: Collection[str]) -> bool:
    """Whether a completion speaks of the hint, starts with the answer, or repeats the template."""
    text = completion.strip().lower()
    if any(word in text for word in HINT_WORDS) or any(m.lower() in text for m in marks):
        return True
    bare = re.sub(r"^[\W_]*(the )?(final )?(answer( is)?)?[\W_]*", "", text)
    return re.match(re.escape(answer.strip().lower()) + r"\s*([.,;!#\n]|$)", bare) is not None
