# SPDX-License-Identifier: Apache-2.0
"""Copying a store file: a reflink where the file system has them, else the kernel copies."""

import errno
import fcntl
import os
import shutil
import sys
from pathlib import Path
from typing import BinaryIO

_FICLONE = 0x40049409  # linux/fs.h
_CHUNK = 1 << 30
_NO_SUCH_WAY = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTTY}


def copy_file(source: BinaryIO, target: Path) -> None:
    """Copy all of an open file to `target`, which is replaced; OSError as the system says it."""
    with target.open("wb") as writing:
        if sys.platform != "linux" or not _in_kernel(source, writing):
            source.seek(0)
            shutil.copyfileobj(source, writing, 1 << 24)


def _in_kernel(source: BinaryIO, target: BinaryIO) -> bool:
    """Whether the kernel copied it; if not, `target` is empty."""
    try:
        fcntl.ioctl(target, _FICLONE, source.fileno())
        return True
    except OSError as error:
        if error.errno not in _NO_SUCH_WAY:
            raise
    at = 0
    try:
        while copied := os.copy_file_range(source.fileno(), target.fileno(), _CHUNK, at, at):
            at += copied
        return True
    except OSError as error:
        if error.errno not in _NO_SUCH_WAY:
            raise
    target.truncate(0)
    return False


def sync_file(path: Path) -> None:
    """Make what `path` holds survive a power cut."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
