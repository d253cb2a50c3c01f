# SPDX-License-Identifier: Apache-2.0
"""Freed memory is kept for the next tensor.

By default glibc hands every large block back to the system and asks for it anew; with tensors of
tens of megabytes at each step that costs more than the arithmetic, most of all in virtual machines.
"""

import ctypes
import sys
from functools import cache

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE, _LARGEST = 2**30, 2**31 - 1


@cache
def hold_memory() -> bool:
    """Have this process keep what it frees; False where its C library has no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    settings = ((_M_MMAP_THRESHOLD, _LARGE), (_M_TRIM_THRESHOLD, _LARGEST))
    done = [mallopt(name, value) for name, value in settings]
    return all(code == 1 for code in done)
