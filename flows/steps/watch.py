# SPDX-License-Identifier: Apache-2.0
"""What a refresh's answers look like is measured, and the run's alarms are sounded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flows.alarms import sound
from flows.commit import Done, Output, Workspace, once
from flows.context import Round
from flows.steps.base import step, unique
from stages import ids
from stages.ids import Id
from stages.measures.monitors import (
    Answer,
    Reading,
    against_held_out,
    between,
    divergences,
    readings,
    tried,
    weighed,
)
from stages.policies.dtype import resolve
from stages.rows import Monitor, Prompt, Trajectory, TrajectoryLogprob, Verdict
from stages.scoring import score_tokens
from stages.settings import canonical
from stages.verify import final_verdicts


@step
def watch(r: Round, *before: Done) -> Done:
    """Measure what `generate` sampled, and how far its policy is from base, reference, held-out.

    `before` are the steps that sampled and judged, and last the one that mixed.
    """
    models = _compared(r)
    precision = _precision(r) if models else None
    sample = r.run.config.monitors.kl_sample
    with r.run.store.transaction() as tx:
        held_out = tx.ask("held_out", run_id=r.run.run_id, round=r.number)[-1:]
    key = ids.step_key(
        "watch",
        2,
        [
            *(done.key for done in before),
            *models.values(),
            *(row["evaluation_id"] for row in held_out),
        ],
        canonical([[*models], precision.dtype, sample] if precision else []),
    )
    mixed = before[-1].key

    def make(space: Workspace) -> Output:
        sampled, found = _of_answers(r, mixed)
        for row in held_out:
            found += against_held_out(found, row["value"])
        compared, logprobs = (
            _against(r, space, sampled, models, precision) if precision else ([], [])
        )
        monitors = [Monitor(space.key, *reading) for reading in (*found, *compared)]
        return Output([(Monitor, monitors), (TrajectoryLogprob, logprobs)], {})

    done = once(r, "watch", key, make)
    sound(r)
    r.run.tracking.catch_up(rounds=False)
    return done


@dataclass(frozen=True, slots=True)
class Precision:
    """Number format of the weights, and where they are."""

    dtype: str
    device: str


def _precision(r: Round) -> Precision:
    dtype, device = r.run.config.update.updater.precision
    return Precision(resolve(dtype, device), device)


def _compared(r: Round) -> dict[str, Id]:
    """The models that the policy is compared with, by name."""
    if not r.run.config.measures_kl:
        return {}
    reference = r.reference
    return {"base": r.base, **({"reference": reference} if reference else {})}


def _of_answers(r: Round, mixed: Id) -> tuple[list[Trajectory], list[Reading]]:
    """The answers, and what they, their verdicts and the rows that train show."""
    config = r.run.config
    with r.run.store.transaction() as tx:
        sampled = tx.rows(Trajectory, "step_trajectories", **r.place, step="generate")
        judged = tx.rows(Verdict, "step_verdicts", **r.place, step="verify")
        kept = {row["trajectory_id"] for row in tx.ask("kept", step_key=mixed)}
        (used,) = tx.ask("step_outputs", **r.place, step="mix", kind="training_set")
        rollouts = tx.ask("advantages", training_set_id=used["id"])
    final = final_verdicts(judged)
    advantages = {row["trajectory_id"]: row["advantage"] for row in rollouts}
    answers = [
        Answer(one, verdict.status, verdict.score, one.trajectory_id in kept,
               advantages.get(one.trajectory_id))
        for one in sampled
        for verdict in [final[one.trajectory_id]]
    ]  # fmt: skip
    sampling = config.generate.sampling
    plain = sampling.uncut and sampling.temperature == 1.0
    found = readings(answers, getattr(config.verifier, "mark", None), plain=plain)
    found += weighed([row["advantage"] for row in rollouts])
    return sampled, found + (tried(answers) if config.recipe == "grpo" else [])


def _against(
    r: Round,
    space: Workspace,
    sampled: Sequence[Trajectory],
    models: Mapping[str, Id],
    precision: Precision,
) -> tuple[list[Reading], list[TrajectoryLogprob]]:
    """How far the policy is from other models, and the trainer's numbers from the sampler's."""
    run, sampling = r.run, r.run.config.generate.sampling
    chosen = _drawn(sampled, run.config.monitors.kl_sample, run.config.seed)
    scored = _score(r, space, chosen, [r.policy, *models.values()], precision)
    tokens = {model: [v for row in rows for v in row] for model, rows in scored.items()}
    others = {name: tokens[model] for name, model in models.items()}
    found = divergences(tokens[r.policy], others)
    if sampling.uncut:
        drawn_at = sampling.temperature or 1.0  # greedy answers have theirs at 1
        other = drawn_at != 1.0
        own = _score(r, space, chosen, [r.policy], precision, drawn_at) if other else scored
        pairs = [
            (one.logprobs, values)
            for one, values in zip(chosen, own[r.policy], strict=True)
            if one.logprobs is not None
        ]
        found += between([told for told, _ in pairs], [values for _, values in pairs])
    return found, [
        TrajectoryLogprob(one.trajectory_id, one.prompt_id, model, sum(values))
        for model, rows in scored.items()
        for one, values in zip(chosen, rows, strict=True)
    ]


def _drawn(sampled: Sequence[Trajectory], most: int, seed: int) -> list[Trajectory]:
    """At most so many answers that have a token, the same for a seed."""

    def shuffled(one: Trajectory) -> str:
        return ids.hash_text(f"kl|{seed}|{one.trajectory_id}")

    return sorted((one for one in sampled if one.token_ids), key=shuffled)[:most]


def _score(
    r: Round,
    space: Workspace,
    chosen: Sequence[Trajectory],
    models: Sequence[Id],
    precision: Precision,
    temperature: float = 1.0,
) -> dict[Id, list[list[float]]]:
    """Log-probabilities of the answers' tokens under each model, after the prompts sampled from.

    All are in the trainer's numbers, so that what differs is the model.
    """
    run, distinct = r.run, unique(models)
    with run.store.transaction() as tx:
        asked = unique(one.prompt_id for one in chosen)
        prompts = {p.prompt_id: p for p in tx.rows(Prompt, "prompts_by_id", ids=asked)}
    rows = [(prompts[one.prompt_id].token_ids, one.token_ids) for one in chosen]
    run.close()
    with run.screen.stage("watch", total=len(rows) * len(distinct)) as stage, space.working():

        def under(model: Id) -> list[list[float]]:
            where = (run.checkpoint(model), precision.device, precision.dtype)
            return score_tokens(*where, rows, stage.advance, temperature)

        return {model: under(model) for model in distinct}
