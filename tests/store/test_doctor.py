# SPDX-License-Identifier: Apache-2.0
"""The doctor finds each damage done to a small history by hand, and nothing else."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import duckdb
import pytest
import small_history as history
from hypothesis import given
from hypothesis import strategies as st
from small_history import named

from stages import ids, rows
from stages.errors import LockedError, StoreError
from stages.ids import mint
from store import checks
from store.checkpoint import wal_of
from store.checks import Unreadable, behind, look_inside
from store.db import Store
from store.recovery import recover
from store.transaction import query

PAIRS = re.findall(
    r"select '(\w+)\.(\w+)[^,]*, '?(\w+)'?(?: as kind)?, \w+(?: as id)? from",
    query("doctor_dangling"),
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history in a store file, with a row in every table that refers to others."""
    path = tmp_path_factory.mktemp("sound") / "store.duckdb"
    store = Store(path)
    store.create()
    with store.transaction() as tx:
        history.write(tx)
        tx.insert(rows.PromptSet, [rows.PromptSet(mint("x", 0), "set", "{question}", None)])
        tx.insert(rows.Sampling, [rows.Sampling(mint("s", 0), 1.0, 1.0, 0, 9, "{}")])
        tx.insert(rows.TrajectoryLogprob, [
            rows.TrajectoryLogprob(named("a1"), mint("q", "P1", 0), named("M0"), -1.5)
        ])  # fmt: skip
        tx.insert(rows.VerdictComponent, [rows.VerdictComponent(named("a1?"), "format", 1.0, 0.0)])
        key = mint("k", "one 2 mix")
        tx.insert(rows.ProblemDecision, [
            rows.ProblemDecision(key, named("P1"), "contaminated", "", named("D1"), True)
        ])  # fmt: skip
        tx.insert(rows.HandOver, [
            rows.HandOver(key, named("M1"), "e", "1", "float32", "float32", 8, 99, 0.0, 0.0, 0.05)
        ])  # fmt: skip
        tx.insert(rows.Monitor, [rows.Monitor(key, "length", "all", 4.0)])
        tx.append(
            "add_event", run_id=mint("r", "one"), round=1, refresh=0, kind="begun", message="begun",
            detail=None,
        )  # fmt: skip
    store.snapshot().unlink()  # no log is left beside it
    return path


@pytest.fixture
def sick(sound: Path, tmp_path: Path) -> Store:
    """A copy of it to damage."""
    return Store(Path(shutil.copy(sound, tmp_path)), patience_s=0.2)


def damage(store: Store, sql: str, *values: object) -> None:
    with duckdb.connect(str(store.path)) as connection:
        connection.execute(sql, values)


def found_by(store: Store, check: checks.Check) -> list[str]:
    with store.transaction() as tx:
        return [finding.what for finding in check(tx)]


def found(store: Store) -> list[str]:
    """What all checks find but `minted`: the history's ids are labels, not contents."""
    every = [check for check in checks.CHECKS if check is not checks.minted]
    return [what for check in every for what in found_by(store, check)]


def test_nothing_is_found_in_a_sound_history(sick: Store) -> None:
    assert found(sick) == []


@pytest.mark.parametrize("hint", [None, "{question} {answer}"])
@pytest.mark.parametrize("config", [None, "{}"])
def test_a_prompt_set_of_any_kind_is_its_content_until_it_is_changed(
    sick: Store, hint: str | None, config: str | None
) -> None:
    made = ids.prompt_set_id("own", "{question}", hint, config)
    said = " of prompt_set.prompt_set_id not made of the row's content"
    before = next(what for what in found_by(sick, checks.minted) if said in what)  # a label's
    with sick.transaction() as tx:
        tx.insert(rows.PromptSet, [rows.PromptSet(made, "own", "{question}", hint, config)])
    assert before in found_by(sick, checks.minted)
    for column in ("plain", "hint", "config"):
        damage(sick, f"update prompt_set set {column} = 'other' where name = 'own'")
        assert f"2 ids{said}" in found_by(sick, checks.minted)
        values = {"plain": "{question}", "hint": hint, "config": config}
        damage(sick, f"update prompt_set set {column} = ? where name = 'own'", values[column])


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("trajectory", "x22"),
        ("verdict", "x22?"),
        ("training_set", "S3"),
        ("training_update", "U3"),
        ("model", "M3"),
        ("evaluation", "E2"),
    ],
)
def test_an_artefact_that_no_run_uses_is_found(sick: Store, kind: str, key: str) -> None:
    damage(sick, "delete from step_output where kind = ? and id = ?", kind, named(key))
    assert found(sick) == [f"no run uses 1 {kind} row"]


