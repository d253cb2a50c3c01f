# SPDX-License-Identifier: Apache-2.0
"""Samples cannot move the cursor; answers to SQL parse back to the rows that were asked for."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_history
from hypothesis import given, settings
from hypothesis import strategies as st

from report.query import FORMATS
from report.query import answer as write
from report.samples import Filters, as_text, samples
from stages.errors import ConfigError
from stages.rows import StepOutput, Trajectory
from store.db import Store

SCREEN_TRICKS = "\x1b[2J\x1b[1;1Hmine\r\n\x07\x08\x9b5A\u202etxet\u2028end\x00"


def sample_lines(store: Store, run: str | None, count: int, **filters: Any) -> list[str]:
    """Samples as they are read, without colours."""
    return [as_text(row).plain for row in samples(store, run, count, Filters(**filters))[0]]


def answer(store: Store, sql: str, format_: str, **options: Any) -> bytes:
    out = io.BytesIO()
    write(store, sql, format_, out, **options)
    return out.getvalue()


@pytest.fixture
def tricked(tmp_path: Path) -> Store:
    """The small history with a completion that would clear the screen and overwrite a line."""
    store = Store(tmp_path / "store.duckdb")
    store.create()
    with store.transaction() as tx:
        small_history.write(tx)
        a1 = small_history.named("a1")
        (row,) = tx.rows(Trajectory, "trajectories_by_id", ids=[a1])
        trick = replace(row, trajectory_id=small_history.named("trick"), completion=SCREEN_TRICKS)
        tx.insert(Trajectory, [trick])
        run = small_history.mint("r", "one")
        used = StepOutput(
            run, "one", 1, 0, "generate", "trajectory", trick.trajectory_id, False, True
        )
        tx.insert(StepOutput, [used])
    return store


def test_a_sample_by_hand(told: Store) -> None:
    lines = sample_lines(told, "one", 100)
    assert len(lines) == 9  # seven answers, a seed row … and no held-out ones
    (a1,) = [sample for sample in lines if "completion  a1 said" in sample]
    assert a1.splitlines() == [
        f"{small_history.named('a1')}  one, round 1, self",
        "  question    P1   (answer 4)",
        "  completion  a1 said",
        "  verdict     correct (match) → kept, trained 2 models",
    ]
    (r3,) = [sample for sample in lines if "completion  r3 said" in sample]
    assert ", rationalized, with the answer as a hint" in r3
    assert r3.endswith("correct (match) → left out (hint_leak)")


def test_as_many_samples_as_asked_for_and_some_of_each_kind(finished: Store) -> None:
    assert len(sample_lines(finished, None, 7)) == 7
    found = sample_lines(finished, "try", 12)
    kinds = {(line.split(", ")[1], line.splitlines()[3].split()[1]) for line in found}
    assert {("round 1", "correct"), ("round 1", "wrong"), ("round 2", "correct")} <= kinds


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({"round": 2, "verdict": "correct"}, ["b2"]),
        ({"verdict": "unjudged"}, ["b3"]),
        ({"origin": "rationalized"}, ["r2", "r3"]),
        ({"verdict": "wrong", "round": 1}, ["a2", "a3"]),
        ({"held_out": True, "round": 1}, ["x11", "x12"]),
        ({"held_out": True, "verdict": "wrong"}, ["x02", "x21", "x22"]),
        ({"origin": "seed"}, ["s"]),
        ({"problem": str(small_history.named("P1")), "verdict": "correct"}, ["a1"]),
    ],
)
def test_filters_leave_what_they_say(told: Store, filters: dict[str, Any], ids: list[str]) -> None:
    rows, _ = samples(told, "one", 100, Filters(**filters))
    assert {row["trajectory_id"] for row in rows} == {small_history.named(name) for name in ids}


@pytest.mark.parametrize(
    ("filters", "why"),
    [
        ({"round": 7}, "run one: --round 7 leaves none of 9 trajectories (there: 0, 1, 2): give"),
        ({"round": 1, "verdict": "unjudged"},
         "run one: --verdict unjudged leaves none of 5 trajectories (there: correct, wrong)"),
        ({"round": 1, "verdict": "wrong", "origin": "seed"},
         "run one: --origin seed leaves none of 2 trajectories (there: self): give another"),
        ({"verdict": "correct", "problem": str(small_history.named("D1"))},
         f"run one: --problem {small_history.named('D1')} leaves none of 5 trajectories: give"),
    ],
)  # fmt: skip
def test_an_empty_answer_says_which_filter_emptied_it(
    told: Store, filters: dict[str, Any], why: str
) -> None:
    rows, said = samples(told, "one", 5, Filters(**filters))
    assert rows == [] and said.startswith(why)


def test_a_run_without_held_out_answers_or_without_any_gives_a_hint(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.duckdb")
    store.create()
    with store.transaction() as tx:
        small_history.write(tx)
        tx.append(
            "begin_run", run_id=small_history.mint("r", "new"), name="new", recipe="star",
            config="{}", identity="{}", manifest="{}", forked_from=None, forked_at_round=None,
        )  # fmt: skip
    assert samples(store, "new", 5)[1].startswith("run new holds no trajectory yet: a run has some")


def test_samples_are_coloured_by_their_verdict(told: Store) -> None:
    (row,), _ = samples(told, "one", 1, Filters(verdict="wrong"))
    text = as_text(row)
    assert [text.plain[s.start : s.end] for s in text.spans if s.style == "red"] == [
        f"wrong ({row['reason']})"
    ]


def test_a_completion_with_control_characters_is_one_visible_line(tricked: Store) -> None:
    (sample,) = [s for s in sample_lines(tricked, "one", 100) if "mine" in s]
    assert len(sample.splitlines()) == 4
    assert sample.replace("\n", "").isprintable()
    assert r"completion  \x1b[2J\x1b[1;1Hmine\r\n\x07\x08\x9b5A\u202etxet\u2028end\x00" in sample


def test_a_table_shows_control_characters_too_and_stays_a_table(tricked: Store) -> None:
    sql = "select completion from trajectory where completion like '%mine%'"
    found = answer(tricked, sql, "table").decode()
    assert len(found.splitlines()) == 4
    assert found.replace("\n", "").isprintable()


def test_a_table_by_hand(told: Store) -> None:
    sql = "select * from (values (1, 'a', 0.123456789, null), (22, repeat('x', 199), 2.0, 7))"
    found = answer(told, f"select col0 n, col1 s, col2::double d, col3 z from ({sql})", "table")
    head, rule, one, two, count = found.decode().splitlines()
    assert head.split() == ["n", "s", "d", "z"]
    assert set(rule) == {"-", " "}
    assert one.split() == ["1", "a", "0.1235"]
    assert two.split() == ["22", "x" * 159 + "…", "2", "7"]
    assert count == "2 rows"


def test_a_table_shows_so_many_rows_and_counts_the_others(told: Store) -> None:
    found = answer(told, "select range + 1 as n from range(25000)", "table", rows=3).decode()
    *lines, count = found.splitlines()
    assert [line.split() for line in lines] == [["n"], ["-"], ["1"], ["2"], ["3"]]
    assert count == (
        "the first 3 of 25,000 rows: --rows shows more, --format csv, json or parquet writes all"
    )
    assert len(answer(told, "from range(25000)", "table").splitlines()) == 2 + 1000 + 1
    assert answer(told, "from range(3)", "table", rows=3).endswith(b"\n3 rows\n")


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r"), max_size=8)
ROWS = st.lists(
    st.tuples(st.integers(-(2**62), 2**62), TEXT, st.floats(-1e9, 1e9), st.booleans()),
    min_size=1,
    max_size=5,
)


def as_sql(rows: list[tuple[int, str, float, bool]]) -> str:
    quoted = (
        f"({i}, '{s.replace(chr(39), chr(39) * 2)}', {f!r}::double, {b})" for i, s, f, b in rows
    )
    return f"select * from (values {', '.join(quoted)}) as t (i, s, f, b)"


def parsed(format_: str, found: bytes) -> list[tuple[Any, ...]]:
    if format_ == "json":
        return [tuple(row.values()) for row in json.loads(found)]
    if format_ == "parquet":
        return [tuple(row.values()) for row in pq.read_table(io.BytesIO(found)).to_pylist()]
    head, *rows = csv.reader(io.StringIO(found.decode(), newline=""))
    assert head == ["i", "s", "f", "b"]
    return [(int(i), s, float(f), b == "True") for i, s, f, b in rows]


@pytest.mark.parametrize("format_", sorted(FORMATS.keys() - {"table"}))
@settings(max_examples=20, deadline=None)
@given(rows=ROWS)
def test_an_answer_parses_back_to_the_same_rows(
    told: Store, format_: str, rows: list[tuple[int, str, float, bool]]
) -> None:
    assert parsed(format_, answer(told, as_sql(rows), format_)) == rows


@pytest.mark.parametrize("format_", sorted(FORMATS))
def test_ids_lists_times_and_nothing_at_all_can_be_written(told: Store, format_: str) -> None:
    sql = "select run_id, created_at, [1, 2] as numbers, null as nothing from run order by name"
    assert answer(told, sql, format_)
    assert answer(told, f"select * from ({sql}) where false", format_)


def test_ids_are_text_in_csv_and_json(told: Store) -> None:
    sql = "select run_id from run where name = 'one'"
    run = str(small_history.mint("r", "one"))
    assert answer(told, sql, "csv").decode() == f"run_id\n{run}\n"
    assert json.loads(answer(told, sql, "json")) == [{"run_id": run}]


def test_an_answer_of_many_batches_is_whole_in_every_format(told: Store) -> None:
    sql = (
        "select range as i, 'x' || range as s, range / 4 as f, range % 2 = 0 as b from range(25000)"
    )
    expected = [(i, f"x{i}", i / 4, i % 2 == 0) for i in range(25_000)]
    for format_ in sorted(FORMATS.keys() - {"table"}):
        assert parsed(format_, answer(told, sql, format_)) == expected


def test_numbers_that_json_cannot_write_are_null(told: Store) -> None:
    sql = (
        "select 'nan'::double as a, [1.5, 'inf'::double] as b, {'c': '-inf'::double} as d, 2.5 as e"
    )
    found = answer(told, sql, "json")
    assert json.loads(found, parse_constant=pytest.fail) == [
        {"a": None, "b": [1.5, None], "d": {"c": None}, "e": 2.5}
    ]


@pytest.mark.parametrize("format_", ["csv", "json", "table"])
def test_a_value_that_python_has_no_type_for_is_told_in_one_line(told: Store, format_: str) -> None:
    with pytest.raises(ConfigError, match=r"a value that cannot be written .*column::varchar"):
        answer(told, "select date '99999-01-01' as d", format_)
    assert b"99999-01-01" in answer(told, "select (date '99999-01-01')::varchar as d", format_)


def test_sums_and_decimals_are_numbers_in_json(told: Store) -> None:
    sql = "select sum(range + 8589934592) as a, 2.50 as b, 2.00 as c, [0.25] as d from range(3)"
    found = json.loads(answer(told, sql, "json"))
    assert found == [{"a": 3 * 2**33 + 3, "b": 2.5, "c": 2, "d": [0.25]}]
    assert type(found[0]["a"]) is int


class Enough(Exception):
    """Whoever reads wants no more."""


class Reader(io.BytesIO):
    """Takes so many bytes, and then no more."""

    def write(self, data: Any) -> int:
        if self.tell() > 100_000:
            raise Enough
        return super().write(data)


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_an_answer_is_written_while_the_query_goes_on(told: Store, format_: str) -> None:
    endless = "select a.range + b.range as n from range(1000000) a, range(1000000) b"
    with pytest.raises(Enough):
        write(told, endless, format_, Reader())


@pytest.mark.parametrize("format_", sorted(FORMATS))
def test_an_answer_that_fails_midway_is_an_error_and_no_whole_file(
    told: Store, format_: str
) -> None:
    out = io.BytesIO()
    fails = (
        "select case when range < 90000 then range else error('no ' || range) end from range(1e5)"
    )
    with pytest.raises(ConfigError, match=r"^sql: .*no 9\d+"):
        write(told, fails.replace("1e5", "100000"), format_, out)
    if format_ == "parquet":
        with pytest.raises(pa.ArrowInvalid):
            pq.read_table(io.BytesIO(out.getvalue()))
    elif format_ == "json":
        with pytest.raises(json.JSONDecodeError):
            json.loads(out.getvalue())
