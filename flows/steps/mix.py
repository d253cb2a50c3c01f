# SPDX-License-Identifier: Apache-2.0
"""A round's training set is chosen from its own rows, earlier rounds' and the seed."""

from collections import Counter
from collections.abc import Sequence
from typing import NoReturn

from flows.candidates import read_candidates
from flows.commit import Done, Output, Workspace, once
from flows.context import Round
from flows.steps.base import step
from stages import ids
from stages import mix as stage
from stages.advantages import running_mean
from stages.candidates import Candidate, History, Mix
from stages.errors import ConfigError, HeldError
from stages.groups import weigh
from stages.ids import Id
from stages.pairs import pair_up
from stages.rows import Decision, Prompt, TrainingRow, TrainingRowTrajectory, TrainingSet
from stages.settings import identity_json

WARN_RATIONALIZED = 0.5


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
    config = r.run.config.mix
    history = History.parse(config.history)
    every = config.groups.baseline == "running_mean"
    since = 0 if every else history.since(r.number)
    sampled = ("generate", "verify", "rationalize")
    return [
        row["step_key"]
        for row in rows
        if (row["round"], row["refresh"]) < (r.number, r.refresh)
        and (
            row["step"] in ("setup", "admit")
            or (
                (history.earlier or every)
                and row["step"].startswith(sampled)
                and row["round"] >= since
            )
        )
    ]


def _make(r: Round, space: Workspace) -> Output:
    config, updater = r.run.config.mix, r.run.config.update.updater
    history, seed = History.parse(config.history), r.run.config.seed
    found = read_candidates(r)
    candidates = found.candidates
    if r.run.config.recipe == "grpo":
        mixed = weigh(
            candidates, config.groups, history, seed, space.key, _reference(r, candidates),
            _earlier_rewards(r),
        )  # fmt: skip
    elif updater.rows == "pair":
        same = r.run.verifier.same_answer
        mixed = pair_up(candidates, config.pairs, history, seed, space.key, found.answers, same)
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
            (Prompt, found.written),
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
    if r.run.config.recipe == "grpo":
        tries = r.run.config.mix.groups.tries
        raise HeldError(
            f"round {r.number} is held: no group of answers can train after {tries} tries at its "
            f"problems ({counted or 'there was no answer'}): raise mix.groups.tries and run again, "
            "or start another --name with problems that are solved now and then "
            "(generate.problems.band) or more answers to each (generate.n)"
        )
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


def _reference(r: Round, candidates: Sequence[Candidate]) -> dict[Id, float]:
    """Each answer's summed log-probability under the reference, where the reward holds a KL."""
    if not r.run.config.mix.groups.kl:
        return {}
    with r.run.store.transaction() as tx:
        wanted = [one.trajectory.trajectory_id for one in candidates]
        scored = tx.ask("logprobs_of", ids=wanted, model_id=r.reference)
    return {row["trajectory_id"]: row["logprob"] for row in scored}


def _earlier_rewards(r: Round) -> float | None:
    """The running mean of the rewards of the run's earlier refreshes."""
    config = r.run.config.mix.groups
    if config.baseline != "running_mean":
        return None
    with r.run.store.transaction() as tx:
        means = tx.ask("mean_rewards", **r.place)
    return running_mean([row["reward"] for row in means], config.decay)