def test_there_are_pairs_for_every_id_column_that_names_another_row(
    schema: duckdb.DuckDBPyConnection,
) -> None:
    columns = schema.execute(
        "select table_name, column_name from duckdb_columns() join duckdb_tables() "
        "using (table_name) where data_type = 'UUID' and not duckdb_columns.internal"
    ).fetchall()
    own = {(table, f"{table}_id") for table, _ in columns}
    own |= {("training_update", "update_id"), ("step_run", "step_key")}
    no_row = {("trajectory", "content_id"), ("trajectory", "group_id")}
    assert set(columns) - own - no_row == {(table, column) for table, column, _ in PAIRS} - own


@pytest.mark.parametrize(("table", "column", "target"), PAIRS, ids=".".join)
def test_a_dangling_id_is_found_in_every_column(
    sick: Store, table: str, column: str, target: str
) -> None:
    damage(
        sick,
        f"update {table} set {column} = ? where rowid = (select max(rowid) from {table})",
        uuid4(),
    )
    dangling = found_by(sick, checks.dangling)
    assert len(dangling) == 1 + (column == "run_id" and table.startswith("step_"))
    assert any(f" of {table}.{column}" in what for what in dangling)


def test_an_output_without_its_step_is_found(sick: Store) -> None:
    damage(sick, "delete from step_run where run = 'one' and round = 2 and step = 'evaluate'")
    # E2, D1, x21 and x22 with a verdict each
    assert found(sick) == ["6 rows of step_output: its step without its step_run row"]


PARENTS = {
    "delete from model_parent where relation = 'init' and update_id = ?": "1 × init missing",
    "delete from model_parent where relation = 'policy' and update_id = ?": "2 × policy missing",
    "update model_parent set relation = 'init' where relation = 'reference' and update_id = ?": (
        "1 × init too many", "1 × reference missing",
    ),
    "update training_visit set visits = 0 where update_id = ?": "2 × policy too many",
}  # fmt: skip


@pytest.mark.parametrize("sql", PARENTS)
def test_parents_that_the_updates_do_not_say_are_found(sick: Store, sql: str) -> None:
    damage(sick, sql, named("U2"))  # from M0 with reference M1; b2 is M1's and a1 is M0's
    expected = PARENTS[sql]
    lines = (expected,) if isinstance(expected, str) else expected
    assert found(sick) == [f"model_parent does not fit the updates: {line}" for line in lines]


def test_a_model_of_no_update_is_found(sick: Store) -> None:
    damage(sick, "update model set origin = 'update' where model_id = ?", named("M0"))
    assert found(sick) == ["model_parent does not fit the updates: 1 × update missing"]


@given(weight=st.floats(allow_nan=False, allow_infinity=False))
def test_a_weight_is_written_in_sql_as_in_python(
    schema: duckdb.DuckDBPyConnection, weight: float
) -> None:
    (text,) = schema.execute("select sha256(?::double::varchar)", [weight]).fetchone() or ("",)
    assert text == ids.hash_text(repr(weight))


def test_labels_for_ids_are_found_in_every_table_of_content_ids(sick: Store) -> None:
    columns = {what.split()[3] for what in found_by(sick, checks.minted)}
    assert columns == set(re.findall(r"'(\w+\.\w+)'", query("doctor_ids")))


# ── a file that cannot be read ──────────────────────────────────────────────────────────────


def test_every_table_is_read_for_damaged_blocks(schema: duckdb.DuckDBPyConnection) -> None:
    tables = schema.execute("select table_name from duckdb_tables()").fetchall()
    assert sorted(re.findall(r"from (\w+) t$", query("doctor_blocks"), re.M)) == sorted(
        name for (name,) in tables
    )


