# SPDX-License-Identifier: Apache-2.0
"""`starloop doctor` on a finished run: silent when all is well, one finding for each damage."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from running import Ended, ask, contents

from flows.doctor import OUTLINE, Place, location, parse_mount, parse_mountinfo
from flows.lock import run_lock
from stages import ids
from stages.rows import Trajectory
from stages.shards import write_shard
from store.db import Store

Command = Callable[..., Ended]


def change(store: Path, sql: str, *values: object) -> None:
    with duckdb.connect(str(store)) as connection:
        connection.execute(sql, values)


def found(command: Command, store: Path) -> list[str]:
    """What the doctor finds: its lines but those that say how to mend."""
    ended = command("doctor", "--store", store)
    assert ended.err == ""
    lines = ended.out.splitlines()
    if ended.code == 0:
        assert lines[0] == f"nothing found in {store}:"
        return []
    assert ended.code == 1
    assert [line[:4] for line in lines[1::2]] == ["  → "] * (len(lines) // 2)
    return lines[::2]


def test_nothing_is_found_after_a_finished_run_and_the_checks_are_listed(
    command: Command, copied: Path
) -> None:
    before = contents(copied)
    ended = command("doctor", "--store", copied)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert len(lines) == 1 + len(OUTLINE) == 12
    assert all(line.startswith("  ") and len(line) > 20 for line in lines[1:])
    assert contents(copied) == before


LAST = "where rowid = (select max(rowid) from {table})"
CONTENT = {
    "run.run_id": "update run set name = 'other'",
    "problem.problem_id": f"update problem set answer = '0' {LAST}",
    "prompt_set.prompt_set_id": "update prompt_set set plain = 'x'",
    "prompt.prompt_id": f"update prompt set hinted = not hinted {LAST}",
    "sampling.sampling_id": f"update sampling set config = 'x' {LAST}",
    "trajectory.trajectory_id": f"update trajectory set seed = 1 {LAST}",
    "trajectory.content_id": f"update trajectory set token_ids = [1] {LAST}",
    "verifier.verifier_id": "update verifier set version = '0'",
    "verdict.verdict_id": f"update verdict set attempt = 9 {LAST}",
    "training_row.training_row_id": f"update training_row set weight = 2.5 {LAST}",
    "training_set.training_set_id": f"update training_row set position = -1 {LAST}",
    "training_update.update_id": f"update training_update set seed = 1 {LAST}",
    "evaluation.evaluation_id": f"update evaluation set n = 1 {LAST}",
}


@pytest.mark.parametrize("column", CONTENT)
def test_an_id_that_its_content_does_not_make_is_found(
    command: Command, copied: Path, column: str
) -> None:
    sql = CONTENT[column]
    change(copied, sql.format(table=sql.split()[1]))
    (line,) = found(command, copied)
    assert line.startswith(f"1 id of {column} not made of the row's content: {column} ")


def last_model(store: Path) -> tuple[str, Path]:
    ((model_id, path),) = ask(
        store, "select model_id::varchar, path from model where origin = 'update' limit 1"
    )
    return model_id, store.parent / path


def test_a_model_whose_folder_is_gone_is_found_unless_it_was_freed(
    command: Command, copied: Path
) -> None:
    model, folder = last_model(copied)
    shutil.rmtree(folder)
    assert found(command, copied) == [f"model {model}: its folder is gone: {folder}"]
    change(
        copied,
        "insert into event values (null, null, null, now(), 'freed', 'freed', ?)",
        json.dumps({"model": model}),
    )
    Store(copied).snapshot()
    assert found(command, copied) == []


def test_a_checkpoint_that_is_not_whole_is_found(command: Command, copied: Path) -> None:
    model, folder = last_model(copied)
    marker = (folder / "COMPLETE").read_bytes()
    weights = next(folder.glob("*.safetensors"))
    whole = weights.read_bytes()

    (folder / "COMPLETE").unlink()
    (line,) = found(command, copied)
    assert line.startswith(f"model {model}: its folder has no COMPLETE marker")

    (folder / "COMPLETE").write_bytes(marker)
    for torn in (whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        weights.write_bytes(torn)
        (line,) = found(command, copied)
        assert "another size or hash than COMPLETE says" in line

    weights.write_bytes(whole)
    assert found(command, copied) == []


def test_a_folder_that_holds_another_model_is_found(command: Command, copied: Path) -> None:
    ((base, path),) = ask(
        copied, "select model_id::varchar, path from model where origin = 'outside'"
    )
    _, other = last_model(copied)
    shutil.rmtree(copied.parent / path)
    shutil.copytree(other, copied.parent / path)
    (line,) = found(command, copied)
    assert line.startswith(f"model {base}: its folder holds model ")


def test_rows_that_wait_in_a_work_folder_are_found(command: Command, copied: Path) -> None:
    some = [id_ for (id_,) in ask(copied, "select trajectory_id from trajectory limit 3")]
    with Store(copied).transaction() as tx:
        rows = tx.rows(Trajectory, "trajectories_by_id", ids=some)
    key = ids.mint("k", "some step")
    shards = copied.parent / "try" / "work" / str(key) / "shards"
    write_shard(shards / "1.parquet", Trajectory, rows)
    assert found(command, copied) == []  # all three are in the store

    change(copied, "delete from trajectory where trajectory_id = ?", rows[0].trajectory_id)
    waiting = f"run try: 1 sampled rows are not in the store yet (step {key}): {shards}"
    assert waiting in found(command, copied)
    (shards / "1.parquet").write_bytes(b"torn")
    (line,) = [line for line in found(command, copied) if "run try" in line]
    assert f"shard {shards}/1.parquet cannot be read" in line


def test_a_draft_of_an_ended_process_is_found(command: Command, copied: Path) -> None:
    ended = copied.with_name("store.999999999.tmp")
    for path in (ended, copied.with_name(f"store.{os.getpid()}.tmp"), copied.with_name("my.tmp")):
        path.touch()
    assert found(command, copied) == [f"a draft is left of a process that has ended: {ended}"]


def test_a_copy_that_is_older_is_found(command: Command, copied: Path) -> None:
    change(copied, "insert into event (happened_at, kind, message) values (now(), 'cut', 'cut')")
    (line,) = found(command, copied)
    assert line.startswith("the readers' copy is older: it lacks 1 event")


def test_a_run_under_way_is_not_made_to_wait(command: Command, copied: Path) -> None:
    with run_lock(copied.parent / "try", "try"):
        ended = command("doctor", "--store", copied)
    assert (ended.code, ended.out) == (4, "")
    assert f"run try is being worked on by process {os.getpid()}" in ended.err
    assert found(command, copied) == []


# ── where the store lies ────────────────────────────────────────────────────────────────────

MOUNTINFO = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:40 / /home rw shared:9 - nfs4 server:/home rw
41 22 0:41 / /home/me/local rw - xfs /dev/sdb rw
42 22 0:42 / /mnt/two\040words rw - fuse.sshfs me@host: rw
43 22 0:43 / /twice rw - nfs server:/a rw
44 22 0:44 / /twice rw - ext4 /dev/sdc rw
""".strip()
MOUNT = """
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
//me@server/share on /Volumes/share (smbfs, nodev, nosuid, mounted by me)
""".strip()


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/data/runs", None),
        ("/home/me/runs", "on nfs4 (mounted at /home)"),
        ("/home/me/local/runs", None),
        ("/homely/runs", None),
        ("/mnt/two words/runs", "on fuse.sshfs (mounted at /mnt/two words)"),
        ("/twice/runs", None),
        ("/data/Dropbox/runs", "in a folder that is synchronized: Dropbox"),
        ("/data/Dropbox (Work)/x", "in a folder that is synchronized: Dropbox (Work)"),
        ("/data/OneDrive - Us/x", "in a folder that is synchronized: OneDrive - Us"),
        ("/data/Google Drive/x", "in a folder that is synchronized: Google Drive"),
        ("/data/Mobile Documents/x", "in a folder that is synchronized: Mobile Documents"),
        ("/data/iCloud Drive/x", "in a folder that is synchronized: iCloud Drive"),
        ("/data/dropbox-tools/x", None),
    ],
)  # fmt: skip
def test_a_remote_or_synchronized_place_is_found(path: str, what: str | None) -> None:
    place = Place(Store(Path(path) / "store.duckdb"), parse_mountinfo(MOUNTINFO))
    lines = [] if what is None else [f"the store lies {what}"]
    assert [finding.what for finding in location(place)] == lines


