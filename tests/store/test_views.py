# SPDX-License-Identifier: Apache-2.0
"""The views that users build on, row by row on `small_history.py`, worked by hand."""

from collections.abc import Iterator
from typing import Any, get_args
from uuid import UUID

import duckdb
import pytest
import small_history as history
from hypothesis import given, settings
from hypothesis import strategies as st
from small_history import named

from stages import rows
from stages.ids import Id, mint
from stages.update import model_parents
from store.transaction import Transaction


@pytest.fixture(scope="module")
def told(schema: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The schema with the history in it; gone when the module is done."""
    schema.execute("begin")
    history.write(Transaction(schema))
    yield schema
    schema.execute("rollback")


LABELS = {
    named(label): label
    for label in [
        *history.VERDICTS, *history.SETS, *history.UPDATES, *history.MEASURED,
        *(v for label in history.VERDICTS for v in history.verdicts_of(label)),
        "M0", "M1", "M2", "M3", "P1", "P2", "P3", "P4", "D1", "V",
    ]
}  # fmt: skip


def labelled(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(map(labelled, value))
    return LABELS[value] if isinstance(value, UUID) else value


def ask(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    """Rows with labels for ids, sorted as text."""
    found = [tuple(map(labelled, row)) for row in connection.execute(sql).fetchall()]
    return sorted(found, key=str)


COLUMNS = {
    "trajectory_fate": (
        "trajectory_id run round problem_id purpose origin hinted prompt completion status score "
        "reason kept why training_sets trained_models"
    ),
    "lineage_edge": "src_kind src_id dst_kind dst_id relation run round",
    "model_ancestry": "model_id ancestor_id depth",
    "mix_by_round": "run round origin_round origin rows tokens share",
    "problem_outcome": "run round purpose problem_id n correct unjudged",
    "pass_rate_histogram": "run round purpose bin low high problems share",
    "difficulty_coverage": "run round purpose domain difficulty problems n correct mixed never",
    "problem_journey": "run problem_id round n correct state",
    "round_summary": (
        "run round model_id pass_at_1 low high k pass_at_k maj_at_k n kept rationalized "
        "hint_leaks unjudged tokens wall_s"
    ),
}


@pytest.mark.parametrize("view", COLUMNS)
def test_the_columns_that_always_exist(schema: duckdb.DuckDBPyConnection, view: str) -> None:
    cursor = schema.execute(f"from {view} limit 0")
    assert set(COLUMNS[view].split()) <= {column[0] for column in cursor.description or []}


FATES = {
    # run one: round, status, reason, kept, why, training sets, trained models
    ("one", "s"): (0, "correct", "match", True, "kept", ["S1"], []),
    ("one", "x01"): (0, "correct", "match", False, "evaluation", [], []),
    ("one", "x02"): (0, "wrong", "mismatch", False, "evaluation", [], []),
    ("one", "a1"): (1, "correct", "match", True, "kept", ["S1", "S2"], ["M1", "M2"]),
    ("one", "a2"): (1, "wrong", "mismatch", False, "wrong", [], []),
    ("one", "a3"): (1, "wrong", "no_answer", False, "wrong", [], []),
    ("one", "r2"): (1, "correct", "match", True, "kept", ["S1"], ["M1"]),
    ("one", "r3"): (1, "correct", "match", False, "hint_leak", [], []),
    ("one", "x11"): (1, "correct", "match", False, "evaluation", [], []),
    ("one", "x12"): (1, "correct", "match", False, "evaluation", [], []),
    ("one", "b1"): (2, "wrong", "mismatch", False, "wrong", [], []),
    ("one", "b2"): (2, "correct", "match", True, "kept", ["S2"], ["M2"]),
    ("one", "b3"): (2, "unjudged", "spawn_failed", False, "unjudged", [], []),
    ("one", "x21"): (2, "wrong", "mismatch", False, "evaluation", [], []),
    ("one", "x22"): (2, "wrong", "mismatch", False, "evaluation", [], []),
    # run two took a1, a2 and a3 over, and trained M3 on a1 alone
    ("two", "s"): (0, "correct", "match", False, "over_seed_rows", [], []),
    ("two", "x01"): (0, "correct", "match", False, "evaluation", [], []),
    ("two", "x02"): (0, "wrong", "mismatch", False, "evaluation", [], []),
    ("two", "a1"): (1, "correct", "match", True, "kept", ["S3"], ["M3"]),
    ("two", "a2"): (1, "wrong", "mismatch", False, "wrong", [], []),
    ("two", "a3"): (1, "wrong", "no_answer", False, "wrong", [], []),
}


def test_trajectory_fate_row_by_row(told: duckdb.DuckDBPyConnection) -> None:
    found = ask(
        told,
        "select run, trajectory_id, round, status, reason, kept, why, training_sets, "
        "trained_models from trajectory_fate",
    )
    assert {row[:2]: row[2:] for row in found} == FATES
    assert len(found) == len(FATES)


def test_trajectory_fate_says_what_was_asked_and_answered(
    told: duckdb.DuckDBPyConnection,
) -> None:
    found = ask(
        told,
        "select trajectory_id, problem_id, purpose, origin, hinted, prompt, completion, score "
        "from trajectory_fate where run = 'one' and trajectory_id in "
        f"('{named('r2')}', '{named('b3')}', '{named('s')}', '{named('x21')}')",
    )
    assert found == [
        ("b3", "P3", "train", "self", False, "P3=", "b3 said", None),
        ("r2", "P2", "rationalize", "rationalized", True, "P2 hint=", "r2 said", 1.0),
        ("s", "P4", "seed", "seed", False, "P4=", "s said", 1.0),
        ("x21", "D1", "eval", "self", False, "D1=", "x21 said", 0.0),
    ]


def test_lineage_edge_row_by_row(told: duckdb.DuckDBPyConnection) -> None:
    found = ask(told, "select relation, src_id, dst_id, round from lineage_edge where run = 'two'")
    assert found == [
        ("asked", "D1", "x01", 0), ("asked", "D1", "x02", 0), ("asked", "P1", "a1", 1),
        ("asked", "P2", "a2", 1), ("asked", "P3", "a3", 1), ("asked", "P4", "s", 0),
        ("completion", "a1", "S3", 1),
        ("data", "S3", "U3", 1),
        ("init", "M0", "U3", 1),
        ("judged", "a1", "a1?", 1), ("judged", "a2", "a2?", 1), ("judged", "a3", "a3?", 1),
        ("judged", "s", "s?", 0), ("judged", "x01", "x01?", 0), ("judged", "x02", "x02?", 0),
        ("judged_by", "V", "a1?", 1), ("judged_by", "V", "a2?", 1), ("judged_by", "V", "a3?", 1),
        ("judged_by", "V", "s?", 0), ("judged_by", "V", "x01?", 0), ("judged_by", "V", "x02?", 0),
        ("made", "U3", "M3", 1),
        ("measured", "M0", "E0", 0),
        ("sampled", "M0", "a1", 1), ("sampled", "M0", "a2", 1), ("sampled", "M0", "a3", 1),
        ("sampled", "M0", "x01", 0), ("sampled", "M0", "x02", 0),
        ("trained", "a1", "U3", 1),
    ]  # fmt: skip


def test_lineage_edges_of_training_hints_and_references(told: duckdb.DuckDBPyConnection) -> None:
    found = ask(
        told,
        "select relation, src_id, dst_id, round from lineage_edge where run = 'one' and relation "
        "in ('hint', 'completion', 'data', 'init', 'reference', 'trained', 'made', 'measured')",
    )
    assert found == [
        ("completion", "a1", "S1", 1), ("completion", "a1", "S2", 2),
        ("completion", "b2", "S2", 2), ("completion", "r2", "S1", 1), ("completion", "s", "S1", 1),
        ("data", "S1", "U1", 1), ("data", "S2", "U2", 2),
        ("hint", "a2", "r2", 1), ("hint", "a3", "r3", 1),
        ("init", "M0", "U1", 1), ("init", "M0", "U2", 2),
        ("made", "U1", "M1", 1), ("made", "U2", "M2", 2),
        ("measured", "M0", "E0", 0), ("measured", "M1", "E1", 1), ("measured", "M2", "E2", 2),
        ("reference", "M1", "U2", 2),
        # s stands in S1, and no optimizer saw it: it trained nothing
        ("trained", "a1", "U1", 1), ("trained", "a1", "U2", 2), ("trained", "b2", "U2", 2),
        ("trained", "r2", "U1", 1),
    ]  # fmt: skip


def test_lineage_edges_name_the_tables_of_their_ends(told: duckdb.DuckDBPyConnection) -> None:
    found = ask(told, "select src_kind, src_id, dst_kind, dst_id from lineage_edge")
    wrong = [
        row for row in found
        if (row[0], row[2]) != (history.kind_of(row[1]), history.kind_of(row[3]))
    ]  # fmt: skip
    assert wrong == []


def test_model_ancestry_row_by_row(told: duckdb.DuckDBPyConnection) -> None:
    assert ask(told, "select model_id, ancestor_id, depth from model_ancestry") == [
        ("M1", "M0", 1),  # its start, and the policy of a1 and r2
        ("M2", "M0", 1),  # its start
        ("M2", "M1", 1),  # its reference, and the policy of b2
        ("M3", "M0", 1),
    ]


def test_mix_by_round_row_by_row(told: duckdb.DuckDBPyConnection) -> None:
    found = ask(
        told, "select run, round, origin_round, origin, rows, tokens, share from mix_by_round"
    )
    assert found == [
        ("one", 1, 0, "seed", 1, 8, pytest.approx(1 / 3)),
        ("one", 1, 1, "rationalized", 1, 6, pytest.approx(1 / 3)),
        ("one", 1, 1, "self", 1, 3, pytest.approx(1 / 3)),
        ("one", 2, 1, "self", 1, 3, 0.5),
        ("one", 2, 2, "self", 1, 9, 0.5),
        ("two", 1, 1, "self", 1, 3, 1.0),
    ]


def test_problem_journey_row_by_row(told: duckdb.DuckDBPyConnection) -> None:
    found = ask(told, "select run, problem_id, round, n, correct, state from problem_journey")
    assert found == [
        ("one", "D1", 0, 2, 1, "new"),
        ("one", "D1", 1, 2, 2, "kept"),
        ("one", "D1", 2, 2, 0, "lost"),
        ("one", "P1", 1, 1, 1, "new"),
        ("one", "P1", 2, 1, 0, "lost"),
        ("one", "P2", 1, 1, 0, "never"),  # r2 was right, with the answer as a hint
        ("one", "P2", 2, 1, 1, "new"),
        ("one", "P3", 1, 1, 0, "never"),
        ("one", "P3", 2, 1, 0, "never"),  # unjudged
        ("two", "D1", 0, 2, 1, "new"),
        ("two", "P1", 1, 1, 1, "new"),
        ("two", "P2", 1, 1, 0, "never"),
        ("two", "P3", 1, 1, 0, "never"),
    ]


def test_problem_outcome_row_by_row(told: duckdb.DuckDBPyConnection) -> None:
    """D1 is held out; P3's last answer could not be judged."""
    found = ask(
        told,
        "select round, purpose, problem_id, n, correct, unjudged from problem_outcome "
        "where run = 'one'",
    )
    assert found == [
        (0, "eval", "D1", 2, 1, 0),
        (1, "eval", "D1", 2, 2, 0),
        (1, "train", "P1", 1, 1, 0),
        (1, "train", "P2", 1, 0, 0),
        (1, "train", "P3", 1, 0, 0),
        (2, "eval", "D1", 2, 0, 0),
        (2, "train", "P1", 1, 0, 0),
        (2, "train", "P2", 1, 1, 0),
        (2, "train", "P3", 0, 0, 1),
    ]


def test_pass_rates_fall_into_bins(told: duckdb.DuckDBPyConnection) -> None:
    """Half right is bin 6, from 0.5 on below 0.6; what could not be judged is in no bin."""
    found = ask(
        told,
        "select round, purpose, bin, low, high, problems, share from pass_rate_histogram "
        "where run = 'one'",
    )
    assert found == [
        (0, "eval", 6, 0.5, 0.6, 1, 1.0),
        (1, "eval", 11, 1.0, 1.0, 1, 1.0),
        (1, "train", 0, 0.0, 0.0, 2, pytest.approx(2 / 3)),
        (1, "train", 11, 1.0, 1.0, 1, pytest.approx(1 / 3)),
        (2, "eval", 0, 0.0, 0.0, 1, 1.0),
        (2, "train", 0, 0.0, 0.0, 1, 0.5),
        (2, "train", 11, 1.0, 1.0, 1, 0.5),
    ]


def test_difficulty_coverage_counts_mixed_and_unsolved_problems(
    told: duckdb.DuckDBPyConnection,
) -> None:
    found = ask(
        told,
        "select round, purpose, sum(problems), sum(n), sum(correct), sum(mixed), sum(never) "
        "from difficulty_coverage where run = 'one' group by all",
    )
    assert found == [
        (0, "eval", 1, 2, 1, 1, 0),
        (1, "eval", 1, 2, 2, 0, 0),
        (1, "train", 3, 3, 1, 0, 2),
        (2, "eval", 1, 2, 0, 0, 1),
        (2, "train", 2, 2, 1, 0, 1),
    ]


def test_round_summary_row_by_row(told: duckdb.DuckDBPyConnection) -> None:
    found = ask(
        told,
        "select run, round, model_id, pass_at_1, bound, low, high, k, pass_at_k, maj_at_k, n, "
        "kept, rationalized, hint_leaks, unjudged, tokens, wall_s from round_summary",
    )
    ends = (0.1, 0.9, 2)
    assert found == [
        ("one", 0, "M0", 0.5, 0.1, *ends, 1.0, 0.25, 2, 0, 0, 0, 0, 0, 3.0),  # two steps of 1.5 s
        # kept a1, rationalized r2, leak r3; 3 + 4 + 5 and 6 + 7 tokens
        ("one", 1, "M1", 1.0, 0.2, *ends, 1.0, 0.5, 2, 1, 1, 1, 0, 25, 9.0),
        # kept b2: a1 was this run's round 1; unjudged b3; 2 + 9 + 1 tokens
        ("one", 2, "M2", 0.0, 0.0, *ends, 0.0, 0.0, 2, 1, 0, 0, 1, 12, 7.5),
        ("two", 0, "M0", 0.5, 0.1, *ends, 1.0, 0.25, 2, 0, 0, 0, 0, 0, 3.0),
        # not measured; the tokens of a1, a2 and a3 are run one's
        ("two", 1, "M3", None, None, None, None, None, None, None, None, 1, 0, 0, 0, 0, 6.0),
    ]


# ── ancestry of any history ─────────────────────────────────────────────────────────────────

MODELS = [mint("m", n) for n in range(6)]
EDGE = st.tuples(
    st.integers(0, 5),
    st.integers(0, 5),
    st.sampled_from(["init", "reference", "trained", "unvisited"]),
)


def write_update(tx: Transaction, number: int, model: Id, parent: Id, how: str) -> None:
    """An update that made `model`; `parent` is its start, its reference, or a policy behind it."""
    start = parent if how == "init" else model
    of = [mint(letter, number) for letter in "uyitqpc"]
    update, held, row, slot, prompt, problem, content = of
    made = rows.TrainingUpdate(
        update, start, parent if how == "reference" else None, held, None, "tally", "{}", 0, 1, 1,
        model, None,
    )  # fmt: skip
    visits = [rows.TrainingVisit(update, row, int(how == "trained"))]
    tx.insert(rows.TrainingUpdate, [made])
    tx.insert(rows.TrainingVisit, visits)
    tx.insert(
        rows.TrainingRowTrajectory,
        [rows.TrainingRowTrajectory(held, row, slot, "completion", 1.0, None)],
    )
    policy = parent if how in ("trained", "unvisited") else None
    tx.insert(rows.ModelParent, model_parents(made, visits, {row: [policy] if policy else []}))
    tx.insert(rows.Trajectory, [rows.Trajectory(
        slot, content, problem, prompt, policy, None, "train", "self", None, 0, "", (), None,
        "stop", None, None, None, None,
    )])  # fmt: skip


def slow_ancestry(edges: list[tuple[int, int, str]]) -> set[tuple[Id, Id, int]]:
    """Breadth first from every model; an unvisited row is no edge, nobody is its own ancestor."""
    parents: dict[int, set[int]] = {}
    for child, parent, how in edges:
        if how != "unvisited":
            parents.setdefault(child, set()).add(parent)
    found = set()
    for model in range(len(MODELS)):
        seen, layer, depth = {model}, {model}, 0
        while layer:
            depth += 1
            layer = {p for m in layer for p in parents.get(m, ())} - seen
            seen |= layer
            found |= {(MODELS[model], MODELS[ancestor], depth) for ancestor in layer}
    return found


@settings(max_examples=60)
@given(edges=st.lists(EDGE, max_size=9))
def test_model_ancestry_is_a_walk_over_starts_references_and_policies(
    schema: duckdb.DuckDBPyConnection, edges: list[tuple[int, int, str]]
) -> None:
    cursor = schema.cursor()  # of its own: `told` keeps a transaction open
    cursor.execute("begin")
    try:
        tx = Transaction(cursor)
        for number, (child, parent, how) in enumerate(edges):
            write_update(tx, number, MODELS[child], MODELS[parent], how)
        found = cursor.execute("from model_ancestry").fetchall()
    finally:
        cursor.execute("rollback")
        cursor.close()
    assert len(found) == len(set(found))
    assert set(found) == slow_ancestry(edges)
    assert all(model != ancestor for model, ancestor, _ in found)
    assert len({row[:2] for row in found}) == len(found)


SOURCES = st.lists(
    st.tuples(st.sampled_from(get_args(rows.Origin)), st.integers(0, 2), st.integers(1, 50)),
    min_size=1,
    max_size=8,
)


@settings(max_examples=30)
@given(sources=SOURCES)
def test_the_shares_of_a_mix_sum_to_one_and_rows_and_tokens_to_the_set(
    schema: duckdb.DuckDBPyConnection, sources: list[tuple[Any, int, int]]
) -> None:
    cursor = schema.cursor()
    cursor.execute("begin")
    try:
        write_mix(Transaction(cursor), sources)
        found = cursor.execute("select rows, tokens, share, origin_round from mix_by_round")
        mixed = found.fetchall()
    finally:
        cursor.execute("rollback")
        cursor.close()
    assert sum(share for _, _, share, _ in mixed) == pytest.approx(1.0)
    assert sum(count for count, _, _, _ in mixed) == len(sources)
    assert sum(tokens for _, tokens, _, _ in mixed) == sum(tokens for _, _, tokens in sources)
    assert {number for _, _, _, number in mixed} == {number for _, number, _ in sources}


def write_mix(tx: Transaction, sources: list[tuple[Any, int, int]]) -> None:
    """A run whose round 3 trains on a row of each (origin, round, tokens)."""
    run, held = mint("r", "mixed"), mint("y", "mixed")
    tx.append(
        "begin_run",
        run_id=run, name="mixed", recipe="star", config="{}", identity="{}", manifest="{}",
        forked_from=None, forked_at_round=None,
    )  # fmt: skip
    tx.insert(
        rows.StepOutput,
        [rows.StepOutput(run, "mixed", 3, 0, "mix", "training_set", held, False, True)],
    )
    for number, (origin, round_, tokens) in enumerate(sources):
        row, slot, some = mint("i", number), mint("t", number), mint("q", number)
        tx.insert(rows.Trajectory, [rows.Trajectory(
            slot, some, some, some, None, None, "train", origin, None, 0, "", (), None, "stop",
            None, None, None, None,
        )])  # fmt: skip
        tx.insert(
            rows.StepOutput,
            [rows.StepOutput(run, "mixed", round_, 0, "generate", "trajectory", slot, False, True)],
        )
        tx.insert(
            rows.TrainingRow,
            [rows.TrainingRow(held, row, number, "sft", some, 1.0, "round", tokens)],
        )
        tx.insert(
            rows.TrainingRowTrajectory,
            [rows.TrainingRowTrajectory(held, row, slot, "completion", 1.0, None)],
        )
