# SPDX-License-Identifier: Apache-2.0
"""SHA-256 of files: streamed, several at a time, large ones remembered by what `stat` says.

The memory is one JSON file in the user's cache folder, so that a checkpoint of many gigabytes,
wherever it lies, is not read again at each start. A hash counts while device, inode, size,
mtime and ctime are those it was taken at; a file that changed less than two seconds before it
was read is not remembered, since a later write could leave it with the same times.
"""

import hashlib
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

LARGE = 16 * 2**20
KEPT = 4096
_SETTLED_NS = 2 * 10**9


def file_hash(path: Path, *, anew: bool = False) -> str:
    """The SHA-256 of a file as hex; `anew` reads it whatever is remembered."""
    return file_hashes([path], anew=anew)[0]


def file_hashes(paths: Sequence[Path], *, anew: bool = False) -> list[str]:
    """The SHA-256 of each file, in order."""
    large = [path.stat().st_size >= LARGE for path in paths]
    known = _remembered() if any(large) and not anew else {}
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        read = list(pool.map(lambda path: _hash(path, known), paths))
    fresh = {key: digest for digest, key in read if key is not None and key not in known}
    if fresh:
        _remember(fresh)
    return [digest for digest, _ in read]


def _hash(path: Path, known: dict[str, str]) -> tuple[str, str | None]:
    """A file's hash, and the key it may be remembered under."""
    key = _key(path)
    if key in known:
        return known[key], key
    began = time.time_ns()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    stat = path.stat()
    settled = max(stat.st_mtime_ns, stat.st_ctime_ns) + _SETTLED_NS < began
    unchanged = settled and stat.st_size >= LARGE and _key(path) == key
    return digest, key if unchanged else None


def _key(path: Path) -> str:
    stat = path.stat()
    return f"{stat.st_dev}-{stat.st_ino}-{stat.st_size}-{stat.st_mtime_ns}-{stat.st_ctime_ns}"


def memory() -> Path:
    """Where hashes are remembered: `XDG_CACHE_HOME` or `~/.cache`."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path("~/.cache").expanduser()) / "starloop" / "hashes.json"


def _remembered() -> dict[str, str]:
    """What the file holds; nothing where it is missing or broken."""
    try:
        found = json.loads(memory().read_text())
        return {key: digest for key, digest in found.items() if len(bytes.fromhex(digest)) == 32}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _remember(fresh: dict[str, str]) -> None:
    """Add hashes, newest last; a lost or refused write only costs another reading."""
    kept = list({**_remembered(), **fresh}.items())[-KEPT:]
    target = memory()
    partial = target.with_suffix(f".{os.getpid()}.tmp")
    with suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(dict(kept), indent=0))
        partial.replace(target)
