# SPDX-License-Identifier: Apache-2.0
"""A checkpoint and held-out problems to measures with intervals.

The sampled answers are ordinary trajectories with purpose `eval`. `pass_at_1` and its kin are
means over the task's difficulties, so a task's easy half cannot hide its hard half.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field, model_validator

from stages import ids
from stages.ids import Id
from stages.measures import Estimate, maj_at_k, mean_over_problems, pass_at_k
from stages.rows import Evaluation, Metric, Problem, Trajectory, Verdict
from stages.samplers.base import SamplingConfig
from stages.settings import Settings
from stages.verifiers.base import VerifierPart


class EvaluateConfig(Settings):
    """Every `every` rounds: `problems` dev problems per difficulty, `n` samples each."""

    every: int = Field(1, ge=1)
    n: int = Field(16, ge=1, le=65_536)
    k: int = Field(8, ge=1)
    problems: int = Field(40, ge=1, le=10**9)
    sampling: SamplingConfig = SamplingConfig(temperature=0.6, top_p=0.95)

    @model_validator(mode="after")
    def _enough_samples(self) -> "EvaluateConfig":
        if self.k > self.n:
            raise ValueError(f"k is {self.k}, n is {self.n}: pass@k needs at least k samples")
        return self


@dataclass(frozen=True, slots=True)
class Answers:
    """The judged answers to one held-out question."""

    problem: Problem
    n: int
    correct: int
    unjudged: int
    votes: Mapping[str, int]
    right_votes: frozenset[str]
    silent: int
    truncated: int
    tokens: int


def held_out(problems: Sequence[Problem], per_difficulty: int) -> list[Problem]:
    """The first `per_difficulty` problems of each difficulty, in the split's order."""
    taken: Counter[float | None] = Counter()
    chosen = []
    for problem in problems:
        if taken[problem.difficulty] < per_difficulty:
            taken[problem.difficulty] += 1
            chosen.append(problem)
    return chosen


def gather(
    problems: Sequence[Problem],
    trajectories: Sequence[Trajectory],
    verdicts: Mapping[Id, Verdict],
    verifier: VerifierPart,
) -> list[Answers]:
    """The answers of each problem; equivalent answers share one class of votes."""
    by_problem: dict[Id, list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        by_problem[trajectory.problem_id].append(trajectory)
    return [
        _answers(problem, by_problem[problem.problem_id], verdicts, verifier)
        for problem in problems
    ]


def _answers(
    problem: Problem,
    trajectories: Sequence[Trajectory],
    verdicts: Mapping[Id, Verdict],
    verifier: VerifierPart,
) -> Answers:
    votes: Counter[str] = Counter()
    right: set[str] = set()
    statuses: Counter[str] = Counter()
    silent = 0
    for trajectory in trajectories:
        verdict = verdicts[trajectory.trajectory_id]
        statuses[verdict.status] += 1
        if verdict.status == "unjudged":
            continue
        if verdict.extracted is None or verdict.reason == "two_answers":
            silent += 1
            continue
        found = verdict.extracted
        answer = next((v for v in votes if verifier.same_answer(v, found)), found)
        votes[answer] += 1
        if verdict.status == "correct":
            right.add(answer)
    return Answers(
        problem=problem,
        n=len(trajectories),
        correct=statuses["correct"],
        unjudged=statuses["unjudged"],
        votes=votes,
        right_votes=frozenset(right),
        silent=silent,
        truncated=sum(t.finish_reason == "length" for t in trajectories),
        tokens=sum(len(t.token_ids) for t in trajectories),
    )


def measure(
    evaluation: Evaluation,
    answers: Sequence[Answers],
    k: int,
    extra: Mapping[str, Sequence[Answers]],
) -> list[Metric]:
    """All metrics of an evaluation: over all, per difficulty, per domain, per extra slice."""
    by_difficulty: dict[float | None, list[Answers]] = defaultdict(list)
    for answer in answers:
        by_difficulty[answer.problem.difficulty].append(answer)
    strata = [by_difficulty[d] for d in sorted(by_difficulty, key=lambda d: d or 0.0)]
    metrics = _slice(evaluation.evaluation_id, "all", strata, k)
    if len(strata) > 1:
        for stratum in strata:
            difficulty = stratum[0].problem.difficulty
            name = "difficulty=none" if difficulty is None else f"difficulty={difficulty:g}"
            metrics += _slice(evaluation.evaluation_id, name, [stratum], k)
    domains = sorted({answer.problem.domain or "none" for answer in answers})
    if len(domains) > 1:
        for domain in domains:
            same = [a for a in answers if (a.problem.domain or "none") == domain]
            metrics += _slice(evaluation.evaluation_id, f"domain={domain}", [same], k)
    for name, found in extra.items():
        metrics += _slice(evaluation.evaluation_id, name, [found], k)
    return metrics


def _slice(
    evaluation_id: Id, name: str, strata: Sequence[Sequence[Answers]], k: int
) -> list[Metric]:
    def metric(
        measure: str, of: Callable[[Answers], float | None], k: int | None = None,
        bound: Callable[[Answers], float | None] | None = None,
    ) -> Metric:  # fmt: skip
        found, least = _mean(strata, of), _mean(strata, bound or of)
        return Metric(
            evaluation_id=evaluation_id,
            name=measure,
            slice=name,
            k=k,
            value=found.value if found else None,
            low=found.low if found else None,
            high=found.high if found else None,
            bound=least.value if least else None,
            problems=sum(map(len, strata)),
            samples=sum(a.n for stratum in strata for a in stratum),
        )

    return [
        metric("pass_at_1", lambda a: pass_at_k(a.n - a.unjudged, a.correct, 1), None,
               lambda a: pass_at_k(a.n, a.correct, 1)),
        metric("pass_at_k", lambda a: pass_at_k(a.n - a.unjudged, a.correct, k), k,
               lambda a: pass_at_k(a.n, a.correct, k)),
        metric("maj_at_k", lambda a: maj_at_k(a.votes, a.right_votes, a.silent, k), k,
               lambda a: maj_at_k(a.votes, a.right_votes, a.silent + a.unjudged, k)),
        metric("truncated", lambda a: a.truncated / a.n),
        metric("no_answer", lambda a: a.silent / a.n),
        _length(evaluation_id, name, strata),
    ]  # fmt: skip


def _mean(
    strata: Sequence[Sequence[Answers]], of: Callable[[Answers], float | None]
) -> Estimate | None:
    values = [[v for a in stratum if (v := of(a)) is not None] for stratum in strata]
    return mean_over_problems(values)


def _length(evaluation_id: Id, name: str, strata: Sequence[Sequence[Answers]]) -> Metric:
    """Mean completion length in tokens; no interval."""
    samples = sum(a.n for stratum in strata for a in stratum)
    tokens = sum(a.tokens for stratum in strata for a in stratum)
    mean = tokens / samples if samples else None
    problems = sum(map(len, strata))
    return Metric(evaluation_id, "length", name, None, mean, None, None, mean, problems, samples)


def evaluation_row(
    model: Id,
    task: str,
    problems: Sequence[Problem],
    sampling: Id,
    verifier: Id,
    config: EvaluateConfig,
    seed: str,
) -> Evaluation:
    """The store's row for an evaluation on the dev split; its seed is part of what it is."""
    n = config.n
    found = [problem.problem_id for problem in problems]
    evaluation_id = ids.evaluation_id(model, found, sampling, verifier, n, config.k, seed)
    return Evaluation(evaluation_id, model, task, "dev", sampling, verifier, n, len(found))
