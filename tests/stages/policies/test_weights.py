# SPDX-License-Identifier: Apache-2.0
"""Numbers in a checkpoint's files: the bits say what torch says."""

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from stages.policies.weights import no_number

FLOATS = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_bits_are_numbers_where_torch_says_so(
    dtype: torch.dtype, tmp_path: Path, data: st.DataObject
) -> None:
    whole = FLOATS[dtype]
    bounds = torch.iinfo(whole)
    bits = data.draw(st.lists(st.integers(bounds.min, bounds.max), max_size=8))
    tensor = torch.tensor(bits, dtype=whole).view(dtype)
    save_file({"b": tensor, "a": torch.ones(3, dtype=dtype)}, tmp_path / "model.safetensors")
    assert no_number(tmp_path) == (None if bool(torch.isfinite(tensor).all()) else "b")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_the_first_such_tensor_is_named(dtype: torch.dtype, value: float, tmp_path: Path) -> None:
    spoiled = torch.tensor([[0.0, 1.0], [value, -2.0]], dtype=dtype)
    whole = {"count": torch.tensor([-1, 2**31 - 1], dtype=torch.int32)}
    largest = torch.full((1,), torch.finfo(dtype).max, dtype=dtype)
    save_file({"y": spoiled, "z": spoiled.clone(), "largest": largest, **whole},
              tmp_path / "model.safetensors")  # fmt: skip
    assert no_number(tmp_path) == "y"
    save_file({"largest": largest, **whole}, tmp_path / "model.safetensors")
    assert no_number(tmp_path) is None
