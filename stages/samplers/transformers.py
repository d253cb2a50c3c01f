# SPDX-License-Identifier: Apache-2.0
"""`transformers`: samples with `generate` on a CPU or one accelerator.

Prompts are padded on the left, the generation config is ours alone (the checkpoint's is not
read), and tokens are drawn per slot (see `draw.py`).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stages.chat import Messages, render_chat
from stages.ids import Id
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
        # generate() fills what we leave open from the checkpoint's generation_config.json
        self._model.generation_config = transformers.GenerationConfig()

    def sample(self, requests: Sequence[Request], sampling: SamplingConfig) -> Iterator[Completion]:
        import torch
        from transformers import GenerationConfig, LogitsProcessorList

        if not requests:
            return
        pad, eos = self._tokenizer.pad_token_id, self._tokenizer.eos_token_id
        width = max(len(request.prompt_ids) for request in requests)
        ids = [[pad] * (width - len(r.prompt_ids)) + list(r.prompt_ids) for r in requests]
        mask = [[0] * (width - len(r.prompt_ids)) + [1] * len(r.prompt_ids) for r in requests]
        device = self._model.device
        drawer = _Drawer(torch.tensor([r.seed for r in requests], device=device), width, sampling)
        with torch.inference_mode():
            output = self._model.generate(
                input_ids=torch.tensor(ids, device=device),
                attention_mask=torch.tensor(mask, device=device),
                logits_processor=LogitsProcessorList([drawer]),
                generation_config=GenerationConfig(
                    do_sample=False,
                    max_new_tokens=sampling.max_tokens,
                    eos_token_id=eos,
                    pad_token_id=pad,
                ),
            )
        tokens = output[:, width:].tolist()
        logprobs = torch.stack(drawer.logprobs, dim=1).tolist()
        for request, row, values in zip(requests, tokens, logprobs, strict=True):
            yield self._completion(request.trajectory_id, row, values)

    def render(self, messages: Messages) -> tuple[int, ...]:
        return render_chat(messages, self._tokenizer, self._template_kwargs)

    def close(self) -> None:
        self._model = None

    def _completion(self, slot: Id, tokens: list[int], logprobs: list[float]) -> Completion:
        eos = self._tokenizer.eos_token_id
        finished = eos in tokens
        length = tokens.index(eos) + 1 if finished else len(tokens)
        text_ids = tokens[: length - 1] if finished else tokens
        return Completion(
            trajectory_id=slot,
            token_ids=tuple(tokens[:length]),
            text=self._tokenizer.decode(text_ids, clean_up_tokenization_spaces=False),
            logprobs=tuple(logprobs[:length]),
            finish_reason="stop" if finished else "length",
        )


class _Drawer:
    """A logits processor that leaves one token per row and keeps its log-probability."""

    def __init__(self, seeds: "torch.Tensor", width: int, sampling: SamplingConfig) -> None:
        self._seeds, self._width, self._sampling = seeds, width, sampling
        self.logprobs: list[torch.Tensor] = []

    def __call__(self, input_ids: "torch.Tensor", scores: "torch.Tensor") -> "torch.Tensor":
        step = input_ids.shape[1] - self._width
        tokens, logprobs = draw(scores, self._seeds, step, self._sampling)
        self.logprobs.append(logprobs)
        import torch

        return torch.full_like(scores, -torch.inf).scatter_(1, tokens.unsqueeze(1), 0.0)
