# SPDX-License-Identifier: Apache-2.0
"""One fault at a time, then the same run again: it ends with the rows of one without a fault."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from firing import Range, check_equal, held
from running import ask, contents

EVALUATED = "commit 0 evaluate"
TRAINED = "commit 1 update"
Killed = Callable[[str], Path]


def workspace(store: Path) -> Path:
    """The folder of the step that a kill cut."""
    (space,) = store.parent.glob("try/work/*")
    return space


def refused(gun: Range, store: Path) -> str:
    """How a run ends that cannot go on: its error; it stored nothing."""
    before = contents(store)
    ended = gun.run(store, "rounds=1")
    after = contents(store)
    assert ended.code == 1
    assert {name for name in after if after[name] != before[name]} <= {"event"}
    return ended.errors[0]


def go_on(gun: Range, store: Path, undisturbed: Path, *config: str) -> None:
    """The run again, to its end, which must be that of an undisturbed one."""
    ended = gun.run(store, *(config or ("rounds=1",)))
    assert (ended.code, ended.errors) == (0, [])
    check_equal(store, undisturbed)


# ── files ───────────────────────────────────────────────────────────────────────────────────


def test_shards_cut_short_under_their_final_names_are_named_and_can_be_deleted(
    shooting_range: Range, one_round: Path, killed: Killed
) -> None:
    store = killed(EVALUATED)
    shards = sorted((workspace(store) / "shards").glob("*.parquet"))
    torn = {shards[0]: 0, shards[1]: 4, shards[2]: shards[2].stat().st_size // 2}
    for shard, size in torn.items():
        os.truncate(shard, size)
    for shard in torn:
        error = refused(shooting_range, store)
        assert error.startswith(f"StoreError shard {shard} cannot be read")
        assert error.endswith("delete it and run again")
        shard.unlink()
    go_on(shooting_range, store, one_round)


def test_a_partial_shard_of_a_killed_process_is_no_shard(
    shooting_range: Range, one_round: Path, killed: Killed
) -> None:
    store = killed(EVALUATED)
    shard = sorted((workspace(store) / "shards").glob("*.parquet"))[0]
    os.truncate(shard, 100)
    shard.rename(shard.with_suffix(".4711.tmp"))
    go_on(shooting_range, store, one_round)


def damage(folder: Path, fault: str) -> None:
    """Do to a checkpoint what a crash or a bad disk does."""
    (weights,) = folder.glob("*.safetensors")
    if fault == "no marker":
        (folder / "COMPLETE").unlink()
    else:
        weights.write_bytes(weights.read_bytes()[:-1] + b"?")


@pytest.mark.parametrize("fault", ["no marker", "a byte of the weights"])
def test_a_checkpoint_that_is_not_whole_is_not_taken_and_is_made_again(
    shooting_range: Range, one_round: Path, killed: Killed, fault: str
) -> None:
    """Killed between the checkpoint's rename and the commit of its update."""
    store = killed(TRAINED)
    (folder,) = (store.parent / "models").iterdir()
    damage(folder, fault)
    go_on(shooting_range, store, one_round)


@pytest.mark.slow
def test_a_draft_of_a_killed_update_is_thrown_away(
    shooting_range: Range, one_round: Path, killed: Killed
) -> None:
    store = killed(TRAINED)
    (folder,) = (store.parent / "models").iterdir()
    (folder / "COMPLETE").unlink()
    (folder / "COMPLETE.tmp").write_text("{")
    (folder / "model-00002-of-00002.safetensors").write_bytes(b"torn")
    ((key,),) = ask(one_round, "select step_key from step_run where step = 'update'")
    draft = store.parent / "try" / "work" / str(key) / "draft"
    draft.parent.mkdir(parents=True, exist_ok=True)
    folder.rename(draft)
    go_on(shooting_range, store, one_round)


def test_a_committed_checkpoint_that_is_torn_later_is_named_and_can_be_put_back(
    shooting_range: Range, one_round: Path, killed: Killed
) -> None:
    store = killed("end 1 watch")
    ((path,),) = ask(store, "select path from model where origin = 'update'")
    (weights,) = (store.parent / path).glob("*.safetensors")
    whole = weights.read_bytes()
    os.truncate(weights, 1000)
    error = refused(shooting_range, store)
    assert f"checkpoint {store.parent / path} is missing or torn" in error
    weights.write_bytes(whole)
    go_on(shooting_range, store, one_round)


# ── no room ─────────────────────────────────────────────────────────────────────────────────


def test_a_shard_that_may_not_grow_ends_the_run_and_the_others_stay(
    shooting_range: Range, one_round: Path, tmp_path: Path
) -> None:
    """No file of the process may pass 2 KiB from the evaluation on; a shard is larger."""
    store = tmp_path / "store.duckdb"
    full = shooting_range.run(store, "rounds=1", limits={"0 evaluate": 2048})
    assert (full.code, full.last()) == (1, ("begin", "0", "evaluate"))
    assert "File too large" in full.errors[0]
    go_on(shooting_range, store, one_round)