def test_the_mount_table_of_macos_is_read() -> None:
    assert parse_mount(MOUNT) == [("/", "apfs"), ("/Volumes/share", "smbfs")]
    place = Place(Store(Path("/Volumes/share/store.duckdb")), parse_mount(MOUNT))
    (finding,) = location(place)
    assert finding.what == "the store lies on smbfs (mounted at /Volumes/share)"


# ── a store that cannot be read ─────────────────────────────────────────────────────────────


def test_a_store_that_is_not_there_is_not_made(command: Command, tmp_path: Path) -> None:
    ended = command("doctor", "--store", tmp_path / "store.duckdb")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("starloop: there is no store at ")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_store_is_one_finding(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    path.write_text("no database\n" * 1000)
    (line,) = found(command, path)
    assert "is not a DuckDB file" in line


def test_a_newer_schema_is_one_finding(command: Command, copied: Path) -> None:
    change(copied, "update store_info set version = 99")
    (line,) = found(command, copied)
    assert line.startswith("the store has schema 99, this starloop has ")


def test_recover_says_what_it_kept_and_what_to_run(command: Command, copied: Path) -> None:
    wal = copied.with_name("store.duckdb.wal")
    wal.write_bytes(b"\0" * 4096)
    (line,) = found(command, copied)
    assert line.startswith("the write-ahead log does not replay")
    assert wal.exists()

    ended = command("doctor", "--store", copied, "--recover")
    lines = ended.out.splitlines()
    backup = copied.with_name("store.unrecovered-1.duckdb")
    assert ended.code == 0
    assert lines[:2] == [f"kept: {backup}", f"kept: {backup}.wal"]
    assert lines[2] == (
        "lost: what the log alone held; run the last run's command again, it does that again"
    )
    assert lines[3] == f"nothing found in {copied}:"
    assert backup.exists() and Path(f"{backup}.wal").exists() and not wal.exists()

    ended = command("doctor", "--store", copied, "--recover")
    assert ended.out.startswith("nothing to recover")
