# SPDX-License-Identifier: Apache-2.0
"""The number type that `auto` stands for on a device."""

from functools import cache
from pathlib import Path
from typing import Literal

from stages.errors import ConfigError

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
ALLOWED = ("float32", "bfloat16", "float16")
_AMPERE = 8
_CPU_FLAGS = frozenset(("avx512_bf16", "amx_bf16", "bf16"))


def resolve(dtype: str, device: str) -> str:
    """The type to compute in on `device` (`cpu`, `cuda`, `cuda:1` …); only `auto` is looked up.

    bfloat16 where the processor multiplies it (CPU: AVX-512 BF16, AMX or Arm's bf16; CUDA:
    compute capability 8.0 on), float16 on older GPUs, float32 elsewhere.
    """
    if dtype in ALLOWED:
        return dtype
    if dtype != "auto":
        raise ConfigError(f"dtype: {dtype!r} is not allowed; use auto, {', '.join(ALLOWED)}")
    kind = device.partition(":")[0]
    if kind == "cuda":
        import torch

        major, _ = torch.cuda.get_device_capability(device)
        return "bfloat16" if major >= _AMPERE else "float16"
    return "bfloat16" if kind == "cpu" and _CPU_FLAGS & cpu_flags() else "float32"


def trained_in(dtype: str, device: str) -> str:
    """The type that weights are trained in, and their reference is read in: never float16.

    float16 has too few exponents to train.
    """
    found = resolve(dtype, device)
    return "float32" if found == "float16" else found


@cache
def cpu_flags(listing: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """What the first processor says that it can do; nothing where there is no such file."""
    try:
        lines = listing.read_text().splitlines()
    except OSError:
        return frozenset()
    said = (line.partition(":") for line in lines)
    flags = (value for name, _, value in said if name.strip().lower() in ("flags", "features"))
    return frozenset(next(flags, "").split())
