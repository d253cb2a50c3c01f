# SPDX-License-Identifier: Apache-2.0
"""What a run was made with: versions, commit, host. Stored with the run before its first step."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "starloop",
    "prefect",
    "duckdb",
    "pyarrow",
    "torch",
    "transformers",
    "trl",
    "datasets",
    "accelerate",
)


def manifest() -> dict[str, Any]:
    """Versions of the packages that shape a run, the checkout's commit, host and accelerators."""
    return {
        "packages": {name: _version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "system": platform.platform(),
        "host": platform.node(),
        "cpus": os.cpu_count(),
        "accelerators": _accelerators(),
    }


def _accelerators() -> int:
    """NVIDIA devices that the driver lists, those hidden by CUDA_VISIBLE_DEVICES left out."""
    listed = len(list(Path("/proc/driver/nvidia/gpus").glob("*")))
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [] if shown is None else [name.strip() for name in shown.split(",")]
    return listed if shown is None else min(listed, sum(name not in ("", "-1") for name in names))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    checkout = Path(__file__).resolve().parents[1]
    try:
        done = subprocess.run(
            ["git", "-C", str(checkout), *arguments], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