def test_a_commit_that_finds_no_room_stores_nothing(
    shooting_range: Range, one_round: Path, killed: Killed
) -> None:
    """The shards fit, the log of the commit does not."""
    store = killed(EVALUATED)
    before = contents(store)
    full = shooting_range.run(store, "rounds=1", limits={"0 evaluate": 40_000})
    assert (full.code, full.last()) == (1, ("commit", "0", "evaluate"))
    assert "nothing of this step was stored; make room or mend the disk" in full.errors[0]
    after = contents(store)
    assert {name for name in after if after[name] != before[name]} <= {"event"}
    go_on(shooting_range, store, one_round)


def test_a_store_file_that_may_not_grow_keeps_what_was_committed(
    shooting_range: Range, one_round: Path, killed: Killed
) -> None:
    """The log of the commit fits, the file that it is to go into may not grow."""
    store = killed(EVALUATED)
    before = contents(store)
    limits = {"0 evaluate": store.stat().st_size + 1024}
    full = shooting_range.run(store, "rounds=1", limits=limits)
    assert full.code == 1
    assert "make room or mend the disk and run the same command again" in full.errors[0]
    after = contents(store)
    lost = {name: [row for row in before[name] if row not in after[name]] for name in before}
    assert not any(lost.values())
    go_on(shooting_range, store, one_round)


@contextmanager
def small_disk(folder: Path, kib: int) -> Iterator[Path]:
    """A file system of so many KiB, in memory."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)]
    mount = shutil.which("mount")
    if mount is None or subprocess.run([mount, *options], capture_output=True).returncode:
        pytest.skip("a small tmpfs cannot be mounted (it takes root on Linux)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("kib", [2500, 5000])
def test_a_disk_that_is_full_says_so_and_with_more_room_the_run_goes_on(
    shooting_range: Range, one_round: Path, tmp_path: Path, kib: int
) -> None:
    with small_disk(tmp_path / "disk", kib) as disk:
        store = disk / "store.duckdb"
        full = shooting_range.run(store, "rounds=1")
        assert full.code == 1, "the disk has room for all of it: make it smaller"
        assert "No space left on device" in full.errors[0] or "make room" in full.errors[0]
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        go_on(shooting_range, store, one_round)


# ── the store is held ───────────────────────────────────────────────────────────────────────


def test_a_store_held_for_a_while_is_waited_for(
    shooting_range: Range, one_round: Path, killed: Killed
) -> None:
    store = killed("begin 1 mix")
    with held(store) as holder:
        waiting = shooting_range.start(store, "rounds=1")
        assert shooting_range.wait_for("say waiting for the store")
        assert waiting.said[-1] == f"waiting for the store: process {holder} has {store} open"
    assert shooting_range.wait().code == 0
    check_equal(store, one_round)


def test_a_store_held_for_longer_than_its_patience_ends_the_run_with_the_holders_name(
    shooting_range: Range, one_round: Path, killed: Killed
) -> None:
    store = killed("begin 1 mix")
    with held(store) as holder:
        ended = shooting_range.run(store, "rounds=1", patience=0.5)
    assert ended.code == 4
    assert f"LockedError store {store} is held by process {holder}: end it" in ended.errors[0]
    go_on(shooting_range, store, one_round)


# ── the clock ───────────────────────────────────────────────────────────────────────────────


def libfaketime() -> Path | None:
    """The library that gives a process another time of day, where the system has it."""
    found = [*Path("/usr/lib").glob("*/faketime/libfaketime.so.1")]
    named = os.environ.get("LIBFAKETIME")
    return Path(named) if named else (found[0] if found else None)


@pytest.mark.slow
def test_a_clock_set_back_a_day_in_the_middle_changes_nothing(
    tiny_folder: Path, undisturbed: Path, tmp_path: Path
) -> None:
    library = libfaketime()
    if library is None:
        pytest.skip("libfaketime is not there: apt-get install libfaketime, or name the library "
                    "in LIBFAKETIME")  # fmt: skip
    clock = tmp_path / "clock"
    clock.write_text("+0")
    environment = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    store = tmp_path / "store.duckdb"
    with Range(tiny_folder, environment) as gun:
        gun.start(store)
        assert gun.wait_for("begin 1 rationalize")
        clock.write_text("-1d")
        assert gun.wait_for("commit 2 verify")
        gun.kill()
        clock.write_text("-2d")
        ended = gun.run(store)
    assert (ended.code, ended.errors) == (0, [])
    check_equal(store, undisturbed)
    back = "select count(distinct started_at::date) from step_run"
    assert ask(store, back) == [(3,)], "the clock was not set back"
