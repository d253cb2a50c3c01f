# SPDX-License-Identifier: Apache-2.0
"""`transformers`: samples on a CPU or one accelerator.

Prompts are padded on the left; those that are equal are read once, and rows that ended leave the
batch, which `generate` does not do. The checkpoint's generation config is not read, and tokens are
drawn per slot (see `draw.py`).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stages.chat import Messages, render_chat
from stages.ids import Id
from stages.memory import hold_memory
from stages.policies.checkpoint import load_tokenizer, model_id_of
from stages.policies.dtype import Dtype, resolve
from stages.samplers.base import (
    Completion,
    Engine,
    Request,
    SamplerSettings,
    SamplingConfig,
)
from stages.samplers.draw import draw
from stages.settings import operational

if TYPE_CHECKING:
    import torch


_FULL = 7 / 8  # a batch with fewer rows that still go on is made smaller


class Config(SamplerSettings):
    """`shard_size` slots are sampled as one batch and kept as one shard."""

    type: Literal["transformers"]
    shard_size: int = operational(256, ge=1)
    device: Literal["auto", "cpu", "cuda"] = operational("auto")
    dtype: Dtype = "float32"

    @property
    def batch_size(self) -> int:
        return self.shard_size

    def build(self, model: Path) -> Engine:
        return TransformersEngine(self, model)


class TransformersEngine:
    """A causal language model loaded for sampling."""

    name = "transformers"
    deterministic = True

    def __init__(self, config: Config, model: Path) -> None:
        import torch
        import transformers

        hold_memory()
        device: str = config.device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        dtype = resolve(config.dtype, device)
        self.version = transformers.__version__
        self.dtype = dtype
        self._template_kwargs = config.chat_template_kwargs
        self.weight_version = str(model_id_of(model))
        self._tokenizer = load_tokenizer(model)
        self._model: Any = (
            transformers.AutoModelForCausalLM.from_pretrained(model, dtype=getattr(torch, dtype))
            .to(device)
            .eval()
        )

    def sample(self, requests: Sequence[Request], sampling: SamplingConfig) -> Iterator[Completion]:
        import torch

        if not requests:
            return
        with torch.inference_mode():
            rows = self._decode(requests, sampling)
        for request, (tokens, logprobs) in zip(requests, rows, strict=True):
            yield self._completion(request.trajectory_id, tokens, logprobs, sampling)

    def _decode(
        self, requests: Sequence[Request], sampling: SamplingConfig
    ) -> list[tuple[list[int], list[float]]]:
        """Tokens and log-probabilities of each request; rows that ended leave the batch."""
        import torch

        device = self._model.device
        cache, mask, logits = self._prefill(requests)
        seeds = torch.tensor([request.seed for request in requests], device=device)
        rows: list[tuple[list[int], list[float]]] = [([], []) for _ in requests]
        live, ended = list(range(len(requests))), set[int]()
        for step in range(sampling.max_tokens):
            tokens, logprobs = draw(logits, seeds, step, sampling)
            for place, token, logprob in zip(live, tokens.tolist(), logprobs.tolist(), strict=True):
                if place not in ended:
                    rows[place][0].append(token)
                    rows[place][1].append(logprob)
            ended |= {p for p in live if p not in ended and self._ended(rows[p][0], sampling)}
            going = [i for i, place in enumerate(live) if place not in ended]
            if not going or step + 1 == sampling.max_tokens:
                break
            if len(going) <= _FULL * len(live):
                kept = torch.tensor(going, device=device)
                cache.batch_select_indices(kept)
                tokens, mask, seeds = tokens[kept], mask[kept], seeds[kept]
                live = [live[i] for i in going]
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
            logits = self._forward(tokens.unsqueeze(1), mask, cache)
        return rows

    def _prefill(self, requests: Sequence[Request]) -> tuple[Any, "torch.Tensor", "torch.Tensor"]:
        """Cache, mask and next logits of the requests' prompts; equal prompts are read once."""
        import torch
        from transformers import DynamicCache

        prompts = {ids: i for i, ids in enumerate(dict.fromkeys(r.prompt_ids for r in requests))}
        width = max(map(len, prompts))
        pad, device = self._tokenizer.pad_token_id, self._model.device
        ids = [[pad] * (width - len(p)) + list(p) for p in prompts]
        mask = [[0] * (width - len(p)) + [1] * len(p) for p in prompts]
        masked = torch.tensor(mask, device=device)
        cache = DynamicCache(config=self._model.config)
        logits = self._forward(torch.tensor(ids, device=device), masked, cache)
        where = torch.tensor([prompts[r.prompt_ids] for r in requests], device=device)
        if len(prompts) < len(requests):
            cache.batch_select_indices(where)
        return cache, masked[where], logits[where]

    def _forward(self, ids: "torch.Tensor", mask: "torch.Tensor", cache: Any) -> "torch.Tensor":
        """Logits [B, V] of the token after `ids`, whose positions count what is not padding."""
        positions = (mask.cumsum(-1) - 1).clamp_min(0)[:, -ids.shape[1] :]
        output = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = output.logits[:, -1]
        return logits

    def _ended(self, tokens: Sequence[int], sampling: SamplingConfig) -> bool:
        return tokens[-1] == self._tokenizer.eos_token_id or (
            bool(sampling.stop) and self._stopped(tokens, sampling) is not None
        )

    def _stopped(self, tokens: Sequence[int], sampling: SamplingConfig) -> int | None:
        """Where the text of `tokens` reaches the first of the stop strings, None if it does not."""
        text = self._text(tokens)
        found = [at for stop in sampling.stop if (at := text.find(stop)) >= 0]
        return min(found, default=None)

    def _text(self, tokens: Sequence[int]) -> str:
        """The tokens as text, the end token aside."""
        ended = tokens[-1] == self._tokenizer.eos_token_id
        said = tokens[:-1] if ended else tokens
        text: str = self._tokenizer.decode(said, clean_up_tokenization_spaces=False)
        return text

    def render(self, messages: Messages) -> tuple[int, ...]:
        return render_chat(messages, self._tokenizer, self._template_kwargs)

    def close(self) -> None:
        self._model = None

    def _completion(
        self, slot: Id, tokens: list[int], logprobs: list[float], sampling: SamplingConfig
    ) -> Completion:
        stop = self._stopped(tokens, sampling) if sampling.stop else None
        finished = stop is not None or tokens[-1] == self._tokenizer.eos_token_id
        return Completion(
            trajectory_id=slot,
            token_ids=tuple(tokens),
            text=self._text(tokens)[:stop],
            logprobs=tuple(logprobs),
            finish_reason="stop" if finished else "length",
        )
