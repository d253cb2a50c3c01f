# SPDX-License-Identifier: Apache-2.0
"""What `auto` stands for, by processor."""

from pathlib import Path

import pytest
import torch

from stages.errors import ConfigError
from stages.policies import dtype
from stages.policies.dtype import cpu_flags, resolve, trained_in


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("device", ["cpu", "cuda", "mps"])
def test_a_named_type_is_taken_as_it_is(name: str, device: str) -> None:
    assert resolve(name, device) == name


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ("fpu avx2 avx512_bf16", "bfloat16"),
        ("amx_bf16 amx_tile", "bfloat16"),
        ("asimd bf16", "bfloat16"),
        ("fpu avx2 avx512f", "float32"),
        ("", "float32"),
    ],
)
def test_a_cpu_computes_in_bfloat16_where_it_can(
    monkeypatch: pytest.MonkeyPatch, flags: str, found: str
) -> None:
    monkeypatch.setattr(dtype, "cpu_flags", lambda: frozenset(flags.split()))
    assert resolve("auto", "cpu") == found


@pytest.mark.parametrize(
    ("capability", "found"),
    [((7, 0), "float16"), ((7, 5), "float16"), ((8, 0), "bfloat16"), ((9, 0), "bfloat16")],
)
def test_a_gpu_computes_in_bfloat16_from_ampere_on(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], found: str
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert resolve("auto", "cuda:1") == resolve("auto", "cuda") == found
    assert trained_in("auto", "cuda") == ("float32" if found == "float16" else found)


def test_another_device_computes_in_float32() -> None:
    assert resolve("auto", "mps") == "float32"


def test_a_type_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="dtype: 'int8' is not allowed; use auto, float32"):
        resolve("int8", "cpu")


@pytest.mark.parametrize("line", ["flags\t\t: fpu avx512_bf16", "Features\t: fpu avx512_bf16"])
def test_flags_are_those_of_the_first_processor(tmp_path: Path, line: str) -> None:
    listing = tmp_path / "cpuinfo"
    listing.write_text(f"processor : 0\n{line}\nprocessor : 1\nflags : amx_bf16\n")
    assert cpu_flags(listing) == {"fpu", "avx512_bf16"}


def test_a_system_without_a_listing_has_no_flags(tmp_path: Path) -> None:
    assert cpu_flags(tmp_path / "none") == frozenset()
