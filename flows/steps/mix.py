# SPDX-License-Identifier: Apache-2.0
"""A round's training set is chosen from its own rows, earlier rounds' and the seed."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from flows.commit import Done, Output, Workspace, once
from flows.context import Round
from flows.steps.base import step, training_prompts, unique
from stages import ids
from stages import mix as stage
from stages.decontaminate import Overlap
from stages.errors import ConfigError
from stages.ids import Id
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
    inputs: list[Id | int] = [
        *(source.key for source in sources),
        *_earlier_keys(r),
        r.run.config.seed,
    ]
    key = ids.step_key("mix", 1, inputs, identity_json(r.run.config.mix))
    return once(r, "mix", key, lambda space: _make(r, space))


def _earlier_keys(r: Round) -> list[Id]:
    """Keys of the earlier steps whose rows may be taken."""
    with r.run.store.transaction() as tx:
        rows = tx.ask("step_keys", run_id=r.run.run_id, round=r.number - 1)
    accumulate = r.run.config.mix.history == "accumulate"
    steps = {"setup", "admit"} | ({"generate", "verify", "rationalize"} if accumulate else set())
    return [row["step_key"] for row in rows if row["step"] in steps]


def _make(r: Round, space: Workspace) -> Output:
    config = r.run.config.mix
    accumulate = config.history == "accumulate"
    with r.run.store.transaction() as tx:
        found = tx.ask("candidates", run_id=r.run.run_id, round=r.number, accumulate=accumulate)
        plain_ids = unique(row["plain_prompt_id"] for row in found)
        plain = {p.prompt_id: p for p in tx.rows(Prompt, "prompts_by_id", ids=plain_ids)}
    trained, written = _as_trained(r, plain)
    reciting = _reciting(r, {row["trajectory_id"]: row["completion"] for row in found})
    candidates = [_candidate(dict(row), trained, reciting) for row in found]
    mixed = stage.mix(candidates, config, r.run.config.seed, space.key)
    if not mixed.rows:
        reasons = sorted({d.why for d in mixed.decisions}) or ["there was none"]
        raise ConfigError(
            f"round {r.number}: none of {len(candidates)} candidates can be trained on "
            f"({', '.join(reasons)}): start another --name with mix.seed_rows, easier "
            "problems, or more samples"
        )
    share = stage.rationalized_share(candidates, mixed)
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
    row: dict[str, Any], plain: Mapping[Id, Prompt], reciting: Collection[Id]
) -> stage.Candidate:
    status, score, source = row.pop("status"), row.pop("score"), row.pop("source")
    prompt = plain[row.pop("plain_prompt_id")]
    trajectory = as_row(Trajectory, row)
    recites = trajectory.trajectory_id in reciting
    return stage.Candidate(trajectory, source, status, score, prompt, recites)
