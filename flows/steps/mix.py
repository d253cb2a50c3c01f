# SPDX-License-Identifier: Apache-2.0
"""A round's training set is chosen from its own rows, earlier rounds' and the seed."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

from flows.commit import Done, Output, Workspace, once
from flows.context import Round
from flows.steps.base import step, training_prompts, unique
from stages import ids
from stages import mix as stage
from stages.candidates import Candidate, History, Mix
from stages.decontaminate import Overlap
from stages.errors import ConfigError
from stages.ids import Id
from stages.pairs import pair_up
from stages.prompts import settings_of
from stages.rows import (
    Decision,
    Problem,
    Prompt,
    TrainingRow,
    TrainingRowTrajectory,
    TrainingSet,
    Trajectory,
)
from stages.settings import identity_json
from stages.shards import from_table
from store.decontaminate import find_overlaps, texts
from store.transaction import as_row

WARN_RATIONALIZED = 0.5
SHORTEST = 8  # words of a completion that can hold an n-gram of the rules


@step
def mix(r: Round, *sources: Done) -> Done:
    """Mix the rows of `sources` with what the config declares."""
    rows = r.run.config.update.updater.rows
    inputs: list[Id | int | str] = [
        *(source.key for source in sources),
        *_earlier_keys(r),
        r.run.config.seed,
        *([rows] if rows != "sft" else []),
    ]
    key = ids.step_key("mix", 1, inputs, identity_json(r.run.config.mix))
    return once(r, "mix", key, lambda space: _make(r, space))


def _earlier_keys(r: Round) -> list[Id]:
    """Keys of the earlier steps whose rows may be taken, and of the updates they are old by."""
    with r.run.store.transaction() as tx:
        rows = tx.ask("step_keys", run_id=r.run.run_id, round=r.number)
    history = History.parse(r.run.config.mix.history)
    since = history.since(r.number)
    sampled = {"generate", "verify", "rationalize"}
    return [
        row["step_key"]
        for row in rows
        if (row["round"], row["refresh"]) < (r.number, r.refresh)
        and (
            row["step"] in ("setup", "admit")
            or (history.earlier and row["step"] in sampled and row["round"] >= since)
        )
    ]


def _make(r: Round, space: Workspace) -> Output:
    config, updater = r.run.config.mix, r.run.config.update.updater
    history = History.parse(config.history)
    with r.run.store.transaction() as tx:
        found = tx.ask(
            "candidates",
            **r.place,
            since=history.since(r.number),
            earlier=history.earlier,
            wrong_too=updater.rows != "sft",
        )
        made = tx.ask("models_made", **r.place)
        plain_ids = unique(row["plain_prompt_id"] for row in found)
        plain = {p.prompt_id: p for p in tx.rows(Prompt, "prompts_by_id", ids=plain_ids)}
    trained, written = _as_trained(r, plain)
    reciting = _reciting(r, {row["trajectory_id"]: row["completion"] for row in found})
    extracted = {row["trajectory_id"]: row["extracted"] for row in found}
    ages = {row["model_id"]: len(made) - 1 - place for place, row in enumerate(made)}
    most = config.max_policy_age
    candidates = [_candidate(dict(row), trained, reciting, ages, most) for row in found]
    seed = r.run.config.seed
    if updater.rows == "pair":
        said = {id_: answer for id_, answer in extracted.items() if answer is not None}
        same = r.run.verifier.same_answer
        mixed = pair_up(candidates, config.pairs, history, seed, space.key, said, same)
    else:
        mixed = stage.mix(candidates, config, seed, space.key, updater.rows)
    if not mixed.rows and not _later_or_earlier_trains(r):
        _refuse(r, mixed)
    share = stage.rationalized_share(candidates, mixed) if mixed.rows else 0.0
    if share > WARN_RATIONALIZED:
        r.run.screen.say(
            f"round {r.number}: warning: {share:.0%} of the training rows are rationalized; "
            "set mix.max_rationalized_share to bound them"
        )
    return Output(
        [
            (Prompt, written),
            (TrainingSet, [mixed.training_set]),
            (TrainingRow, mixed.rows),
            (TrainingRowTrajectory, mixed.trajectories),
            (Decision, mixed.decisions),
        ],
        {"training_set": [mixed.training_set.training_set_id]},
    )


def _later_or_earlier_trains(r: Round) -> bool:
    """Whether a round whose refresh has no rows may still train in another one."""
    if r.refresh + 1 < r.run.config.refreshes_of(r.number):
        return True
    with r.run.store.transaction() as tx:
        return bool(tx.ask("model_of_round", run_id=r.run.run_id, round=r.number))


def _refuse(r: Round, mixed: Mix) -> NoReturn:
    reasons = Counter(d.why for d in mixed.decisions if d.source in ("round", "rationalized"))
    counted = ", ".join(f"{count} {why}" for why, count in reasons.most_common())
    what = "pairs can be made" if r.run.config.update.updater.rows == "pair" else "rows can train"
    mend = (
        "more answers a problem (generate.n), a higher temperature, or problems that are solved "
        "now and then (generate.problems.band)"
        if "one_sided" in reasons
        else "mix.seed_rows, easier problems, or more samples"
    )
    raise ConfigError(
        f"round {r.number}: no {what} ({counted or 'there was no answer'}): start another --name "
        f"with {mend}"
    )


def _as_trained(
    r: Round, plain: Mapping[Id, Prompt]
) -> tuple[Mapping[Id, Prompt], Sequence[Prompt]]:
    """The prompt to train on for each plain prompt, and those written now: without examples."""
    settings = settings_of(r.run.prompts)
    if settings.keep_in_training or not settings.examples:
        return plain, []
    with r.run.store.transaction() as tx:
        wanted = unique(prompt.problem_id for prompt in plain.values())
        problems = tx.rows(Problem, "problems_by_id", ids=wanted)
    written = {prompt.problem_id: prompt for prompt in training_prompts(r, problems)}
    return {id_: written[prompt.problem_id] for id_, prompt in plain.items()}, [*written.values()]


def _reciting(r: Round, completions: Mapping[Id, str]) -> set[Id]:
    """Candidates whose completions hold an evaluation problem, by the n-gram rules declared."""
    config = r.run.config.decontaminate
    rules = [rule for rule in config.rules if rule.endswith("-gram")]
    long = [(id_, text) for id_, text in completions.items() if len(text.split()) >= SHORTEST]
    if not rules or not long or config.on_contamination == "warn":
        return set()
    known = texts([(p.problem_id, p.question) for p in r.run.evaluation_problems.values()])
    found = find_overlaps(texts(long), known, rules, config.containment, r.run.store.folder)
    return {overlap.problem_id for overlap in from_table(Overlap, found)}


def _candidate(
    row: dict[str, Any],
    plain: Mapping[Id, Prompt],
    reciting: Collection[Id],
    ages: Mapping[Id, int],
    most: int | None,
) -> Candidate:
    status, score, source = row.pop("status"), row.pop("score"), row.pop("source")
    row.pop("extracted")
    prompt = plain[row.pop("plain_prompt_id")]
    trajectory = as_row(Trajectory, row)
    recites = trajectory.trajectory_id in reciting
    age = ages.get(trajectory.model_id) if trajectory.model_id else None
    too_old = age is not None and most is not None and age > most
    return Candidate(trajectory, source, status, score, prompt, recites, age, too_old)
