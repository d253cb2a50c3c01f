# SPDX-License-Identifier: Apache-2.0
"""What all steps use: the Prefect task, judging with the gate, lookups."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from prefect import task
from prefect.cache_policies import NO_CACHE

from flows.commit import Workspace
from flows.context import Round
from stages.ids import Id
from stages.rows import Problem, Trajectory, Verdict, VerdictComponent
from stages.verify import hold_unjudged, verifier_row, verify

Step = TypeVar("Step", bound=Callable[..., Any])


def step(function: Step) -> Step:
    """A Prefect task without caching: what was done is looked up in the store."""
    return cast(Step, task(cache_policy=NO_CACHE, persist_result=False)(function))


def verifier_id(r: Round) -> Id:
    """The id of the run's verifier."""
    return verifier_row(r.run.verifier).verifier_id


def unique(ids: Iterable[Id]) -> list[Id]:
    """The ids in their order, each once."""
    return list(dict.fromkeys(ids))


def judge(
    r: Round, trajectories: Sequence[Trajectory], problems: Sequence[Problem], space: Workspace
) -> tuple[list[Verdict], list[VerdictComponent]]:
    """Verdicts and their components; HeldError where too many answers could not be judged."""
    with space.working():
        by_id = {problem.problem_id: problem for problem in problems}
        verdicts, components = verify(trajectories, by_id, r.run.verifier)
    hold_unjudged(verdicts, r.run.config.gates.max_unjudged, r.number)
    return verdicts, components