def test_flipped_bytes_are_found_wherever_a_block_is_used(sick: Store) -> None:
    whole = sick.path.read_bytes()
    said = []
    for place in range(0, len(whole), 256 * 1024):
        at = place + 2000 if place else 20000
        sick.path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            look_inside(sick)
        except Unreadable as error:
            said.append(error.finding.what)
    assert len(said) > 5
    assert all("checksum" in what and "\n" not in what for what in said), said
    assert any(what.startswith("a block of the store is damaged") for what in said)


@pytest.mark.parametrize("keep", [0, 5000, 100_000, -300_000])
def test_a_truncated_file_is_found(sick: Store, keep: int) -> None:
    sick.path.write_bytes(sick.path.read_bytes()[:keep])
    with pytest.raises(Unreadable, match=r"not a DuckDB file|cannot be opened|damaged"):
        look_inside(sick)


def test_a_file_of_another_kind_is_found(sick: Store) -> None:
    sick.path.write_text("no database\n" * 2000)
    with pytest.raises(Unreadable, match="not a DuckDB file"):
        look_inside(sick)
    sick.path.unlink()
    duckdb.connect(str(sick.path)).execute("create table mine (x integer)").close()
    with pytest.raises(Unreadable, match="no store of starloop's"):
        look_inside(sick)


@pytest.mark.parametrize(("version", "mend"), [(1, "starloop snapshot"), (99, "newer starloop")])
def test_another_schema_is_named(sick: Store, version: int, mend: str) -> None:
    damage(sick, "update store_info set version = ?", version)
    with pytest.raises(Unreadable, match=f"has schema {version}, this starloop has") as raised:
        look_inside(sick)
    assert mend in raised.value.finding.mend


# ── the write-ahead log ─────────────────────────────────────────────────────────────────────

KILLED = """
import duckdb, os, sys
connection = duckdb.connect(sys.argv[1])
for message in ("first", "second"):
    connection.execute(
        "insert into event (happened_at, kind, message) values (now(), 'k', ?)", [message]
    )
os._exit(0)
"""


def leave_log(store: Store) -> Path:
    """The log of a process that was killed after two commits."""
    subprocess.run([sys.executable, "-c", KILLED, store.path], check=True)
    wal = wal_of(store.path)
    assert wal.stat().st_size > 100
    return wal


def events(store: Store) -> int:
    with store.transaction() as tx:
        (row,) = tx.ask("doctor_extent")
    return int(row["events"])


def test_a_log_that_replays_is_no_finding_and_is_not_set_aside(sick: Store) -> None:
    leave_log(sick)
    assert recover(sick) is None
    assert found(sick) == []
    assert events(sick) == 3


