# SPDX-License-Identifier: Apache-2.0
"""Content ids: 128 bits of SHA-256 over what a thing is.

The hashed text is `kind|part|part…`; its first byte names the kind, so two kinds never share an
id. A part is written so that SQL can write it too: an id or a number as its text, a missing
value as `-`, free text and token ids as their own SHA-256. `store/schema.sql` has the same rule
as macros (`mint`, `hash_tokens`), and a test holds the two together. Ids name content only:
never a path, a host, a time or a run (a run's own id aside).
"""

import hashlib
from collections.abc import Iterable, Sequence
from uuid import UUID

Id = UUID

KINDS = {
    "c": "content",
    "e": "evaluation",
    "g": "group",
    "i": "training_row",
    "j": "verdict",
    "k": "step",
    "m": "model",
    "p": "problem",
    "q": "prompt",
    "r": "run",
    "s": "sampling",
    "t": "trajectory",
    "u": "training_update",
    "v": "verifier",
    "x": "prompt_set",
    "y": "training_set",
}

Part = Id | int | str | None


def hash_text(text: str) -> str:
    """SHA-256 of UTF-8 text, 64 hex digits (SQL: `sha256(text)`)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def hash_tokens(token_ids: Sequence[int]) -> str:
    """SHA-256 of token ids written in decimal with commas (SQL: `hash_tokens(token_ids)`)."""
    return hash_text(",".join(map(str, token_ids)))


def hash_ids(ids: Iterable[Id]) -> str:
    """SHA-256 of a list of ids in the order given; sort first where order means nothing."""
    return hash_text(",".join(map(str, ids)))


def mint(kind: str, *parts: Part) -> Id:
    """The id of a thing of `kind` (a letter of `KINDS`) made of `parts` (SQL: `mint`).

    Strings are taken as they are: pass free text through `hash_text` first, so that no text can
    hold the separator.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown id kind {kind!r}; allowed: {', '.join(sorted(KINDS))}")
    texts = ["-" if part is None else str(part) for part in parts]
    if any("|" in text for text in texts):
        raise ValueError(f"an id part of kind {kind!r} holds '|': hash free text first")
    return UUID(hash_text("|".join([kind, *texts]))[:32])


def problem_id(task: str, question: str, answer: str) -> Id:
    """A problem is its task, its question and its reference answer; the split is not part of it."""
    return mint("p", hash_text(task), hash_text(question), hash_text(answer))


def prompt_set_id(name: str, plain: str, hint: str | None, config: str | None = None) -> Id:
    """A prompt set is its name, its two templates, and the rest of it where there is more."""
    templates = hash_text(plain), None if hint is None else hash_text(hint)
    rest = () if config is None else (hash_text(config),)
    return mint("x", hash_text(name), *templates, *rest)


def prompt_id(problem: Id, prompt_set: Id, hinted: bool, token_ids: Sequence[int]) -> Id:
    """A prompt is a problem under a prompt set, as the policy's tokenizer writes it."""
    return mint("q", problem, prompt_set, int(hinted), hash_tokens(token_ids))


def content_id(prompt_tokens: Sequence[int], completion_tokens: Sequence[int]) -> Id:
    """What a trajectory says: prompt and completion token ids, nothing else."""
    return mint("c", hash_tokens(prompt_tokens), hash_tokens(completion_tokens))


def trajectory_id(
    problem: Id, prompt: Id, model: Id, sampling: Id, purpose: str, seed: int, slot: int
) -> Id:
    """The slot that a policy fills: known before a token is sampled."""
    return mint("t", problem, prompt, model, sampling, purpose, seed, slot)


def group_id(prompt: Id, model: Id, sampling: Id, seed: int, round_: int, refresh: int) -> Id:
    """The answers that a policy gives to a prompt in one refresh: slots that differ by number."""
    return mint("g", prompt, model, sampling, seed, round_, refresh)


def outside_trajectory_id(source: str, position: int) -> Id:
    """The slot of a row that no policy sampled (seed, human, teacher, import)."""
    return mint("t", hash_text(source), position)


def outside_group_id(source: str, name: str) -> Id:
    """A group of trajectories that no policy of ours sampled: its source's name for it."""
    return mint("g", hash_text(source), hash_text(name))


def verdict_id(trajectory: Id, content: Id, verifier: Id, attempt: int) -> Id:
    """One judgement of one content by one verifier version; `attempt` counts our own failures."""
    return mint("j", trajectory, content, verifier, attempt)


def verifier_id(name: str, version: str, config: str) -> Id:
    """A verifier is its name, its version and its config (canonical JSON)."""
    return mint("v", hash_text(name), hash_text(version), hash_text(config))


def sampling_id(config: str) -> Id:
    """Sampling parameters as canonical JSON."""
    return mint("s", hash_text(config))


def training_row_id(kind: str, prompt: Id, contents: Sequence[Id], weight: float, copy: int) -> Id:
    """A row of a training set: its kind, training prompt, contents by role and weight.

    `copy` tells equal rows of one set apart (0 for the first).
    """
    return mint("i", kind, prompt, hash_ids(contents), hash_text(repr(float(weight))), copy)


def training_set_id(rows: Sequence[Id]) -> Id:
    """A training set is its rows in training order."""
    return mint("y", hash_ids(rows))


def update_id(
    init: Id, reference: Id | None, training_set: Id, config: str, seed: int, steps: int, model: Id
) -> Id:
    """What an update had and gave: start, reference, data, config, seed, steps, and its model.

    The model is part of it: where training is not deterministic, doing it again is another update.
    """
    return mint("u", init, reference, training_set, hash_text(config), seed, steps, model)


def evaluation_id(
    model: Id, problems: Sequence[Id], sampling: Id, verifier: Id, n: int, k: int, seed: str
) -> Id:
    """A model on a set of problems, whose order means nothing: samples, their seeds, k."""
    return mint("e", model, hash_ids(sorted(problems)), sampling, verifier, n, k, seed)


def step_key(stage: str, version: int, inputs: Sequence[Part], config: str) -> Id:
    """What a step computes: its stage and version, its inputs and its identity config.

    No run, round or path is in it, so two runs that compute the same thing share it.
    """
    texts = [str(part) for part in inputs]
    if any("|" in text for text in texts):
        raise ValueError(f"an input of step {stage!r} holds '|': hash free text first")
    return mint("k", stage, version, hash_text("|".join(texts)), hash_text(config))


def run_id(name: str) -> Id:
    """A run is its name within a store."""
    return mint("r", hash_text(name))


def slot_seed(seed: int, round_: int, refresh: int, purpose: str, problem: Id, slot: int) -> int:
    """The seed of one slot, 0 … 2⁶³−1: no two slots, rounds or refreshes of a seed share one."""
    text = f"seed|{seed}|{round_}|{refresh}|{purpose}|{problem}|{slot}"
    return int(hash_text(text)[:16], 16) >> 1
