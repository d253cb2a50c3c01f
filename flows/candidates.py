# SPDX-License-Identifier: Apache-2.0
"""What a refresh's training set is chosen from, as the store has it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.context import Round
from flows.steps.base import training_prompts, unique
from stages.candidates import Candidate, History
from stages.decontaminate import Overlap
from stages.ids import Id
from stages.prompts import settings_of
from stages.rows import Problem, Prompt, Trajectory
from stages.shards import from_table
from store.decontaminate import find_overlaps, texts
from store.transaction import as_row

SHORTEST = 8  # words of a completion that can hold an n-gram of the rules


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates, the answers read from them, and the prompts written for training."""

    candidates: list[Candidate]
    answers: Mapping[Id, str]
    written: Sequence[Prompt]


def read_candidates(r: Round) -> Found:
    """A refresh's candidates: its own answers, the seed's, and earlier ones where declared."""
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
    ages = {row["model_id"]: len(made) - 1 - place for place, row in enumerate(made)}
    return Found(
        [_candidate(r, dict(row), trained, reciting, ages) for row in found],
        {row["trajectory_id"]: row["extracted"] for row in found if row["extracted"] is not None},
        written,
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
    r: Round,
    row: dict[str, Any],
    plain: Mapping[Id, Prompt],
    reciting: Collection[Id],
    ages: Mapping[Id, int],
) -> Candidate:
    config, most = r.run.config, r.run.config.mix.max_policy_age
    status, score, source = row.pop("status"), row.pop("score"), row.pop("source")
    drawn = tuple(row.pop(name) for name in ("temperature", "top_p", "top_k"))
    row.pop("extracted")
    prompt = plain[row.pop("plain_prompt_id")]
    trajectory = as_row(Trajectory, row)
    recites = trajectory.trajectory_id in reciting
    age = ages.get(trajectory.model_id) if trajectory.model_id else None
    too_old = age is not None and most is not None and age > most
    said = config.generate.sampling
    other = drawn != (said.temperature, said.top_p, said.top_k)
    return Candidate(trajectory, source, status, score, prompt, recites, age, too_old, other)
