# SPDX-License-Identifier: Apache-2.0
"""Sampler and trainer side by side on a checkpoint: the same tokens, the same probabilities?

The sampler answers some prompts at temperature 1 with nothing cut; the trainer's model scores the
tokens that were sampled. What differs names the layer: other text for the same ids is the
tokenizer, other text for the same chat the template, other probabilities the weights, or the
number format where scoring in the sampler's format takes the difference away.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from stages.chat import Messages
from stages.ids import Id
from stages.measures.divergence import Gap, apart
from stages.samplers.base import Completion, Engine, Request, SamplingConfig
from stages.scoring import score_tokens

Suspect = Literal["tokenizer", "template", "weights", "dtype"]
Score = Callable[[str, Sequence[tuple[Sequence[int], Sequence[int]]]], list[list[float]]]

SAMPLING = SamplingConfig(temperature=1.0, max_tokens=16)

# Mean gaps that pass, nats a token. vLLM and transformers in bfloat16 differ by 0.04 to 0.06 on the
# same weights of 135 M parameters: a logit of 16 to 32 is rounded to steps of 0.125.
EXACT, ROUNDED = 0.05, 0.15


@dataclass(frozen=True, slots=True)
class Finding:
    """The first layer that differs, None for none, and what was seen."""

    gap: Gap
    suspect: Suspect | None
    seen: str


def compare(
    requests: Sequence[Request],
    engine: Engine,
    model: Id,
    tokenizer: Any,
    score: Score,
    trainer_dtype: str,
    threshold: float,
) -> Finding:
    """What the engine says to `requests`, against the policy's tokenizer and the trainer's scores.

    `score(dtype, rows)` gives the log-probabilities of each completion's tokens, rows being pairs
    of prompt ids and completion ids. `threshold` bounds the mean difference.
    """
    replies = {reply.trajectory_id: reply for reply in engine.sample(requests, SAMPLING)}
    pairs = [(request, replies[request.trajectory_id]) for request in requests]
    numbered = [(request, reply) for request, reply in pairs if reply.logprobs is not None]
    rows = [(request.prompt_ids, reply.token_ids) for request, reply in numbered]
    told = [reply.logprobs or () for _, reply in numbered]
    gap = apart(told, score(trainer_dtype, rows))
    seen = _other_text(pairs, tokenizer)
    if seen:
        return Finding(gap, "tokenizer", seen)
    seen = _other_chat(requests, engine, tokenizer)
    if seen:
        return Finding(gap, "template", seen)
    if _names_another(engine.weight_version, model):
        seen = f"the sampler holds {engine.weight_version}, the checkpoint is {model}"
        return Finding(gap, "weights", seen)
    if gap.mean <= threshold:
        return Finding(gap, None, "")
    seen = f"log-probabilities differ by {gap.mean:.3f} nats a token, {gap.most:.3f} at most"
    if engine.dtype in ("float32", "bfloat16", "float16") and engine.dtype != trainer_dtype:
        same = apart(told, score(engine.dtype, rows))
        if same.mean <= threshold:
            formats = f"{engine.dtype} in the sampler, {trainer_dtype} in the trainer"
            return Finding(gap, "dtype", f"{seen}; {formats}")
    return Finding(gap, "weights", seen)


def allowed_gap(dtypes: Iterable[str]) -> float:
    """The mean gap that rounding explains, for the number formats of sampler and trainer."""
    return EXACT if set(dtypes) == {"float32"} else ROUNDED


def scorer(folder: Path, device: str) -> Score:
    """Log-probabilities at temperature 1 under the model of a checkpoint folder."""
    return partial(score_tokens, folder, device)


def _other_text(pairs: Sequence[tuple[Request, Completion]], tokenizer: Any) -> str:
    """A completion whose text is not what the policy's tokenizer makes of its ids, or nothing.

    Engines may write special tokens out or leave them out.
    """
    for _, reply in pairs:
        ids = list(reply.token_ids)
        ended = ids[-1:] == [tokenizer.eos_token_id]
        read = ids[:-1] if ended else ids
        own = [tokenizer.decode(read, skip_special_tokens=skip, clean_up_tokenization_spaces=False)
               for skip in (True, False)]  # fmt: skip
        if reply.text not in own:
            return f"ids {ids[:8]} are {reply.text!r:.60} there, {own[0]!r:.60} here"
    return ""


def _other_chat(requests: Sequence[Request], engine: Engine, tokenizer: Any) -> str:
    """A chat that the engine writes otherwise than the prompts were written, or nothing."""
    for request in requests:
        there = _rendered(engine, request.messages)
        if there is not None and there != request.prompt_ids:
            own, other = (tokenizer.decode(ids) for ids in (request.prompt_ids, there))
            return f"a chat is {other!r:.90} there, {own!r:.90} here"
    return ""


def _rendered(engine: Engine, messages: Messages) -> tuple[int, ...] | None:
    return engine.render(messages) if messages else None


def _names_another(version: str, model: Id) -> bool:
    """Whether a weight version is a model id, of another model."""
    try:
        return Id(version) != model
    except ValueError:
        return False
