# SPDX-License-Identifier: Apache-2.0
"""The store's file is never written in place: what a kill may cut, and what it leaves."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from killed_folds import KILLS, TIMES, TOGETHER, add

from stages.errors import StoreError
from store import checkpoint, db
from store.db import Store
from store.instance import Attached

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("killed_folds.py")
OPEN = "import duckdb, sys; duckdb.connect(sys.argv[1])"


def events(store: Store) -> int:
    with store.transaction() as tx:
        (row,) = tx.ask("doctor_extent")
    return int(row["events"])


def told(what: str, store: Store) -> list[dict[str, Any]]:
    """What the program tells, about a store in a folder of its own."""
    place = store.folder / "place" / store.path.name
    place.parent.mkdir()
    store.path.rename(place)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), what, str(place)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_commit_is_in_the_log_and_whoever_opens_the_file_sees_it(store: Store) -> None:
    before = store.path.read_bytes()
    add(store, "one")
    assert store.path.read_bytes() == before
    assert checkpoint.wal_of(store.path).stat().st_size > 0
    assert events(store) == 1
    with duckdb.connect(str(store.path), read_only=True) as plain:
        assert plain.execute("select message from event").fetchall() == [("one",)]


def test_no_file_that_had_the_stores_name_is_ever_written_to(store: Store) -> None:
    before = store.path.read_bytes()
    with store.path.open("rb") as file:
        for _ in range(3):
            add(store, "x" * 1000)
            store.snapshot()
        assert file.read() == before
    assert events(store) == 3
    assert not checkpoint.wal_of(store.path).exists()
    assert store.path.read_bytes() == store.copy.read_bytes()


def test_a_store_whose_file_holds_all_is_not_made_anew(store: Store) -> None:
    add(store, "one")
    store.snapshot()
    named = checkpoint.identity(store.path)
    store.snapshot()
    assert checkpoint.identity(store.path) == named


def test_a_fold_that_is_killed_before_any_of_its_steps_loses_nothing(store: Store) -> None:
    lines = told("steps", store)
    assert {(line["code"], line["events"]) for line in lines} == {(0, 1)}
    assert sum("again" in line for line in lines) >= 2  # what finishes it was killed, too
    cut = [line for line in lines if line.get("folded")]
    assert len(cut) >= 2  # at least before the log is removed, and before the rename
    for line in cut:
        (said,) = line["said"]
        assert "a process was killed while it folded the log in" in said
    assert not any("store.folded.duckdb" in line["names"] for line in lines)


def test_processes_that_find_a_fold_cut_short_at_once_all_commit(store: Store) -> None:
    lines = told("together", store)
    assert [line["codes"] for line in lines] == [[0] * TOGETHER] * TIMES
    assert [line["events"] for line in lines] == [1 + TOGETHER] * TIMES


def test_a_store_that_is_killed_anywhere_holds_every_commit_that_was_told(store: Store) -> None:
    lines = told("anywhere", store)
    assert [line["code"] for line in lines] == [0] * KILLS
    assert all(line["told"] <= line["events"] <= line["told"] + 1 for line in lines)


def test_a_log_is_folded_in_within_a_round_before_it_is_long(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "LOG_BYTES", 30_000)
    monkeypatch.setattr(checkpoint, "LOG_SHARE", 1 << 40)
    sizes = []
    for _ in range(30):
        add(store, "x" * 4000)
        sizes.append(checkpoint.bytes_of(checkpoint.wal_of(store.path)))
    assert max(sizes) <= 30_000
    assert sizes.count(0) >= 3
    assert events(store) == 30
    assert not store.copy.exists()


@pytest.mark.parametrize(
    ("log", "file", "long"),
    [(2, 10, False), (3, 10, True), (3, 1000, False), (32, 1000, True)],
)
def test_a_log_may_be_2_mib_or_a_32nd_of_the_file(
    tmp_path: Path, log: int, file: int, long: bool
) -> None:
    for name, mib in (("store.duckdb", file), ("store.duckdb.wal", log)):
        with (tmp_path / name).open("wb") as sparse:
            sparse.truncate(mib << 20)
    assert checkpoint.is_long(tmp_path / "store.duckdb") is long


def test_nobody_else_gets_in_until_the_folded_file_is_in_place(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock would be gone if a descriptor of the file had been closed meanwhile."""
    refused = []
    real = checkpoint.replace

    def replace(path: Path, draft: Path) -> None:
        other = subprocess.run(
            [sys.executable, "-c", OPEN, str(path)], capture_output=True, text=True
        )
        refused.append(other.stderr)
        real(path, draft)

    monkeypatch.setattr(checkpoint, "replace", replace)
    add(store, "one")
    store.snapshot()
    assert len(refused) == 1
    assert "Could not set lock" in refused[0]


def test_a_file_that_has_lost_its_name_while_it_was_opened_is_not_used(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = []

    class Slow(Attached):
        def __init__(self, path: Path, make: Callable[[Path], duckdb.DuckDBPyConnection]) -> None:
            super().__init__(path, make)
            if not late:
                late.append(path)
                path.with_name("new").write_bytes(path.read_bytes())
                path.with_name("new").rename(path)

    monkeypatch.setattr(db, "Attached", Slow)
    add(store, "one")
    assert late
    assert events(store) == 1


def test_a_fold_within_a_transaction_of_the_same_process_is_refused(store: Store) -> None:
    with store.transaction() as tx:
        tx.append(
            "add_event",
            run_id=None, round=None, refresh=None, kind="x", message="outer", detail=None,
        )  # fmt: skip
        add(store, "inner")
        with pytest.raises(StoreError, match="open twice in this process: end the other"):
            store.snapshot()
    store.snapshot()
    assert events(store) == 2


def test_a_large_commit_does_not_touch_the_file_s_head(store: Store) -> None:
    """DuckDB writes whole row groups to free places of the file; its headers stay as they are."""
    before = store.path.read_bytes()
    with store.transaction() as tx:
        connection = tx._connection
        connection.execute(
            "insert into event select null, null, null, now(), 'k', repeat('x', 20), null "
            "from range(300_000)"
        )
    assert store.path.read_bytes()[: len(before)] == before
    assert events(store) == 300_000
