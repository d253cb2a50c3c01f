# SPDX-License-Identifier: Apache-2.0
"""What a report takes from the store, by hand on the small history and against a finished run."""

from typing import Any

import pytest
from small_history import named

from report.evidence import (
    CLASS_SIZE,
    Chosen,
    Cost,
    Evidence,
    Fate,
    Flow,
    Hints,
    Lengths,
    Moves,
    evidence,
)
from store.db import Store
from store.transaction import Transaction, read


def asked(store: Store, row_type: type[Any], name: str, **values: Any) -> list[Any]:
    with store.reader() as connection:
        return Transaction(connection).rows(row_type, name, run="one", **values)


def chosen(store: Store, **values: Any) -> dict[str, Chosen]:
    found = asked(
        store, Chosen, "chosen_trajectories", **{"count": 10, "characters": 100, **values}
    )
    return {row.head.removesuffix(" said"): row for row in found}


def test_flows_by_hand(told: Store) -> None:
    # S1 is a1, r2 and s, of which U1 visits all but s; S2 is b2 and a1, both visited by U2.
    assert asked(told, Flow, "lineage_flows") == [
        Flow(1, 0, "seed", 1, 0),
        Flow(1, 1, "rationalized", 1, 1),
        Flow(1, 1, "self", 1, 1),
        Flow(2, 1, "self", 1, 1),
        Flow(2, 2, "self", 1, 1),
    ]


def test_moves_by_hand(told: Store) -> None:
    # D1 is solved at first, again, then lost. P1 is solved, then lost; P2 and P3 not, then P2 is.
    assert asked(told, Moves, "moves_by_split") == [
        Moves(0, True, 1, 0, 0, 0),
        Moves(1, False, 1, 0, 0, 2),
        Moves(1, True, 0, 1, 0, 0),
        Moves(2, False, 1, 0, 1, 1),
        Moves(2, True, 0, 0, 1, 0),
    ]


def test_hints_by_hand(told: Store) -> None:
    assert asked(told, Hints, "hint_yield") == [Hints(1, 1.0, 2, 2, 1, 1)]


def test_costs_by_hand(told: Store) -> None:
    # Every step takes 1.5 s. The seed row was sampled by none; a1, r2: 2 × 3 + 6 tokens trained.
    found = {(c.round, c.stage): c for c in asked(told, Cost, "step_costs")}
    assert {cost.wall_s for cost in found.values()} == {1.5}
    assert {place: cost.tokens for place, cost in found.items() if cost.tokens} == {
        (0, "evaluate"): 2, (1, "generate"): 12, (1, "rationalize"): 13, (1, "update"): 12,
        (1, "evaluate"): 2, (2, "generate"): 12, (2, "update"): 12, (2, "evaluate"): 2,
    }  # fmt: skip


def test_lengths_by_hand(told: Store) -> None:
    assert asked(told, Lengths, "answer_lengths") == [
        Lengths(0, 1, 2, 1), Lengths(1, 1, 2, 2), Lengths(2, 1, 2, 0),
    ]  # fmt: skip


def test_fates_count_every_trajectory_once(told: Store) -> None:
    found = asked(told, Fate, "fates")
    assert sum(fate.trajectories for fate in found) == 15
    (unjudged,) = [fate for fate in found if fate.status == "unjudged"]
    assert (unjudged.reason, unjudged.why) == ("spawn_failed", "unjudged")


def test_classes_and_fates_of_trajectories_by_hand(told: Store) -> None:
    found = chosen(told)
    assert {label: row.classes for label, row in found.items()} == {
        "a1": ("right", "top reward"), "b2": ("right", "top reward"),
        "a2": ("wrong",), "a3": ("wrong",), "b1": ("wrong",), "b3": ("unjudged",),
        "r2": ("rationalized", "top reward"), "r3": ("leaked", "top reward"),
    }  # fmt: skip
    assert found["a1"].trajectory_id == named("a1")
    assert {label: row.trained for label, row in found.items() if row.trained} == {
        "a1": (1, 2), "b2": (2,), "r2": (1,),
    }  # fmt: skip


def test_a_class_is_taken_in_turn_from_the_rounds(told: Store) -> None:
    found = chosen(told, count=2)
    wrong = [row.round for row in found.values() if "wrong" in row.classes]
    assert sorted(wrong) == [1, 2]


def test_a_text_is_cut_into_its_beginning_and_its_end(told: Store) -> None:
    ends = {
        characters: [(row.head, row.tail, row.characters)]
        for characters in (3, 4, 7, 9)
        for row in asked(told, Chosen, "chosen_trajectories", count=10, characters=characters)
        if row.trajectory_id == named("a1")
    }
    assert ends == {
        3: [("a1 ", "aid", 7)], 4: [("a1 s", "aid", 7)], 7: [("a1 said", "", 7)],
        9: [("a1 said", "", 7)],
    }  # fmt: skip


@pytest.fixture(scope="module")
def of_run(finished: Store) -> Evidence:
    return evidence(finished, "try")


def test_a_finished_runs_rows_agree_with_its_round_table(finished: Store, of_run: Evidence) -> None:
    with finished.reader() as connection:
        rounds = read(connection, "round_table", run="try")
    assert [m.value for m in of_run.measured("pass_at_1")] == [r["pass_at_1"] for r in rounds]
    for summary in rounds:
        costs = [c for c in of_run.costs if c.round == summary["round"]]
        sampled = [c.tokens for c in costs if c.stage in ("generate", "rationalize")]
        assert sum(sampled) == summary["tokens"]
        assert sum(c.wall_s for c in costs) == pytest.approx(summary["wall_s"])
        kept = [f for f in of_run.fates if f.round == summary["round"] and f.kept]
        assert sum(f.trajectories for f in kept if f.origin == "self") == summary["kept"]
    assert of_run.gain is not None and of_run.gain.value == pytest.approx(
        rounds[-1]["pass_at_1"] - rounds[0]["pass_at_1"]
    )
    assert of_run.rounds == [0, 1, 2]


def test_a_finished_runs_flows_are_its_mix(finished: Store, of_run: Evidence) -> None:
    with finished.reader() as connection:
        mix = {
            (r["round"], r["origin"]): r["rows"] for r in read(connection, "mix_shares", run="try")
        }
    flows: dict[tuple[int, str], int] = {}
    for flow in of_run.flows:
        assert 0 <= flow.visited <= flow.rows
        flows[flow.round, flow.origin] = flows.get((flow.round, flow.origin), 0) + flow.rows
    assert flows == mix


def test_a_class_has_at_most_ten_trajectories(of_run: Evidence) -> None:
    counts: dict[str, int] = {}
    for row in of_run.chosen:
        for class_ in row.classes:
            counts[class_] = counts.get(class_, 0) + 1
    assert counts == dict.fromkeys(
        ("right", "wrong", "rationalized", "leaked", "top reward"), CLASS_SIZE
    )
