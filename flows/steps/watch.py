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
from stages.measures.monitors import Answer, divergences, readings, tried
from stages.policies.dtype import resolve
from stages.rows import Monitor, Prompt, Trajectory, TrajectoryLogprob, Verdict
from stages.scoring import score_tokens
from stages.settings import canonical
from stages.verify import final_verdicts


@step
def watch(r: Round, *before: Done) -> Done:
    """Measure what `generate` sampled, and how far its policy is from base and reference.

    `before` are the steps that sampled and judged, and last the one that mixed.
    """
    models = _compared(r)
    precision = _precision(r) if models else None
    sample = r.run.config.monitors.kl_sample
    key = ids.step_key(
        "watch",
        1,
        [*(done.key for done in before), *models.values()],
        canonical([[*models], precision.dtype, sample] if precision else []),
    )
    mixed = before[-1].key
    done = once(r, "watch", key, lambda space: _make(r, space, mixed, models, precision))
    sound(r)
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


def _make(
    r: Round, space: Workspace, mixed: Id, models: Mapping[str, Id], precision: Precision | None
) -> Output:
    config = r.run.config
    with r.run.store.transaction() as tx:
        sampled = tx.rows(Trajectory, "step_trajectories", **r.place, step="generate")
        judged = tx.rows(Verdict, "step_verdicts", **r.place, step="verify")
        kept = {row["trajectory_id"] for row in tx.ask("kept", step_key=mixed)}
    final = final_verdicts(judged)
    answers = [
        Answer(one, verdict.status, verdict.score, one.trajectory_id in kept)
        for one in sampled
        for verdict in [final[one.trajectory_id]]
    ]
    sampling = config.generate.sampling
    plain = (sampling.temperature, sampling.top_p, sampling.top_k) == (1.0, 1.0, 0)
    found = readings(answers, getattr(config.verifier, "mark", None), plain=plain)
    found += tried(answers) if config.recipe == "grpo" else []
    logprobs: list[TrajectoryLogprob] = []
    if precision is not None:
        chosen = _drawn(sampled, config.monitors.kl_sample, config.seed)
        scored = _score(r, space, chosen, [r.policy, *models.values()], precision)
        tokens = {model: [v for row in rows for v in row] for model, rows in scored.items()}
        others = {name: tokens[model] for name, model in models.items()}
        found += divergences(tokens[r.policy], others)
        logprobs = [
            TrajectoryLogprob(one.trajectory_id, one.prompt_id, model, sum(values))
            for model, rows in scored.items()
            for one, values in zip(chosen, rows, strict=True)
        ]
    monitors = [Monitor(space.key, *reading) for reading in found]
    return Output([(Monitor, monitors), (TrajectoryLogprob, logprobs)], {})


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
        return {
            model: score_tokens(
                run.checkpoint(model), precision.device, precision.dtype, rows, stage.advance
            )
            for model in distinct
        }
