# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities of given completions under a checkpoint, as a trainer sees them."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

Row = tuple[Sequence[int], Sequence[int]]  # prompt ids, completion ids
Advance = Callable[[int], None]

BATCH_TOKENS = 8192


def score_tokens(
    folder: Path,
    device: str,
    dtype: str,
    rows: Sequence[Row],
    advance: Advance = lambda count: None,
    temperature: float = 1.0,
) -> list[list[float]]:
    """For each row the log-probability (nats, at a temperature) of each completion token.

    Rows of like length are read together; `advance` hears how many are done.
    """
    import torch
    from transformers import AutoModelForCausalLM

    from stages.updaters.training import padded

    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
    model = model.to(device).eval()
    found: list[list[float]] = [[] for _ in rows]
    with torch.inference_mode():
        for places in _batches([len(prompt) + len(completion) for prompt, completion in rows]):
            whole = [[*rows[place][0], *rows[place][1]] for place in places]
            ids = padded(whole, 0).to(device)
            mask = padded([[1] * len(row) for row in whole], 0).to(device)
            logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1].float()
            logits /= temperature
            chosen = logits.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)
            logprobs = chosen - logits.logsumexp(-1)
            for line, place in zip(logprobs, places, strict=True):
                prompt, completion = rows[place]
                start = len(prompt) - 1
                found[place] = line[start : start + len(completion)].tolist()
            advance(len(places))
    return found


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Places, longest first, as many at once as BATCH_TOKENS holds with padding."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
