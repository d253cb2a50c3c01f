# SPDX-License-Identifier: Apache-2.0
"""Which problems of the task the run may use: each is decided on once, and listed."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from flows.commit import Done, Output, Workspace, once
from flows.context import Round
from flows.steps.base import (
    Admitted,
    admitted,
    step,
    training_prompts,
    usable_problems,
    verifier_id,
)
from report.overlaps import overlap_lines
from stages import ids
from stages.admit import contaminated, refusals, refused, repeated, unread
from stages.decontaminate import Overlap, left_out
from stages.errors import ConfigError, TaskDataError
from stages.ids import Id
from stages.prompts import check_round_trip
from stages.rows import Problem, ProblemDecision
from stages.settings import canonical, identity
from stages.shards import from_table
from stages.tasks.base import SPLITS, LeftOut
from store.decontaminate import find_duplicates, find_overlaps, texts

READ = 32  # problems of train and of dev whose prompts must survive the tokenizer


@step
def admit(r: Round) -> Done | None:
    """Decide which problems are left out: unreadable, unusable, contaminated, repeated.

    Round 0 decides on all that the task has, a later round on those that are new to the run. A
    round keeps the problems that it began with: what its file gains meanwhile waits for the next.
    """
    problems = [p for split in SPLITS for p in r.run.task.problems(split)]
    if not r.number:
        return _decide(r, {p.problem_id: p for p in problems}, set())
    with r.run.store.transaction() as tx:
        (noted,) = tx.ask("round_begun", run_id=r.run.run_id, round=r.number)
        before = admitted(tx, r.run.run_id)
    if noted["detail"] and json.loads(noted["detail"])["problems"] != _order(r, before):
        raise ConfigError(
            f"task: the train problems of round {r.number} stand in another order than when it "
            "began: put the file's rows back in their order, new ones may stand anywhere"
        )
    if noted["begun"]:
        return None
    new = {p.problem_id: p for p in problems if p.problem_id not in before.known}
    done = _decide(r, new, before.known) if new else None
    with r.run.store.transaction() as tx:
        detail = canonical({"problems": _order(r, admitted(tx, r.run.run_id))})
        message = f"round {r.number} begins"
        tx.append("add_event", **r.place, kind="round_begun", message=message, detail=detail)
    return done


def _order(r: Round, found: Admitted) -> str:
    """The hash of the train problems that the round uses, in their order."""
    return ids.hash_ids([p.problem_id for p in found.of(r.run.task.problems("train"))])


def _decide(r: Round, new: Mapping[Id, Problem], known: Collection[Id]) -> Done:
    config = r.run.config
    inputs = [ids.hash_ids(new), ids.hash_ids(sorted(known))] if r.number else []
    key = ids.step_key(
        "admit",
        1,
        [verifier_id(r), *inputs],
        canonical(
            [
                identity(r.run.began),
                identity(config.decontaminate),
                [identity(task) for task in config.evaluation_sets],
            ]
        ),
    )
    _check_reading(r, list(new.values()))
    return once(r, "admit", key, lambda space: _make(r, space, new))


def _check_reading(r: Round, problems: Sequence[Problem]) -> None:
    """ConfigError where the policy's tokenizer loses text, whichever run made the step."""
    read = [p for s in ("train", "dev") for p in [q for q in problems if q.split == s][:READ]]
    check_round_trip(training_prompts(r, read), r.run.tokenizer)


def _make(r: Round, space: Workspace, new: Mapping[Id, Problem]) -> Output:
    run = r.run
    with run.screen.stage("problems"):
        rows, decisions = unread(_left_out(r), run.task.name, space.key)
        no_use = refused(list(new.values()), run.verifier)
        decisions += refusals(no_use, space.key)
        train = [p for p in new.values() if p.split == "train" and p.problem_id not in no_use]
        earlier = [p for p in usable_problems(r, "train") if p.problem_id not in new]
        evaluation = run.evaluation_problems
        overlaps, repeats = _overlaps(r, train, earlier, evaluation)
        taken_out = left_out(overlaps, run.config.decontaminate)
        decisions += contaminated(overlaps, taken_out, space.key)
        decisions += repeated([o for o in repeats if o.problem_id in new], space.key)
    every = {p.problem_id: p for p in earlier} | dict(new) | evaluation
    _say(r, decisions, len(train), overlaps, every)
    mentioned = {d.problem_id for d in decisions} | {d.other_id for d in decisions}
    known = dict(new) | {id_: p for id_, p in every.items() if id_ in mentioned}
    listed = [row for row in rows if row.problem_id not in known]
    return Output(
        [(Problem, [*known.values(), *listed]), (ProblemDecision, decisions)],
        {"problem": list(new)},
    )


def _left_out(r: Round) -> list[LeftOut]:
    """Rows of the data that are no problem and that the run has not listed yet."""
    with r.run.store.transaction() as tx:
        listed = {row["place"] for row in tx.ask("rows_left_out", run_id=r.run.run_id)}
    return [row for row in r.run.task.left_out() if row.line not in listed]


def _overlaps(
    r: Round,
    train: Sequence[Problem],
    earlier: Sequence[Problem],
    evaluation: Mapping[Id, Problem],
) -> tuple[list[Overlap], list[Overlap]]:
    """Of train problems with evaluation problems, and of those left with each other."""
    config, folder = r.run.config.decontaminate, r.run.store.folder
    asked = texts([(p.problem_id, p.question) for p in train])
    known = texts([(p.problem_id, p.question) for p in evaluation.values()])
    found = find_overlaps(asked, known, config.rules, config.containment, folder)
    overlaps = from_table(Overlap, found)
    if config.dedup == "none":
        return overlaps, []
    gone = left_out(overlaps, config)
    left = [*earlier, *(p for p in train if p.problem_id not in gone)]
    rest = texts([(p.problem_id, p.question) for p in left])
    return overlaps, from_table(Overlap, find_duplicates(rest, config.dedup, folder))


def _say(
    r: Round,
    decisions: Sequence[ProblemDecision],
    train: int,
    overlaps: Sequence[Overlap],
    problems: Mapping[Id, Problem],
) -> None:
    """What was left out, on the screen; TaskDataError where nothing is left."""
    questions = {id_: problem.question for id_, problem in problems.items()}
    asked = len({overlap.problem_id for overlap in overlaps})
    if overlaps:
        for line in overlap_lines(overlaps, questions, train, 3):
            r.run.screen.say(line)
    whys = Counter(d.why for d in decisions if not d.kept and d.why != "contaminated")
    if whys:
        counted = ", ".join(f"{count} {why}" for why, count in sorted(whys.items()))
        r.run.screen.say(f"problems left out: {counted} (listed in table problem_decision)")
    if r.number:  # the run has earlier ones
        return
    if not train:
        reasons = ", ".join(
            sorted({d.rule or "" for d in decisions if d.why == "reference_refused"})
        )
        raise TaskDataError(
            f"task {r.run.task.name}: the verifier can use no answer of its training problems "
            f"({reasons}): set verifier.type to one that fits, or task.columns.answer"
        )
    lost = {d.problem_id for d in decisions if not d.kept and d.other_id != d.problem_id}
    if len(lost) >= train:
        raise TaskDataError(
            f"task {r.run.task.name}: none of {train} training problems is left, {asked} overlap "
            "evaluation problems: problems of one generator share their wording; set "
            "decontaminate.rules to [exact], or give other data"
        )
