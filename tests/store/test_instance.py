# SPDX-License-Identifier: Apache-2.0
"""The kept DuckDB instance: a file is open only while something is connected to it."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from store import checkpoint
from store import instance as kept
from store.db import Store, instance
from store.instance import Attached

OPEN = "import duckdb, sys; duckdb.connect(sys.argv[1]).close()"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = Store(tmp_path / "a 'quoted' store.duckdb")
    found.create()
    return found


def others_may_open(path: Path) -> bool:
    return (
        subprocess.run([sys.executable, "-c", OPEN, str(path)], capture_output=True).returncode == 0
    )


def add(store: Store, message: str) -> None:
    with store.transaction() as tx:
        tx.append(
            "add_event",
            run_id=None, round=None, refresh=None, kind="x", message=message, detail=None,
        )  # fmt: skip


def events(store: Store) -> int:
    with store.transaction() as tx:
        (row,) = tx.ask("doctor_extent")
    return int(row["events"])


def test_transactions_share_an_instance_and_leave_the_file_to_others_in_between(
    store: Store,
) -> None:
    seen = set()
    for name in ("one", "two", "three"):
        with store.transaction():
            seen.add(id(kept._instances[store.path]))
            assert checkpoint.is_open_here(store.path)
            assert not others_may_open(store.path)
        assert not checkpoint.is_open_here(store.path)
        add(store, name)
    assert events(store) == 3
    assert others_may_open(store.path)
    assert len(seen) == 1


def test_what_fails_is_rolled_back_and_its_instance_is_not_used_again(store: Store) -> None:
    add(store, "one")
    before = kept._instances[store.path]
    with pytest.raises(ZeroDivisionError), store.transaction() as tx:
        tx.append(
            "add_event",
            run_id=None, round=None, refresh=None, kind="x", message="lost", detail=None,
        )  # fmt: skip
        raise ZeroDivisionError
    assert store.path not in kept._instances
    assert others_may_open(store.path)
    assert events(store) == 1
    assert kept._instances[store.path] is not before


def test_two_at_once_share_the_file_and_the_last_one_closes_it(store: Store) -> None:
    outer, inner = Attached(store.path, instance), Attached(store.path, instance)
    assert not outer.alone
    outer.close()
    assert inner.alone
    assert not others_may_open(store.path)
    inner.close()
    assert others_may_open(store.path)


def test_one_that_failed_beside_another_leaves_the_other_its_file(store: Store) -> None:
    outer, inner = Attached(store.path, instance), Attached(store.path, instance)
    inner.close(failed=True)
    assert outer.connection.execute("select 1 from run").fetchall() == []
    outer.close()
    assert others_may_open(store.path)
    assert events(store) == 0


def test_a_detach_that_was_cut_off_is_made_good(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between the last statement and the detaching."""
    attached = Attached(store.path, instance)

    class Cut:
        def __init__(self, real: duckdb.DuckDBPyConnection) -> None:
            self.real = real

        def execute(self, sql: str) -> None:
            raise KeyboardInterrupt

        def close(self) -> None:
            self.real.close()

    kept._instances[store.path].base = Cut(attached._instance.base)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        attached.close()
    add(store, "after it")
    assert events(store) == 1
    assert others_may_open(store.path)


def test_a_store_that_another_process_holds_is_waited_for(store: Store) -> None:
    hold = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(store.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdout and other.stdin
        other.stdout.readline()
        with pytest.raises(duckdb.IOException, match="Could not set lock"):
            Attached(store.path, instance)
        other.stdin.write("\n")
        other.stdin.close()
        add(store, "after it")
    assert events(store) == 1


def test_another_store_ends_the_instance_of_the_one_before(store: Store, tmp_path: Path) -> None:
    add(store, "one")
    other = Store(tmp_path / "other.duckdb")
    other.create()
    assert [*kept._instances] == [other.path]
    with store.transaction(), other.transaction():
        assert {*kept._instances} == {store.path, other.path}
