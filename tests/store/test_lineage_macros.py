# SPDX-License-Identifier: Apache-2.0
"""The table macros row by row on `small_history.py`, and against a slow walk on any history."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import duckdb
import pytest
import slow_lineage as slow
import small_history
from hypothesis import HealthCheck, Phase, event, given, settings
from lineage_histories import BASE, OTHER, TRAIN, VERIFIER, History, histories, write
from small_history import named

from store.transaction import Transaction

Rows = list[tuple[Any, ...]]
Ask = Callable[..., Rows]


@pytest.fixture(scope="module")
def small(schema: duckdb.DuckDBPyConnection) -> Iterator[Ask]:
    """Asks the small history; labels stand for ids."""
    labels = {named(name): name for name in (
        *small_history.VERDICTS, *small_history.SETS, *small_history.UPDATES,
        *small_history.MEASURED, "M0", "M1", "M2", "M3", "P1", "P2", "P3", "P4", "D1", "V",
    )}  # fmt: skip
    cursor = schema.cursor()
    cursor.execute("begin")
    small_history.write(Transaction(cursor))

    def ask(sql: str, *values: Any) -> Rows:
        found = cursor.execute(sql, values).fetchall()
        return sorted(
            (tuple(labels[v] if isinstance(v, UUID) else v for v in row) for row in found), key=str
        )

    yield ask
    cursor.execute("rollback")
    cursor.close()


# ── by hand ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("M0", []),
        ("M1", [  # s is in the set and was never visited
            ("one", 1, 0, "rationalized", "r2", "P2", "M0", "completion", 1, 6, "S1", "U1"),
            ("one", 1, 0, "self", "a1", "P1", "M0", "completion", 2, 3, "S1", "U1"),
        ]),
        ("M2", [
            ("one", 1, 0, "self", "a1", "P1", "M0", "completion", 1, 3, "S2", "U2"),
            ("one", 2, 0, "self", "b2", "P2", "M1", "completion", 1, 9, "S2", "U2"),
        ]),
        ("M3", [("one", 1, 0, "self", "a1", "P1", "M0", "completion", 4, 3, "S3", "U3")]),
    ],
)  # fmt: skip
def test_trained_by_names_the_visited_rows_and_who_sampled_them(
    small: Ask, model: str, expected: Rows
) -> None:
    assert small("from trained_by(?)", named(model)) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("M0", []),
        ("M1", [("M0", 1, ["init", "policy"], "one", 0, "outside", None, None, "models/0")]),
        ("M2", [
            ("M0", 1, ["init", "policy"], "one", 0, "outside", None, None, "models/0"),
            ("M1", 1, ["policy", "reference"], "one", 1, "update", "S1", 3, "models/1"),
        ]),
        ("M3", [("M0", 1, ["init", "policy"], "one", 0, "outside", None, None, "models/0")]),
    ],
)  # fmt: skip
def test_ancestors_go_back_to_the_base_across_runs(small: Ask, model: str, expected: Rows) -> None:
    assert small("from ancestors(?)", named(model)) == expected


MADE = {"one": {"r2": 1, "b1": 2, "b2": 2, "b3": 2, "x11": 1, "x12": 1, "x21": 2, "x22": 2}}
AFTER_M1 = {"b1", "b2", "b3", "x11", "x12", "x21", "x22", "S2", ("U2", 1), ("M2", 1), ("E2", 1)}
AFTER_S1 = {"b1", "b2", "b3", "x11", "x12", "x21", "x22", "S2", ("U2", 2), ("M2", 2), ("E2", 2),
            ("M1", 1), ("E1", 1)}  # fmt: skip
ALL = {*small_history.VERDICTS, *small_history.SETS, ("E0", None), ("E1", 1), ("E2", 1)}


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        ("a2", {"r2", "S1", ("U1", 1), *AFTER_S1}),  # it led to the hint that trained M1
        ("r3", set()),  # left out: the hint showed
        ("s", {"S1"}),  # in a set, but never visited
        ("P4", {"s", "S1"}),
        ("D1", {"x01", "x02", "x11", "x12", "x21", "x22"}),
        ("S1", {("U1", 1), *AFTER_S1}),
        ("U1", AFTER_S1),
        ("M1", {("E1", 0), *AFTER_M1}),
        ("M3", set()),
        ("V", {*ALL, *((u, 1) for u in ("U1", "U2", "U3")), *((m, 1) for m in ("M1", "M2", "M3"))}),
    ],
)  # fmt: skip
def test_descendants_are_all_that_came_from_a_thing(
    small: Ask, thing: str, expected: set[Any]
) -> None:
    found = small("select id, depth from descendants(?)", named(thing))
    assert {(id_, None) if isinstance(id_, str) else id_ for id_ in expected} == set(found)
    assert len(found) == len(expected)


def test_descendants_say_what_they_are_and_which_run_and_round_made_them(small: Ask) -> None:
    found = small("select id, kind, run, round from descendants(?)", named("a1"))
    assert ("M3", "model", "two", 1) in found
    assert ("S2", "training_set", "one", 2) in found
    assert ("b3", "trajectory", "one", 2) in found
    assert ("U3", "training_update", "two", 1) in found
    assert ("E2", "evaluation", "one", 2) in found


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("S1", [
            ("one", 0, "seed", "round", 1, 8),
            ("one", 1, "rationalized", "round", 1, 6),
            ("one", 1, "self", "round", 1, 3),
        ]),
        ("S2", [("one", 1, "self", "round", 1, 3), ("one", 2, "self", "round", 1, 9)]),
        ("S3", [("one", 1, "self", "round", 1, 3)]),
    ],
)  # fmt: skip
def test_the_mix_of_a_training_set_by_who_sampled_it(
    small: Ask, label: str, expected: Rows
) -> None:
    assert small("from mix_of(?)", named(label)) == expected


def test_rationalized_rows_in_use_by_round(small: Ask) -> None:
    asked = "from rationalized_in_use(?, ?)"
    assert small(asked, "one", 1) == [("one", 1, "r2", "P2", 1, 1)]
    assert small(asked, "one", 2) == small(asked, "two", 1) == []


def test_how_the_mix_and_the_problems_moved(small: Ask) -> None:
    third = 1 / 3
    assert small("from mix_moves('one')") == [
        (1, "rationalized", 1, 6, third, None),
        (1, "seed", 1, 8, third, None),
        (1, "self", 1, 3, third, None),
        (2, "rationalized", 0, 0, 0.0, -third),
        (2, "seed", 0, 0, 0.0, -third),
        (2, "self", 2, 12, 1.0, pytest.approx(2 * third)),
    ]
    # D1 is right in rounds 0 and 1, wrong in 2; P1 right, then wrong; P2 wrong, then right
    assert small("from problem_moves('one')") == [(0, 1, 0, 0, 0), (1, 1, 1, 0, 2), (2, 1, 0, 2, 1)]


def test_the_journey_of_a_problem_and_the_fate_of_a_trajectory(small: Ask) -> None:
    assert small("from journey(?)", named("P1")) == [
        ("one", "P1", 1, 1, 1, "new"),
        ("one", "P1", 2, 1, 0, "lost"),
        ("two", "P1", 1, 1, 1, "new"),
    ]
    fate = "select run, round, kept, why, len(trained_models) from fate_of(?)"
    assert small(fate, named("a1")) == [("one", 1, True, "kept", 2), ("two", 1, True, "kept", 1)]
    assert small(fate, named("P1")) == []


# ── any history ─────────────────────────────────────────────────────────────────────────────


def same(found: Rows, expected: Rows) -> None:
    """Equal as bags of rows; shares to nine digits."""

    def flat(rows: Rows) -> Counter[str]:
        return Counter(
            repr([round(v, 9) if isinstance(v, float) else v for v in row]) for row in rows
        )

    assert flat(found) == flat(expected)


QUESTIONS: dict[str, Callable[[History, Ask], None]] = {}


def question(check: Callable[[History, Ask], None]) -> Callable[[History, Ask], None]:
    QUESTIONS[check.__name__] = check
    return check


@question
def trained_by(told: History, ask: Ask) -> None:
    for model in {BASE, *(one["model"] for one in told.updates.values())}:
        same(ask("from trained_by(?)", model), slow.trained_by(told, model))


@question
def ancestors(told: History, ask: Ask) -> None:
    for model in {BASE, *(one["model"] for one in told.updates.values())}:
        same(ask("from ancestors(?)", model), slow.ancestors(told, model))


@question
def descendants(told: History, ask: Ask) -> None:
    things = [("trajectory", id_) for id_ in told.trajectories]
    things += [("prompt", id_) for id_ in {t["prompt_id"] for t in told.trajectories.values()}]
    things += [("problem", id_) for id_ in TRAIN] + [("verifier", VERIFIER), ("verifier", OTHER)]
    things += [("training_set", id_) for id_ in told.sets]
    things += [("training_update", id_) for id_ in told.updates]
    things += [("model", id_) for id_ in (BASE, *(one["model"] for one in told.updates.values()))]
    for thing in things:
        same(ask("from descendants(?)", thing[1]), slow.descendants(told, thing))


@question
def mix_of(told: History, ask: Ask) -> None:
    for set_id in told.sets:
        same(ask("from mix_of(?)", set_id), slow.mix_of(told, set_id))


def runs(told: History) -> list[str]:
    return list(dict.fromkeys(step["run"] for step in told.steps))


@question
def rationalized_in_use(told: History, ask: Ask) -> None:
    for run in runs(told):
        for number in range(4):
            found = ask("from rationalized_in_use(?, ?)", run, number)
            expected = slow.rationalized_in_use(told, run, number)
            event(f"rationalized in use: {bool(expected)}")
            same(found, expected)


@question
def mix_moves(told: History, ask: Ask) -> None:
    for run in runs(told):
        same(ask("from mix_moves(?)", run), slow.mix_moves(told, run))


@question
def problem_moves(told: History, ask: Ask) -> None:
    for run in runs(told):
        same(ask("from problem_moves(?)", run), slow.problem_moves(told, run))


@question
def journey(told: History, ask: Ask) -> None:
    for problem in TRAIN:
        same(ask("from journey(?)", problem), slow.journey(told, problem))


@question
def fate_of(told: History, ask: Ask) -> None:
    columns = """run, round, status, kept, why, list_sort(training_sets),
        list_sort(trained_models)"""
    for id_ in told.trajectories:
        same(ask(f"select {columns} from fate_of(?)", id_), slow.fate_of(told, id_))


def compare(schema: duckdb.DuckDBPyConnection, name: str, told: History) -> None:
    cursor = schema.cursor()
    cursor.execute("begin")
    try:
        write(Transaction(cursor), told)
        QUESTIONS[name](told, lambda sql, *values: cursor.execute(sql, values).fetchall())
    finally:
        cursor.execute("rollback")
        cursor.close()


# Without shrinking: a smaller history says little more, and takes minutes to find.
UNSHRUNK = settings(
    max_examples=8,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("name", QUESTIONS)
@settings(UNSHRUNK)
@given(told=histories())
def test_a_macro_answers_as_a_slow_walk_does(
    schema: duckdb.DuckDBPyConnection, name: str, told: History
) -> None:
    compare(schema, name, told)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
@settings(UNSHRUNK, max_examples=20)
@given(told=histories())
def test_a_macro_answers_as_a_slow_walk_does_on_many_histories(
    schema: duckdb.DuckDBPyConnection, name: str, told: History
) -> None:
    compare(schema, name, told)
