# SPDX-License-Identifier: Apache-2.0
"""Drawing tokens so that a slot's text does not depend on its batch.

Each slot has a seed; the uniform number of step i is a counter-based hash of (seed, i), and the
token is found by inverse CDF over the distribution that temperature, top-k and top-p leave.
The hash is SplitMix64 (Steele, Lea, Flood 2014), on 64-bit integers that wrap.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from stages.samplers.base import SamplingConfig


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


_BLOCK, _ROWS = 256, 16
_BELOW_1 = 1 - 2.0**-40

_GAMMA = _signed(0x9E3779B97F4A7C15)
_MIX_1 = _signed(0xBF58476D1CE4E5B9)
_MIX_2 = _signed(0x94D049BB133111EB)


def _shift(value: "torch.Tensor", bits: int) -> "torch.Tensor":
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def uniform(seeds: "torch.Tensor", step: int) -> "torch.Tensor":
    """Numbers in [0, 1) of float64, one per seed (int64), for a step from 0."""
    z = seeds + _signed(_GAMMA * (step + 1) % 2**64)
    z = (z ^ _shift(z, 30)) * _MIX_1
    z = (z ^ _shift(z, 27)) * _MIX_2
    z = z ^ _shift(z, 31)
    return _shift(z, 11).double() * 2.0**-53


def log_distribution(logits: "torch.Tensor", sampling: "SamplingConfig") -> "torch.Tensor":
    """Log-probabilities [B, V] that tokens are drawn from; temperature 0 gives those at 1."""
    import torch

    logits = logits.float()
    if sampling.temperature > 0:
        logits = logits / sampling.temperature
        if 0 < sampling.top_k < logits.shape[-1]:
            least = logits.topk(sampling.top_k).values[:, -1:]
            logits = logits.masked_fill(logits < least, -torch.inf)
        if sampling.top_p < 1.0:
            ordered, order = logits.sort(descending=True)
            mass = ordered.softmax(-1)
            cut = mass.cumsum(-1) - mass >= sampling.top_p
            logits = logits.masked_fill(cut.gather(-1, order.argsort(-1)), -torch.inf)
    return logits.log_softmax(-1)


def draw(
    logits: "torch.Tensor", seeds: "torch.Tensor", step: int, sampling: "SamplingConfig"
) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Tokens [B] and their log-probabilities [B] for logits [B, V] and one seed a row.

    On a CPU some rows at a time, so that what is in hand stays in the cache.
    """
    import torch

    size = _ROWS if logits.device.type == "cpu" else len(logits)
    drawn = [
        _draw(logits[at : at + size], seeds[at : at + size], step, sampling)
        for at in range(0, len(logits), size)
    ]
    tokens, logprobs = zip(*drawn, strict=True)
    return torch.cat(tokens), torch.cat(logprobs)


def _draw(
    logits: "torch.Tensor", seeds: "torch.Tensor", step: int, sampling: "SamplingConfig"
) -> tuple["torch.Tensor", "torch.Tensor"]:
    logprobs = log_distribution(logits, sampling)
    if sampling.temperature == 0:
        tokens = logprobs.argmax(-1)
    else:
        tokens = _inverse_cdf(logprobs.exp(), uniform(seeds, step))
    return tokens, logprobs.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def _inverse_cdf(weights: "torch.Tensor", uniforms: "torch.Tensor") -> "torch.Tensor":
    """The first place [B] where the running sum of weights [B, V] passes a share of the total.

    Summed over blocks first, then within the block that holds the place: a vocabulary is long.
    """
    import torch

    size = weights.shape[-1]
    padded = torch.nn.functional.pad(weights, (0, -size % _BLOCK))
    blocks = padded.reshape(len(weights), -1, _BLOCK)
    sums = blocks.sum(-1).double()
    ends = sums.cumsum(-1)
    target = uniforms.clamp_max(_BELOW_1).unsqueeze(-1) * ends[:, -1:]
    block = (ends <= target).sum(-1, keepdim=True).clamp_max(ends.shape[-1] - 1)
    within = blocks.gather(1, block.unsqueeze(-1).expand(-1, -1, _BLOCK)).squeeze(1)
    inner = within.double().cumsum(-1)
    share = 1 - (ends.gather(-1, block) - target) / sums.gather(-1, block)
    place = (inner <= share.clamp(0.0, _BELOW_1) * inner[:, -1:]).sum(-1)
    found: torch.Tensor = block.squeeze(-1) * _BLOCK + place
    return found
