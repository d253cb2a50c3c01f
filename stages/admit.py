# SPDX-License-Identifier: Apache-2.0
"""A task's data to the problems that a run may use, and a decision for each that is left out.

Left out are rows of the data that are no problem, references that the run's own verifier cannot
use, training problems that stand in an evaluation set, and those that repeat another one.
"""

from collections.abc import Mapping, Sequence

from stages import ids
from stages.decontaminate import Overlap
from stages.ids import Id
from stages.rows import Problem, ProblemDecision
from stages.tasks.base import LeftOut
from stages.verifiers.base import VerifierPart, judge_text


def unread(
    rows: Sequence[LeftOut], task: str, step_key: Id
) -> tuple[list[Problem], list[ProblemDecision]]:
    """Rows of the data that became no problem: as problems of no split, with their decisions."""
    problems, decisions = [], []
    for row in rows:
        problem_id = ids.problem_id(task, row.question, row.answer)
        problems.append(Problem(problem_id, task, "left_out", row.question, row.answer))
        decisions.append(
            ProblemDecision(step_key, problem_id, row.why, row.line, problem_id, False)
        )
    return problems, decisions


def refused(problems: Sequence[Problem], verifier: VerifierPart) -> dict[Id, str]:
    """Problems whose reference answer the verifier cannot use, with its reason.

    A verifier that cannot use a reference leaves even an empty completion unjudged.
    """
    found = {}
    for problem in problems:
        judgement = judge_text(verifier, problem.answer, "")
        if judgement.status == "unjudged":
            found[problem.problem_id] = judgement.reason
        elif not verifier.same_answer(problem.answer, problem.answer):
            found[problem.problem_id] = "not_equal_to_itself"
    return found


def refusals(refused: Mapping[Id, str], step_key: Id) -> list[ProblemDecision]:
    """Decisions for references that the verifier cannot use; `rule` is its reason."""
    return [
        ProblemDecision(step_key, problem, "reference_refused", "", problem, False, reason)
        for problem, reason in refused.items()
    ]


def contaminated(
    overlaps: Sequence[Overlap], left_out: Mapping[Id, Overlap], step_key: Id
) -> list[ProblemDecision]:
    """One decision for each overlapping pair, with all rules that hold and the largest share."""
    pairs: dict[tuple[Id, Id], list[Overlap]] = {}
    for overlap in overlaps:
        pairs.setdefault((overlap.problem_id, overlap.other_id), []).append(overlap)
    return [
        ProblemDecision(
            step_key,
            problem,
            "contaminated",
            "",
            other,
            problem not in left_out,
            ", ".join(overlap.rule for overlap in found),
            max(overlap.share for overlap in found),
        )
        for (problem, other), found in pairs.items()
    ]


def repeated(overlaps: Sequence[Overlap], step_key: Id) -> list[ProblemDecision]:
    """Decisions for training problems that repeat an earlier one."""
    return [
        ProblemDecision(step_key, o.problem_id, "duplicate", "", o.other_id, False, o.rule, o.share)
        for o in overlaps
    ]
