# SPDX-License-Identifier: Apache-2.0
"""One file and two processes: writers take turns, readers stop nobody, a kill tears nothing."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from stages.errors import LockedError, StoreError
from store.db import Store

HOLD = """
import duckdb, sys, time
with duckdb.connect(sys.argv[1]):
    print("holding", flush=True)
    time.sleep(float(sys.argv[2]))
"""
READ = """
import sys
from pathlib import Path
from store.db import Store
reader = Store(Path(sys.argv[1])).reader()
for _ in sys.stdin:
    print(reader.execute("select count(*) from event").fetchone()[0], flush=True)
"""
SNAPSHOT_CUT_SHORT = """
import os, signal, sys
from pathlib import Path
from store.db import Store
store = Store(Path(sys.argv[1]))
def watch(event, arguments):
    if event == "os.rename" and str(arguments[1]) == str(store.copy):
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(watch)
store.snapshot()
"""


@contextmanager
def python(code: str, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    child = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def add_event(store: Store) -> None:
    with store.transaction() as tx:
        tx.append(
            "add_event",
            run_id=None, round=None, refresh=None, kind="x", message="x", detail=None,
        )  # fmt: skip


def events(store: Store) -> int:
    with store.reader() as connection:
        found = connection.execute("select count(*) from event").fetchone()
    assert found is not None
    return int(found[0])


def test_a_writer_waits_for_another_process_says_whom_for_and_goes_on(store: Store) -> None:
    said: list[str] = []
    patient = Store(store.path, said.append, patience_s=60)
    with python(HOLD, store.path, 1.8) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        begun = time.monotonic()
        add_event(patient)
        assert time.monotonic() - begun > 0.5
    store.snapshot()
    assert events(store) == 1
    assert said == [f"waiting for the store: process {holder.pid} has {store.path} open"]


def test_a_writer_that_lost_patience_names_the_process_that_holds_the_store(store: Store) -> None:
    with python(HOLD, store.path, 60) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(LockedError, match=f"held by process {holder.pid}: end it"):
            add_event(store)
    add_event(store)


def test_a_reader_that_stays_open_stops_no_writer_and_sees_its_own_copy(store: Store) -> None:
    store.snapshot()
    with python(READ, store.path) as reader:
        assert reader.stdin is not None and reader.stdout is not None
        for expected in (0, 0):
            reader.stdin.write("\n")
            reader.stdin.flush()
            assert int(reader.stdout.readline()) == expected
            add_event(store)
            store.snapshot()
    assert events(store) == 2


def test_a_second_reader_of_one_process_sees_the_newest_copy(store: Store) -> None:
    store.snapshot()
    with store.reader() as left_open:
        add_event(store)
        store.snapshot()
        assert left_open.execute("select count(*) from event").fetchone() == (0,)
        assert events(store) == 1


def test_the_copy_is_as_old_as_the_last_snapshot_and_equals_the_store(store: Store) -> None:
    add_event(store)
    assert store.snapshot() == store.copy
    add_event(store)
    assert events(store) == 1
    store.snapshot()
    assert events(store) == 2
    assert store.copy.read_bytes() == store.path.read_bytes()


def test_a_reader_makes_the_copy_where_there_is_none(store: Store) -> None:
    add_event(store)
    assert events(store) == 1
    assert store.copy.exists()


def test_a_reader_can_write_neither_to_the_copy_nor_to_the_store(store: Store) -> None:
    with store.reader() as connection, pytest.raises(duckdb.Error, match="read-only"):
        connection.execute("delete from store_info")


def test_a_snapshot_that_is_killed_leaves_the_old_copy_whole(store: Store) -> None:
    store.snapshot()
    add_event(store)
    with python(SNAPSHOT_CUT_SHORT, store.path) as child:
        assert child.wait(timeout=60) == -signal.SIGKILL
    assert events(store) == 0
    store.snapshot()
    assert events(store) == 1


def test_two_stores_in_one_folder_have_copies_of_their_own(tmp_path: Path) -> None:
    copies = {Store(tmp_path / name).copy for name in ("exp.1", "exp.2", "exp.duckdb", "exp.db")}
    assert len(copies) == 4


def test_a_copy_that_cannot_be_read_is_named_with_what_to_do(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.duckdb")
    store.create()
    store.copy.write_text("garbage" * 100)
    with pytest.raises(StoreError, match="delete it, it is made anew from the store"):
        store.reader()
