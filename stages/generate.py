# SPDX-License-Identifier: Apache-2.0
"""Problems and a sampler to trajectories.

Slots are planned first: their ids and seeds are known before a token is sampled. Slots that are
filled are left out, but the batches stay those of the whole plan, so a round that was cut goes
on as if it had not been.
"""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from stages import ids
from stages.errors import ConfigError, SamplerError
from stages.ids import Id
from stages.prompts import messages_of
from stages.rows import Origin, Problem, Prompt, Purpose, Sampling, Trajectory
from stages.samplers.base import Completion, Engine, Request, SamplingConfig
from stages.settings import identity_json

Order = Literal["seeded", "split", "unsolved_first"]


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one completion of one prompt."""

    trajectory_id: Id
    prompt: Prompt
    seed: int
    slot: int
    group: Id | None = None


@dataclass(frozen=True, slots=True)
class Draw:
    """What the slots of a step have in common."""

    model_id: Id
    sampling: SamplingConfig
    purpose: Purpose
    n: int
    seed: int
    round: int
    refresh: int = 0


def choose_problems(
    problems: Sequence[Problem],
    per_round: int | Literal["all"],
    order: Order,
    seed: int,
    round_: int,
    rates: Mapping[Id, float] | None = None,
    band: tuple[float, float] | None = None,
    turn: int = 0,
) -> list[Problem]:
    """The problems of a round, from 1; in a later `turn` of it those that come after, if any.

    `rates` are pass rates seen so far; with a `band` only problems whose rate lies in it, or that
    were never tried, are taken. `seeded` walks round and round a shuffle of the split, `split`
    through the split's own order; `unsolved_first` takes the lowest rates first.
    """
    rates = rates or {}
    if band is not None:
        low, high = band
        problems = [p for p in problems if low <= rates.get(p.problem_id, low) <= high]
    if not problems:
        cause = f"generate.problems.band: {band} leaves" if band else "task: the train split has"
        raise ConfigError(f"{cause} no problem: widen it")
    count = len(problems) if per_round == "all" else min(per_round, len(problems))
    if order == "unsolved_first":
        shuffled = _shuffled(problems, seed, round_)
        ordered = sorted(shuffled, key=lambda p: rates.get(p.problem_id, 0.0))
    else:
        ordered = _shuffled(problems, seed, 0) if order == "seeded" else list(problems)
        start = (round_ - 1) * count % len(ordered)
        ordered = ordered[start:] + ordered[:start]
    return ordered[turn * count : (turn + 1) * count]


def _shuffled(problems: Sequence[Problem], seed: int, turn: int) -> list[Problem]:
    ordered = list(problems)
    random.Random(f"problems|{seed}|{turn}").shuffle(ordered)
    return ordered


def sampling_row(sampling: SamplingConfig) -> Sampling:
    """The store's row for sampling parameters."""
    config = identity_json(sampling)
    return Sampling(
        ids.sampling_id(config),
        sampling.temperature,
        sampling.top_p,
        sampling.top_k,
        sampling.max_tokens,
        config,
    )


def plan_slots(prompts: Sequence[Prompt], draw: Draw) -> list[Slot]:
    """`draw.n` slots per prompt, long prompts last so that batches are of like length."""
    sampling = sampling_row(draw.sampling).sampling_id
    slots = []
    for prompt in sorted(prompts, key=lambda p: (len(p.token_ids), p.prompt_id)):
        place = (draw.seed, draw.round, draw.refresh)
        group = ids.group_id(prompt.prompt_id, draw.model_id, sampling, *place)
        for number in range(draw.n):
            seed = ids.slot_seed(
                draw.seed, draw.round, draw.refresh, draw.purpose, prompt.problem_id, number
            )
            slot_id = ids.trajectory_id(
                prompt.problem_id,
                prompt.prompt_id,
                draw.model_id,
                sampling,
                draw.purpose,
                seed,
                number,
            )
            shared = group if draw.purpose == "train" and draw.n > 1 else None
            slots.append(Slot(slot_id, prompt, seed, number, shared))
    return slots


def generate(
    slots: Sequence[Slot],
    engine: Engine,
    draw: Draw,
    filled: Collection[Id],
    shard_size: int,
    batch_size: int | None = None,
    origin: Origin = "self",
) -> Iterator[list[Trajectory]]:
    """Fill the open slots, one list of at most `shard_size` trajectories at a time.

    The engine gets `batch_size` slots of the plan at once (None: all); replies are joined by slot,
    never by position. SamplerError where a slot is left empty or answered twice.
    """
    sampling = sampling_row(draw.sampling).sampling_id
    size = batch_size or max(1, len(slots))
    for start in range(0, len(slots), size):
        batch = slots[start : start + size]
        open_ = {s.trajectory_id: s for s in batch if s.trajectory_id not in filled}
        requests = [
            Request(s.trajectory_id, s.prompt.token_ids, s.seed, messages_of(s.prompt))
            for s in open_.values()
        ]
        shard: list[Trajectory] = []
        for reply in engine.sample(requests, draw.sampling) if requests else ():
            slot = open_.pop(reply.trajectory_id, None)
            if slot is None:
                raise SamplerError(
                    f"{engine.name} answered slot {reply.trajectory_id}, which was not asked or "
                    "was answered before: every request is answered once"
                )
            shard.append(_trajectory(slot, reply, engine, draw, sampling, origin))
            if len(shard) == shard_size:
                yield shard
                shard = []
        if open_:
            raise SamplerError(
                f"{engine.name} left {len(open_)} of {len(requests)} slots empty (the first is "
                f"{next(iter(open_))}): every request must be answered"
            )
        if shard:
            yield shard


def _trajectory(
    slot: Slot, reply: Completion, engine: Engine, draw: Draw, sampling: Id, origin: Origin
) -> Trajectory:
    scored = len(reply.logprobs or ())
    if scored != len(reply.token_ids) and not (reply.from_text and reply.logprobs is None):
        raise SamplerError(
            f"{engine.name} gave {scored} log-probabilities for {len(reply.token_ids)} tokens of "
            f"slot {slot.trajectory_id}: one per token is needed"
        )
    return Trajectory(
        trajectory_id=slot.trajectory_id,
        content_id=ids.content_id(slot.prompt.token_ids, reply.token_ids),
        problem_id=slot.prompt.problem_id,
        prompt_id=slot.prompt.prompt_id,
        model_id=draw.model_id,
        sampling_id=sampling,
        purpose=draw.purpose,
        origin=origin,
        seed=slot.seed,
        slot=slot.slot,
        completion=reply.text,
        token_ids=reply.token_ids,
        logprobs=reply.logprobs,
        finish_reason=reply.finish_reason,
        engine=engine.name,
        engine_version=engine.version,
        dtype=engine.dtype,
        weight_version=engine.weight_version,
        group_id=slot.group,
        from_text=reply.from_text or None,
    )
