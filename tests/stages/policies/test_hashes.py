# SPDX-License-Identifier: Apache-2.0
"""Hashes of files: right whatever is remembered, and large files are read once."""

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.policies import hashes
from stages.policies.hashes import file_hash, file_hashes, memory

WHOLE = b"starloop" * 100


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, in which every size counts as large."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(hashes, "LARGE", 1)
    monkeypatch.setattr(hashes, "_SETTLED_NS", -(10**12))
    return memory()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    path.write_bytes(WHOLE)
    return path


def forge(cache: Path, file: Path) -> str:
    """Let the memory say something else of a file, so that it shows who answers."""
    file_hash(file)
    (key,) = json.loads(cache.read_text())
    cache.write_text(json.dumps({key: "ab" * 32}))
    return "ab" * 32


def test_a_hash_is_sha256_of_the_bytes(file: Path) -> None:
    assert file_hash(file) == sha256(WHOLE).hexdigest()


@given(st.lists(st.binary(max_size=50), max_size=12))
def test_hashes_come_in_the_order_of_the_files(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    paths = [folder / f"{i}" for i in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    assert file_hashes(paths) == [sha256(content).hexdigest() for content in contents]
    assert file_hashes(paths) == [sha256(content).hexdigest() for content in contents]


def test_a_file_that_stays_is_not_read_again(cache: Path, file: Path) -> None:
    forged = forge(cache, file)
    assert file_hash(file) == forged


def test_a_renamed_folder_is_not_read_again(cache: Path, file: Path) -> None:
    forged = forge(cache, file)
    moved = file.parent.rename(file.parent.with_name("moved"))
    os.environ["XDG_CACHE_HOME"] = str(moved / "cache")
    assert file_hash(moved / file.name) == forged
    moved.rename(file.parent)


def test_a_reading_anew_asks_no_memory(cache: Path, file: Path) -> None:
    forge(cache, file)
    assert file_hash(file, anew=True) == sha256(WHOLE).hexdigest()


def test_a_change_that_keeps_size_and_mtime_is_seen(cache: Path, file: Path) -> None:
    forge(cache, file)
    before = file.stat()
    file.write_bytes(WHOLE.upper())
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert file_hash(file) == sha256(WHOLE.upper()).hexdigest()


def test_a_file_put_in_its_place_is_seen(cache: Path, file: Path) -> None:
    forge(cache, file)
    other = file.with_name("other")
    other.write_bytes(WHOLE.upper())
    other.replace(file)
    assert file_hash(file) == sha256(WHOLE.upper()).hexdigest()


@pytest.mark.parametrize(
    "broken", [b"", b"{", b"[]", b"null", b'{"a": 3}', b'{"a": "xy"}', b"\xff"]
)
def test_a_broken_memory_is_ignored_and_mended(cache: Path, file: Path, broken: bytes) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_bytes(broken)
    assert file_hash(file) == sha256(WHOLE).hexdigest()
    assert list(json.loads(cache.read_text()).values()) == [sha256(WHOLE).hexdigest()]


def test_a_memory_that_cannot_be_written_is_done_without(
    cache: Path, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    assert file_hash(file) == sha256(WHOLE).hexdigest()


def test_a_file_that_was_just_written_is_not_remembered(
    cache: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashes, "_SETTLED_NS", 2 * 10**9)
    file_hash(file)
    assert not cache.exists()


def test_small_files_are_not_remembered(
    cache: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashes, "LARGE", len(WHOLE) + 1)
    file_hash(file)
    assert not cache.exists()


def test_the_memory_keeps_the_newest(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashes, "KEPT", 3)
    for number in range(5):
        (tmp_path / f"{number}").write_text(f"{number}")
        file_hash(tmp_path / f"{number}")
    kept = list(json.loads(cache.read_text()).values())
    assert kept == [sha256(f"{number}".encode()).hexdigest() for number in (2, 3, 4)]
    assert [path.name for path in cache.parent.iterdir()] == [cache.name]