def test_a_log_that_does_not_replay_is_found_and_nothing_is_changed(sick: Store) -> None:
    wal = leave_log(sick)
    torn = bytearray(wal.read_bytes())
    torn[len(torn) // 3] ^= 0xFF
    wal.write_bytes(torn)
    before = sick.path.read_bytes()
    with pytest.raises(Unreadable, match="write-ahead log does not replay") as raised:
        look_inside(sick)
    assert "--recover" in raised.value.finding.mend
    assert (sick.path.read_bytes(), wal.read_bytes()) == (before, bytes(torn))

    done = recover(sick)
    assert done is not None
    backup, aside = done.kept
    assert (backup.read_bytes(), aside.read_bytes()) == (before, bytes(torn))
    assert backup.name == "store.unrecovered-1.duckdb"
    assert not wal.exists()
    assert found(sick) == []
    assert events(sick) == 1


def test_what_was_committed_before_the_damaged_place_of_the_log_is_kept(sick: Store) -> None:
    wal = leave_log(sick)
    torn = bytearray(wal.read_bytes())
    torn[-1] ^= 0xFF
    wal.write_bytes(torn)
    done = recover(sick)
    assert done is not None and done.lost.startswith("what the log held after its first ")
    assert events(sick) == 2


def test_a_log_that_is_passed_over_is_found_and_set_aside(sick: Store) -> None:
    wal = wal_of(sick.path)
    wal.write_bytes(b"\0" * 5000)
    (last,) = [one for one in look_inside(sick) if one.where == str(wal)]
    assert "passes it over" in last.what
    assert recover(sick) is not None
    assert not wal.exists()
    assert found(sick) == []


def test_a_second_recovery_keeps_the_first_backup(sick: Store) -> None:
    for number in (1, 2):
        wal_of(sick.path).write_bytes(b"\0" * 5000)
        done = recover(sick)
        assert done is not None and done.kept[0].name == f"store.unrecovered-{number}.duckdb"


# ── a file that cannot be read ──────────────────────────────────────────────────────────────


def spoil(store: Store) -> bytes:
    """Overwrite half of the file's first block, as a bad disk does; what is there then."""
    whole = store.path.read_bytes()
    store.path.write_bytes(whole[:12288] + os.urandom(131072) + whole[12288 + 131072 :])
    return store.path.read_bytes()


def test_a_torn_file_is_put_back_from_the_copy_with_the_log_and_nothing_is_lost(
    sick: Store,
) -> None:
    sick.snapshot()
    leave_log(sick)
    torn = spoil(sick)
    with pytest.raises(StoreError, match="`starloop doctor` says what can be done"):
        events(sick)
    with pytest.raises(Unreadable) as raised:
        look_inside(sick)
    assert "--recover` keeps a backup and puts back the readers' copy of" in (
        raised.value.finding.mend
    )
    done = recover(sick)
    assert done is not None and done.lost == "nothing"
    assert done.kept[0].read_bytes() == torn
    assert events(sick) == 3
    assert found(sick) == []


def test_a_torn_file_whose_copy_is_older_than_its_log_loses_what_came_since(sick: Store) -> None:
    old = sick.snapshot().read_bytes()
    leave_log(sick)
    sick.snapshot()
    leave_log(sick)
    sick.copy.write_bytes(old)
    spoil(sick)
    done = recover(sick)
    assert done is not None
    assert done.lost.startswith("what was committed since the readers' copy of ")
    assert events(sick) == 1


def test_a_torn_file_without_a_copy_is_left_as_it_is(sick: Store) -> None:
    torn = spoil(sick)
    with pytest.raises(StoreError, match="nothing to recover it from; put back a backup"):
        recover(sick)
    assert sick.path.read_bytes() == torn
    assert [path.name for path in sick.folder.iterdir()] == [sick.path.name]


# ── who holds it ────────────────────────────────────────────────────────────────────────────


def test_a_store_that_is_held_is_waited_for_and_its_holder_named(sick: Store) -> None:
    holding = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); "
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holding, sick.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout and holder.stdout.readline() == b"held\n"
        for ask in (look_inside, recover):
            with pytest.raises(LockedError, match=f"process {holder.pid}"):
                ask(sick)
        holder.communicate(b"")


# ── the readers' copy ───────────────────────────────────────────────────────────────────────


def test_a_copy_that_lacks_what_the_store_has_is_found(sick: Store) -> None:
    assert list(behind(sick)) == []  # none: it is made when first read
    assert not sick.copy.exists()
    sick.snapshot()
    assert list(behind(sick)) == []
    damage(sick, "insert into event values (null, null, null, now(), 'k', 'later', null)")
    (finding,) = behind(sick)
    assert finding.what == "the readers' copy is older: it lacks 1 event"
    sick.snapshot()
    assert list(behind(sick)) == []


def test_a_copy_that_cannot_be_read_is_found(sick: Store) -> None:
    sick.copy.write_bytes(os.urandom(5000))
    (finding,) = behind(sick)
    assert finding.what.startswith("the readers' copy cannot be read")


def test_the_checks_are_asked_in_one_transaction(sick: Store) -> None:
    opened = []

    class Counting(Store):
        def transaction(self):  # type: ignore[no-untyped-def]
            opened.append(self.path)
            return super().transaction()

    look_inside(Counting(sick.path))
    assert opened == [sick.path]
