# SPDX-License-Identifier: Apache-2.0
"""Renames that survive a power cut."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
