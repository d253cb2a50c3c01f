# SPDX-License-Identifier: Apache-2.0
"""`starloop export`: what is in the store is in the files, and `datasets` opens them."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import Ended, ask

sys.path.append(str(Path(__file__).resolve().parents[1] / "stages" / "imports"))

from import_files import jsonl

from stages.errors import ConfigError, StoreError
from store.db import Store
from store.exporting import export, tables

Command = Callable[..., Ended]


@pytest.fixture
def connection(finished: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with Store(finished).reader() as reader:
        yield reader


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def test_trajectories_have_verdict_fate_and_tokens(
    command: Command, finished: Path, tmp_path: Path
) -> None:
    to = tmp_path / "out"
    ended = command(
        "export", "try", "--what", "trajectories", "--format", "jsonl", "--round", "1",
        "--to", to, "--store", finished,
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert "(from the copy of" in ended.out
    found = {row["trajectory_id"]: row for row in lines(to / "trajectories.jsonl")}
    stored = ask(
        finished,
        "select f.trajectory_id::varchar, f.prompt, f.completion, t.token_ids, t.logprobs, "
        "f.status, f.kept, f.why, f.trained_models::varchar[] from trajectory_fate f "
        "join trajectory t using (trajectory_id) where run = 'try' and round = 1",
    )
    assert len(found) == len(stored) > 10
    names = ("prompt", "completion", "token_ids", "logprobs", "status", "kept", "why")
    for id_, *values, models in stored:
        assert [found[id_][name] for name in names] == values
        assert sorted(found[id_]["trained_models"]) == sorted(models)


def test_a_training_set_is_in_training_order_with_where_its_rows_came_from(
    connection: duckdb.DuckDBPyConnection, finished: Path, tmp_path: Path
) -> None:
    manifest = export(connection, "try", "training-set", None, "jsonl", tmp_path / "out")
    assert manifest["round"] == 2  # the last that has one
    rows = lines(tmp_path / "out" / "training_set.jsonl")
    stored = ask(
        finished,
        "select r.training_row_id::varchar, r.prompt_id::varchar, r.source from training_row r "
        "join step_output s on s.id = r.training_set_id and s.round = 2 order by r.position",
    )
    assert [(r["training_row_id"], r["prompt_id"], r["source"]) for r in rows] == stored
    assert [row["position"] for row in rows] == list(range(len(rows)))
    assert {row["origin_round"] for row in rows} == {0, 1, 2}
    plain = ask(finished, "select id, bool_or(hinted) from (select prompt_id::varchar as id, "
                          "hinted from prompt) group by id")  # fmt: skip
    assert not any(dict(plain)[row["prompt_id"]] for row in rows)
    first = rows[0]
    assert ask(
        finished, "select completion, token_ids, origin from trajectory where trajectory_id = ?",
        first["trajectory_ids"][0],
    ) == [(first["completion"], first["token_ids"], first["origin"])]  # fmt: skip


def test_a_whole_run_is_every_table_and_nothing_it_names_is_missing(
    connection: duckdb.DuckDBPyConnection, finished: Path, tmp_path: Path
) -> None:
    manifest = export(connection, "try", "run", None, "parquet", tmp_path / "out")
    in_store = {name for (name,) in ask(finished, "select table_name from duckdb_tables()")}
    assert set(tables()) == in_store - {"store_info"}
    assert {Path(name).stem for name in manifest["files"]} == set(tables())
    found = {name: pq.read_table(tmp_path / "out" / f"{name}.parquet") for name in tables()}
    # the store has this run alone, so each table must be there whole
    for name, table in found.items():
        ((count,),) = ask(finished, f"select count(*) from {name}")
        assert table.num_rows == count, name


def test_two_runs_are_told_apart(tmp_path: Path) -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1] / "store"))
    import small_history

    store = Store(tmp_path / "store.duckdb")
    store.create()
    with store.transaction() as tx:
        small_history.write(tx)
    with store.reader() as reader:
        export(reader, "two", "run", None, "jsonl", tmp_path / "out")

    def ids(name: str) -> set[str]:
        return {row[f"{name}_id"] for row in lines(tmp_path / "out" / f"{name}.jsonl")}

    named = small_history.named
    assert ids("model") == {str(named(m)) for m in ("M0", "M3")}
    assert ids("training_set") == {str(named("S3"))}
    # what it answered, what it measured, the seed row; r2 was another run's
    slots = ("a1", "a2", "a3", "x01", "x02", "s")
    assert ids("trajectory") == {str(named(t)) for t in slots}


@pytest.mark.parametrize("format_", ["parquet", "jsonl", "datasets"])
@pytest.mark.parametrize("what", ["training-set", "trajectories", "run"])
def test_the_manifest_lists_every_file_with_its_hash(
    what: str, format_: str, connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    to = tmp_path / "out"
    manifest = export(connection, "try", what, None, format_, to)
    assert json.loads((to / "manifest.json").read_text()) == manifest
    there = {str(p.relative_to(to)) for p in to.rglob("*") if p.is_file()}
    assert there - {"manifest.json", "README.md"} == set(manifest["files"])
    for name, file in manifest["files"].items():
        content = (to / name).read_bytes()
        assert (file["sha256"], file["bytes"]) == (
            hashlib.sha256(content).hexdigest(),
            len(content),
        )
    assert manifest["run"] == "try"
    assert [model["round"] for model in manifest["models"]] == [0, 1, 2]
    assert list(tmp_path.iterdir()) == [to]


def test_datasets_opens_all_three_formats_offline(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()
    cache = str(tmp_path / "cache")
    for format_ in ("jsonl", "parquet", "datasets"):
        export(connection, "try", "training-set", None, format_, tmp_path / format_)
    export(connection, "try", "run", None, "datasets", tmp_path / "run")
    files = {"json": "jsonl/training_set.jsonl", "parquet": "parquet/training_set.parquet"}
    found = [
        datasets.load_dataset(kind, data_files=str(tmp_path / file), split="train", cache_dir=cache)
        for kind, file in files.items()
    ]
    folder = str(tmp_path / "datasets")
    found.append(datasets.load_dataset(folder, split="train", cache_dir=cache))
    assert len(found[0]) > 50
    for one in found:
        assert one["training_row_id"] == found[0]["training_row_id"]
        assert one["token_ids"] == found[0]["token_ids"]
        assert one["completion"] == found[0]["completion"]
    run = datasets.load_dataset(str(tmp_path / "run"), "verdict", split="train", cache_dir=cache)
    assert {"verdict_id", "status"} <= set(run.column_names)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_is_there_is_never_written_over(
    what: str, command: Command, finished: Path, tmp_path: Path
) -> None:
    to = tmp_path / "out"
    if what == "file":
        to.write_text("mine")
    else:
        to.mkdir()
        (to / "mine").write_text("mine")
    ended = command("export", "try", "--to", to, "--store", finished)
    assert ended.code == 2
    assert f"--to: {to} is there and not an empty folder" in ended.err
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_is_used_and_an_export_that_fails_leaves_nothing(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    to = tmp_path / "out"
    to.mkdir()
    with pytest.raises(StoreError, match="run try has no trajectories to export in round 9"):
        export(connection, "try", "trajectories", 9, "jsonl", to)
    assert list(to.iterdir()) == []
    assert list(tmp_path.iterdir()) == [to]
    export(connection, "try", "trajectories", 1, "jsonl", to)
    assert (to / "trajectories.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--what", "trajectory"], "--what: 'trajectory' is unknown; allowed: training-set"),
        (["--format", "csv"], "--format: 'csv' is unknown; allowed: parquet, jsonl, datasets"),
        (["--round", "7"], "no training set in round 7; rounds with one: 1, 2"),
        (["--what", "run", "--round", "1"], "--round: a whole run has all rounds"),
    ],
)
def test_a_bad_option_is_one_line(
    words: list[str], said: str, command: Command, finished: Path, tmp_path: Path
) -> None:
    ended = command("export", "try", "--to", tmp_path / "out", "--store", finished, *words)
    assert ended.code == 2
    assert said in ended.err
    assert not list(tmp_path.iterdir())


def test_an_unknown_run_is_named(command: Command, finished: Path, tmp_path: Path) -> None:
    ended = command("export", "tyr", "--to", tmp_path / "out", "--store", finished)
    assert ended.code == 2
    assert "did you mean 'try'?" in ended.err


# ── there and back ──────────────────────────────────────────────────────────────────────────


def import_(command: Command, path: Path, store: Path, **options: str) -> None:
    given = {"as": "rollouts", "format": "jsonl", "origin": "self", "task": "sums", **options}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    ended = command("import", path, "--store", store, *words)
    assert ended.code == 0, ended.err


def test_exported_trajectories_come_back_with_the_same_content(
    command: Command, finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("--what", "trajectories", "-f", "jsonl", "--round", "1", "--to", out)
    assert command("export", "try", *words, "--store", finished).code == 0
    store = tmp_path / "runs" / "store.duckdb"
    path = out / "trajectories.jsonl"
    import_(command, path, store, map="reward=score", task="addition", **{"correct-at": "1"})
    columns = "f.completion, t.content_id, t.token_ids, t.logprobs, f.prompt, f.status, f.score"
    sql = (
        f"select {columns}, t.problem_id, t.finish_reason from trajectory_fate f "
        "join trajectory t using (trajectory_id) where run = ? and round = ? order by all"
    )
    back = ask(store, sql, "trajectories", 0)
    assert len(back) > 10
    assert back == ask(finished, sql, "try", 1)


HOSTILE = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    ['"', "\\", "\n", "\r\n", "\u2028", "\x00", "🙂", "';--", "\x1b[2J", "x" * 300_000, "null", ""]
)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(st.tuples(HOSTILE, HOSTILE, HOSTILE), min_size=1, max_size=5))
def test_hostile_text_goes_in_and_out_unharmed(
    command: Command, tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    records = [
        {"prompt": asked, "completion": said, "answer": answer, "prompt_token_ids": [place],
         "token_ids": [1, place], "logprobs": [-0.5, -0.25]}
        for place, (asked, said, answer) in enumerate(texts)
    ]  # fmt: skip
    store = folder / "runs" / "store.duckdb"
    import_(command, jsonl(folder / "a.jsonl", records), store)
    for format_ in ("jsonl", "parquet"):
        to = folder / format_
        ended = command("export", "a", "--what", "trajectories", "-f", format_, "--to", to,
                        "--store", store)  # fmt: skip
        assert ended.code == 0, ended.err
        path = to / f"trajectories.{format_}"
        rows = lines(path) if format_ == "jsonl" else pq.read_table(path).to_pylist()
        found = sorted((row["token_ids"], row["prompt"], row["completion"], row["answer"],
                        row["logprobs"]) for row in rows)  # fmt: skip
        assert found == [([1, place], *text, [-0.5, -0.25]) for place, text in enumerate(texts)]


def test_pairs_go_in_and_out(command: Command, tmp_path: Path) -> None:
    records = [
        {"prompt": "1+1=", "prompt_token_ids": [1], "chosen": "2", "chosen_token_ids": [2],
         "rejected": str(n), "rejected_token_ids": [n], "weight": n / 2}
        for n in (3, 4)
    ]  # fmt: skip
    store = tmp_path / "runs" / "store.duckdb"
    import_(command, jsonl(tmp_path / "a.jsonl", records), store, **{"as": "pairs"})
    with Store(store).reader() as reader:
        manifest = export(reader, "a", "training-set", None, "jsonl", tmp_path / "out")
    assert manifest["round"] == 0
    found = lines(tmp_path / "out" / "training_pairs.jsonl")
    assert [{name: row[name] for name in records[0]} for row in found] == records
    assert [(row["kind"], row["origin"], row["rejected_origin"]) for row in found] == [
        ("pair", "self", "self")
    ] * 2


def test_a_number_that_json_lacks_is_null(tmp_path: Path) -> None:
    from store.exporting import _line

    assert (
        _line({"a": float("nan"), "b": [1.5, float("-inf")]}) == b'{"a": null, "b": [1.5, null]}\n'
    )


def test_a_round_of_a_whole_run_is_refused_before_anything_is_written(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError):
        export(connection, "try", "run", 1, "parquet", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


STREAM = """
import sys
from pathlib import Path
import duckdb
from store.exporting import _Export

for format_ in ("parquet", "jsonl"):
    found = _Export(duckdb.connect(), "try", None, format_, Path(sys.argv[1]))
    found._file("big", "select repeat('x', 2000) || i as text from range(200000) t(i)", {})
    assert found.files[f"big.{format_}"]["rows"] == 200_000
(peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(peak.split()[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_rows_stream_and_are_never_held_whole(tmp_path: Path) -> None:
    # 400 MB of text pass through
    done = subprocess.run(
        [sys.executable, "-c", STREAM, str(tmp_path)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert int(done.stdout.split()[-1]) < 300_000  # kB
