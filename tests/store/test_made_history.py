# SPDX-License-Identifier: Apache-2.0
"""The made-up histories of the benchmarks fit the schema, and a report can be made of one."""

from pathlib import Path

from benchmarks.history import write_history
from configs.files import FOLDER
from configs.load import load
from report.gathered import gather
from report.pages import pages
from store.db import Store
from store.transaction import read

SIZE, ROUNDS = 100, 2


def test_a_made_history_is_a_store_with_a_report(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.duckdb")
    config = load(FOLDER / "star.yaml").model_dump_json(by_alias=True)
    write_history(store.path, 1, ROUNDS, SIZE, words=5, tokens=6, say=lambda _: None, config=config)
    store.snapshot()
    with store.reader() as connection:
        lines = read(connection, "round_table", run="run-0")
        ((count,),) = connection.sql("select count(*) from trajectory").fetchall()
    assert count == ROUNDS * SIZE
    assert [line["round"] for line in lines] == [1, 2]
    assert [line["kept"] for line in lines] == [SIZE // 5, SIZE // 5]
    told = gather(store, ["run-0"], pages(store, ["run-0"]))
    assert {"accuracy", "lineage", "mix"} <= {*told.runs[0].figures}
