# SPDX-License-Identifier: Apache-2.0
"""What all steps use: the Prefect task, judging with the gate, lookups."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from prefect import task
from prefect.cache_policies import NO_CACHE

from flows.commit import Workspace
from flows.context import Round
from stages.ids import Id
from stages.prompts import settings_of, with_room, write_prompts
from stages.rows import Problem, ProblemDecision, Prompt, Trajectory, Verdict, VerdictComponent
from stages.tasks import Split
from stages.verifiers import VerifierPart
from stages.verify import hold_unjudged, verifier_row, verify
from store.transaction import Transaction

Step = TypeVar("Step", bound=Callable[..., Any])


def step(function: Step) -> Step:
    """A Prefect task without caching: what was done is looked up in the store.

    Its runs are named as the round's verbs: `round 2 · generate`.
    """

    def named(parameters: dict[str, Any]) -> str:
        r: Round = parameters["r"]
        turn = parameters.get("turn", 0)
        where = f"round {r.number}" if r.number else "base"
        several = r.run.config.refreshes_of(r.number) > 1
        where += f", refresh {r.refresh + 1}" if several else ""
        return f"{where} · {turned(function.__name__, turn)}"

    made = task(cache_policy=NO_CACHE, persist_result=False, task_run_name=cast(Any, named))
    return cast(Step, made(function))


def verifier_id(r: Round) -> Id:
    """The id of the run's verifier."""
    return verifier_row(r.run.verifier).verifier_id


def model_of_round(r: Round) -> Id:
    """The model that the round came to."""
    with r.run.store.transaction() as tx:
        (row,) = tx.ask("model_of_round", run_id=r.run.run_id, round=r.number)
    model: Id = row["model_id"]
    return model


def turned(step: str, turn: int) -> str:
    """A step's name in a turn at the round's problems: `generate`, `generate-2` …"""
    return f"{step}-{turn + 1}" if turn else step


def unique(ids: Iterable[Id]) -> list[Id]:
    """The ids in their order, each once."""
    return list(dict.fromkeys(ids))


def judge(
    r: Round,
    trajectories: Sequence[Trajectory],
    problems: Sequence[Problem],
    space: Workspace,
    verifier: VerifierPart,
) -> tuple[list[Verdict], list[VerdictComponent]]:
    """Verdicts and their components; HeldError where too many answers could not be judged."""
    by_id = {problem.problem_id: problem for problem in problems}
    with r.run.screen.stage("verify", total=len(trajectories)) as stage, space.working():
        verdicts, components = verify(trajectories, by_id, verifier, stage.advance)
    hold_unjudged(verdicts, r.run.config.gates.max_unjudged, r.number)
    return verdicts, components


@dataclass(frozen=True, slots=True)
class Admitted:
    """The problems that a run has decided on, and those of them that it must not use."""

    known: set[Id]
    left_out: set[Id]

    def of(self, problems: Sequence[Problem]) -> list[Problem]:
        """Those of the problems that may be used; a run of an old store knows none of them."""
        usable = [p for p in problems if p.problem_id not in self.left_out]
        return [p for p in usable if not self.known or p.problem_id in self.known]


def admitted(tx: Transaction, run_id: Id) -> Admitted:
    """What a run has decided on so far."""
    known = tx.ask("registered_problems", run_id=run_id)
    gone = tx.ask("left_out_problems", run_id=run_id)
    return Admitted({row["id"] for row in known}, {row["problem_id"] for row in gone})


def usable_problems(r: Round, split: Split) -> list[Problem]:
    """A split's problems that the run has admitted: none that a file has gained since."""
    with r.run.store.transaction() as tx:
        found = admitted(tx, r.run.run_id)
    return found.of(r.run.task.problems(split))


@dataclass(frozen=True, slots=True)
class Asked:
    """Prompts that a step samples from, and the problems whose prompts leave no room to answer."""

    prompts: list[Prompt]
    too_long: list[ProblemDecision]

    def say(self, step: str) -> list[tuple[str, str]]:
        """An event where a problem was left out."""
        count = len(self.too_long)
        text = f"{step}: {count} problems left out, their prompts leave no room for max_tokens"
        return [("problems_left_out", text)] if count else []


def ask(
    r: Round, space: Workspace, problems: Sequence[Problem], max_tokens: int, *, hinted: bool,
    turn: int,
) -> Asked:  # fmt: skip
    """The problems' prompts; those too long for the policy's context are counted, never cut."""
    prompts = _write(r, problems, hinted=hinted, turn=turn)
    fit, long = with_room(prompts, r.run.context_length, max_tokens)
    left_out = [
        ProblemDecision(space.key, p.problem_id, "too_long", "", p.problem_id, False) for p in long
    ]
    return Asked(fit, left_out)


def training_prompts(r: Round, problems: Sequence[Problem]) -> list[Prompt]:
    """The problems' prompts as they are trained on: no hint, examples only where they are kept."""
    return _write(r, problems, examples=settings_of(r.run.prompts).keep_in_training)


def _write(r: Round, problems: Sequence[Problem], **options: Any) -> list[Prompt]:
    run = r.run
    kwargs = run.config.sampler.chat_template_kwargs
    given = {"hinted": False, "template_kwargs": kwargs, **options}
    return write_prompts(problems, run.prompts, run.tokenizer, **given)
