# SPDX-License-Identifier: Apache-2.0
"""Round 0: which problems of the task the run may use, decided once and listed."""

from collections import Counter
from collections.abc import Mapping, Sequence

from flows.commit import Done, Output, Workspace, once
from flows.context import Round
from flows.steps.base import step, training_prompts, verifier_id
from report.overlaps import overlap_lines
from stages import ids
from stages.admit import contaminated, refusals, refused, repeated, unread
from stages.decontaminate import Overlap, left_out
from stages.errors import TaskDataError
from stages.ids import Id
from stages.prompts import check_round_trip
from stages.rows import Problem, ProblemDecision
from stages.settings import canonical, identity
from stages.shards import from_table
from stages.tasks.base import SPLITS, Split
from store.decontaminate import find_duplicates, find_overlaps, texts

READ = 32  # problems of train and of dev whose prompts must survive the tokenizer


@step
def admit(r: Round) -> Done:
    """Decide which problems are left out: unreadable, unusable, contaminated, repeated."""
    config = r.run.config
    key = ids.step_key(
        "admit",
        1,
        [verifier_id(r)],
        canonical(
            [
                identity(config.task),
                identity(config.decontaminate),
                [identity(task) for task in config.evaluation_sets],
            ]
        ),
    )
    _check_reading(r)
    return once(r, "admit", key, lambda space: _make(r, space))


def _check_reading(r: Round) -> None:
    """ConfigError where the policy's tokenizer loses text, whichever run made the step."""
    splits: tuple[Split, ...] = ("train", "dev")
    read = [p for split in splits for p in r.run.task.problems(split)[:READ]]
    check_round_trip(training_prompts(r, read), r.run.tokenizer)


def _make(r: Round, space: Workspace) -> Output:
    run = r.run
    with run.screen.stage("problems"):
        by_split: dict[Split, Sequence[Problem]] = {s: run.task.problems(s) for s in SPLITS}
        every = {p.problem_id: p for found in by_split.values() for p in found}
        rows, decisions = unread(run.task.left_out(), run.task.name, space.key)
        no_use = refused(list(every.values()), run.verifier)
        decisions += refusals(no_use, space.key)
        train = [p for p in by_split["train"] if p.problem_id not in no_use]
        evaluation = run.evaluation_problems
        overlaps, repeats = _overlaps(r, train, evaluation)
        taken_out = left_out(overlaps, run.config.decontaminate)
        decisions += contaminated(overlaps, taken_out, space.key)
        decisions += repeated([o for o in repeats if o.problem_id not in taken_out], space.key)
    _say(r, decisions, len(train), overlaps, every | evaluation)
    mentioned = {d.problem_id for d in decisions} | {d.other_id for d in decisions}
    known = [p for id_, p in (every | evaluation).items() if id_ in mentioned]
    listed = [row for row in rows if row.problem_id not in every]
    return Output([(Problem, [*known, *listed]), (ProblemDecision, decisions)], {})


def _overlaps(
    r: Round, train: Sequence[Problem], evaluation: Mapping[Id, Problem]
) -> tuple[list[Overlap], list[Overlap]]:
    config, folder = r.run.config.decontaminate, r.run.store.folder
    asked = texts([(p.problem_id, p.question) for p in train])
    known = texts([(p.problem_id, p.question) for p in evaluation.values()])
    found = find_overlaps(asked, known, config.rules, config.containment, folder)
    overlaps = from_table(Overlap, found)
    if config.dedup == "none":
        return overlaps, []
    gone = left_out(overlaps, config)
    rest = texts([(p.problem_id, p.question) for p in train if p.problem_id not in gone])
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
