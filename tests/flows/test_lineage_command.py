# SPDX-License-Identifier: Apache-2.0
"""`starloop lineage` on a finished run: every question in every format it has."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from running import Ended, ask

Command = Callable[..., Ended]
GRAPHS = ("tree", "mermaid", "graphviz")
LAST = "select model_id from round_summary where run = 'try' and round = 2"


def some(store: Path, table: str, where: str = "true") -> str:
    """An id of a table."""
    column = {"training_set": "training_set_id"}.get(table, f"{table}_id")
    return str(ask(store, f"select {column} from {table} where {where} order by 1 limit 1")[0][0])


def questions(store: Path) -> dict[str, list[str]]:
    kept = str(ask(store, f"select trajectory_id from trained_by(({LAST})) order by 1")[0][0])
    return {
        "trained-by": ["trained-by", "try"],
        "trained-by, all": ["trained-by", "try@1", "--all"],
        "ancestors": ["ancestors"],
        "fate": ["fate", kept],
        "rationalized": ["rationalized", "try@2"],
        "rationalized, all": ["rationalized", "try", "--all"],
        "mix": ["mix", "try"],
        "problems": ["problems"],
        "problem": ["problem", some(store, "problem", "split = 'dev'")],
        "downstream": ["downstream", kept],
        "downstream, all": ["downstream", some(store, "verifier"), "--all"],
    }


def drawn(name: str) -> bool:
    return name.split(",")[0] in ("trained-by", "ancestors", "fate", "downstream")


NAMES = [
    *("trained-by", "trained-by, all", "ancestors", "fate", "rationalized", "rationalized, all"),
    *("mix", "problems", "problem", "downstream", "downstream, all"),
]


@pytest.mark.parametrize("name", NAMES)
def test_table_csv_and_json_hold_the_same_rows(command: Command, finished: Path, name: str) -> None:
    arguments = ["lineage", *questions(finished)[name], "--store", finished]
    table = command(*arguments)
    assert (table.code, table.err) == (0, "")
    rows = json.loads(command(*arguments, "-f", "json").out)
    assert len(rows) > 0
    (count,) = [line for line in table.out.splitlines() if line.endswith((" row", " rows"))]
    assert int(count.split()[0].replace(",", "")) == len(rows)
    as_csv = command(*arguments, "-f", "csv")
    found = list(csv.reader(io.StringIO(as_csv.out)))
    assert found[0] == list(rows[0])
    assert len(found) == 1 + len(rows)
    assert as_csv.err.startswith("(from the copy of ")


@pytest.mark.parametrize("name", NAMES)
def test_graphs_are_drawn_where_there_are_edges_and_refused_elsewhere(
    command: Command, finished: Path, name: str
) -> None:
    for format_ in GRAPHS:
        ended = command("lineage", *questions(finished)[name], "-f", format_, "--store", finished)
        if drawn(name):
            assert ended.code == 0
            assert len(ended.out.splitlines()) > 1
        else:
            assert (ended.code, ended.out) == (2, "")
            assert f"{format_} is not possible: table, csv, json" in ended.err


def test_alone_it_shows_the_newest_runs_last_checkpoint(command: Command, finished: Path) -> None:
    ((last,),) = ask(finished, LAST)
    page = command("lineage", "--store", finished).out
    assert page.startswith(f"trained try@2 ({last})\n")
    assert f"try@2 ({last}) rests on" in page


def test_the_beginning_of_an_id_will_do(command: Command, finished: Path) -> None:
    ((last,),) = ask(finished, LAST)
    whole = command("lineage", "trained-by", "try@2", "-f", "json", "--store", finished)
    short = command("lineage", "trained-by", str(last)[:13], "-f", "json", "--store", finished)
    assert json.loads(whole.out) == json.loads(short.out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fate", "zzzz"], "'zzzz' is not an id: give 4 or more hex digits"),
        (["fate", "123"], "'123' is not an id"),
        (["fate", "0" * 32], "nothing in the store has an id that begins with"),
        (["trained-by", "try@9"], "run try has no model of round 9 yet"),
        (["trained-by", "try@x"], "is not RUN@ROUND"),
        (["trained-by", "tyr"], "is no run, no RUN@ROUND and no id of a model"),
        (["rationalized", "tyr@1"], "run 'tyr' is not in the store; runs: try"),
    ],
)
def test_what_is_not_there_is_named(
    command: Command, finished: Path, arguments: list[str], said: str
) -> None:
    ended = command("lineage", *arguments, "--store", finished)
    assert ended.code in (1, 2)
    assert ended.out == ""
    assert said in ended.err


def test_an_id_of_another_kind_is_told_what_fits_it(command: Command, finished: Path) -> None:
    problem = some(finished, "problem")
    ended = command("lineage", "fate", problem, "--store", finished)
    assert f"{problem} is a problem, not a trajectory: `starloop lineage problem` fits" in ended.err


def test_a_beginning_of_several_ids_lists_them(command: Command, finished: Path) -> None:
    shared = ask(
        finished,
        "select left(trajectory_id::varchar, 4) from trajectory group by 1 having count(*) > 1",
    )
    ended = command("lineage", "fate", shared[0][0], "--store", finished)
    assert ended.code == 2
    assert "begins several ids: " in ended.err
