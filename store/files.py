# SPDX-License-Identifier: Apache-2.0
"""Copying a store file: a reflink where the file system has them, else the kernel copies."""

import errno
import fcntl
import os
import shutil
import sys
from pathlib import Path

_FICLONE = 0x40049409  # linux/fs.h
_CHUNK = 1 << 30
_NO_SUCH_WAY = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTTY}


def copy_file(source: Path, target: Path) -> None:
    """Copy `source` to `target`, which is replaced; OSError as the system says it."""
    if sys.platform != "linux":
        shutil.copyfile(source, target)
        return
    with source.open("rb") as reading, target.open("wb") as writing:
        try:
            fcntl.ioctl(writing, _FICLONE, reading.fileno())
            return
        except OSError as error:
            if error.errno not in _NO_SUCH_WAY:
                raise
        try:
            while os.copy_file_range(reading.fileno(), writing.fileno(), _CHUNK):
                pass
            return
        except OSError as error:
            if error.errno not in _NO_SUCH_WAY:
                raise
        reading.seek(0)
        writing.seek(0)
        writing.truncate()
        shutil.copyfileobj(reading, writing, 1 << 24)
