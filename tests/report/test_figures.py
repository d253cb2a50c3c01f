# SPDX-License-Identifier: Apache-2.0
"""Each figure from rows made by hand: its sentence, its marks, its table; nothing from nothing."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import vl_convert

from configs.files import FOLDER
from configs.load import load
from report.evidence import (
    Alarm,
    Cost,
    Evidence,
    Fate,
    Flow,
    Gain,
    Hints,
    Lengths,
    Measured,
    Moves,
    Reading,
)
from report.figures import FIGURES, accuracy, lineage, monitors, problems
from report.figures.base import Figure, counted, listed, share, went
from report.figures.compare import compared
from report.html import VEGA_LITE

CONFIG = load(FOLDER / "tiny" / "try.yaml")
BARE = Evidence("bare", CONFIG, {})


def measured(slice_: str, *values: float, name: str = "pass_at_1") -> list[Measured]:
    k = None if name == "pass_at_1" else 4
    return [
        Measured(number, name, slice_, k, value, value - 0.1, value + 0.1, 30)
        for number, value in enumerate(values)
    ]


FLOWS = [
    Flow(1, 0, "seed", 20, 20),
    Flow(1, 1, "self", 30, 30),
    Flow(2, 0, "seed", 10, 5),
    Flow(2, 1, "self", 30, 30),
    Flow(2, 2, "self", 40, 40),
    Flow(2, 2, "rationalized", 25, 25),
]
TOLD = Evidence(
    "told",
    CONFIG,
    {},
    metrics=[
        *measured("all", 0.4, 0.5, 0.6),
        *measured("all", 0.7, 0.8, 0.9, name="pass_at_k"),
        *measured("all", 0.5, 0.6, 0.7, name="maj_at_k"),
        *measured("difficulty=1", 0.9, 0.9, 0.95),
        *measured("difficulty=2", 0.2, 0.4, 0.6),
        *measured("difficulty=1 (all)", 0.9, 0.9, 0.9),
        *measured("domain=sums", 0.5, 0.5, 0.7),
        *measured("domain=sets", 0.3, 0.3, 0.2),
    ],
    gain=Gain(0.2, 0.1, 0.3, 30),
    lengths=[Lengths(0, 8, 20, 10), Lengths(0, 16, 20, 5), Lengths(1, 8, 9, 1),
             Lengths(1, 16, 20, 15)],
    flows=FLOWS,
    moves=[Moves(0, True, 5, 0, 0, 15), Moves(1, False, 8, 2, 1, 9), Moves(2, True, 7, 4, 1, 8)],
    hints=[Hints(1, 1.0, 10, 6, 4, 2), Hints(2, 1.0, 5, 3, 3, 0), Hints(2, None, 2, 1, 1, 0)],
    readings=[
        Reading(number, refresh, name, "all", value)
        for name, values in {
            "length": (10, 11, 12, 14), "entropy": (0.9, 0.7, 0.5, 0.3),
            "mixed": (0.5, 0.4, 0.4, 0.3),
            "reward_mean": (0.2, 0.3, 0.3, 0.4), "kl_base_k3": (0, 0.1, 0.1, 0.2),
            "truncated": (0, 0, 0.01, 0),
        }.items()
        for (number, refresh), value in zip([(1, 0), (1, 1), (2, 0), (2, 1)], values, strict=True)
    ],
    alarms=[Alarm(2, 0, "entropy", "warn", "round 2, refresh 0: entropy is 0.5, below 0.6")],
    costs=[Cost(0, "evaluate", 30.0, 0.0, 500), Cost(1, "update", 60.0, 0.0, 900),
           Cost(1, "generate", 30.0, 0.0, 1000)],
    fates=[
        Fate(1, "train", "self", "correct", "match", True, "kept", 30),
        Fate(1, "train", "self", "wrong", "mismatch", False, "wrong", 60),
        Fate(1, "rationalize", "rationalized", "correct", "match", False, "hint_leak", 10),
        Fate(1, "eval", "self", "wrong", "mismatch", False, "evaluation", 500),
    ],
)  # fmt: skip


def drawn(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


def values(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a chart and of its layers, inline or among its named data sets."""
    found = list(spec.get("data", {}).get("values", []))
    named = [row for rows in spec.get("datasets", {}).values() for row in rows]
    return found + named + [row for layer in spec.get("layer", ()) for row in values(layer)]


@pytest.mark.parametrize("draw", FIGURES.values(), ids=lambda draw: draw.__name__)
def test_a_run_with_nothing_to_show_has_no_figure(draw: Any) -> None:
    assert draw(BARE) is None


@pytest.mark.parametrize("draw", FIGURES.values(), ids=lambda draw: draw.__name__)
def test_every_figure_is_valid_and_says_what_to_look_for(draw: Any) -> None:
    figure = drawn(draw(TOLD))
    assert figure.name == draw.__name__
    assert len(figure.title.split()) > 3 and figure.note
    assert figure.rows and {len(row) for row in figure.rows} == {len(figure.head)}
    for panel in figure.panels:
        json.dumps(panel.spec, allow_nan=False)
        svg = vl_convert.vegalite_to_svg({**panel.spec, "width": 400}, vl_version=VEGA_LITE)
        assert svg.count("<path") > 2
        if figure.name != "lineage":
            assert svg.count("role-axis-title") >= 1


def test_accuracy_by_hand() -> None:
    figure = drawn(accuracy.accuracy(TOLD))
    assert figure.title == (
        "pass@1 rose from 0.40 to 0.60 in two rounds (+0.20 on the same 30 questions, "
        "95 % +0.10 to +0.30)"
    )
    assert figure.rows[0] == ["base", "pass@1", "0.400", "0.300", "0.500"]
    assert [row[1] for row in figure.rows] == ["pass@1"] * 3 + ["pass@4"] * 3 + ["maj@4"] * 3


def test_a_gain_inside_its_interval_is_called_noise() -> None:
    unsure = replace(TOLD, gain=Gain(0.2, -0.1, 0.5, 30))
    assert "in two rounds, within its noise (" in drawn(accuracy.accuracy(unsure)).title


def test_a_run_of_one_measure_says_where_it_stands() -> None:
    one = replace(BARE, metrics=measured("all", 0.4))
    assert drawn(accuracy.accuracy(one)).title == "pass@1 of the base is 0.40 so far"


def test_difficulty_names_how_far_up_it_is_solved() -> None:
    figure = drawn(accuracy.difficulty(TOLD))
    assert figure.title == (
        "Solved at least half of the time: 1 digit at first, 2 digits at last; "
        "2 digits rose from 0.20 to 0.60"
    )
    assert len(figure.rows) == 6  # the slice of all problems of a difficulty is left out


def test_domains_name_the_most_and_the_least_gain() -> None:
    title = drawn(accuracy.domains(TOLD)).title
    assert title == "By domain: sums gained most (+0.20), sets least (-0.10)"


def test_lengths_leave_out_cells_of_few_answers() -> None:
    figure = drawn(accuracy.lengths(replace(TOLD)))
    assert figure.rows == [
        ["8–15", "base", "20", "10"], ["16–31", "base", "20", "5"], ["16–31", "1", "20", "15"],
    ]  # fmt: skip


def test_lineage_says_what_the_last_checkpoint_learned_from() -> None:
    assert drawn(lineage.lineage(TOLD)).title == (
        "Checkpoint 2 learned from 100 rows: 70% the model's own answers of rounds 1 and 2, "
        "25% answers found with a hint of round 2 and 5% seed rows"
    )


def test_a_set_that_trained_nothing_yet_is_not_the_last_checkpoint() -> None:
    waiting = replace(TOLD, flows=[*FLOWS, Flow(3, 3, "self", 50, 0)])
    assert drawn(lineage.lineage(waiting)).title.startswith("Checkpoint 2 learned from")
    only = replace(TOLD, flows=[Flow(1, 1, "self", 50, 0)])
    assert drawn(lineage.lineage(only)).title == "No training set has trained a checkpoint yet"


def test_the_lineage_picture_has_a_ribbon_for_each_flow_and_for_what_was_not_trained_on() -> None:
    rows = values(drawn(lineage.lineage(TOLD)).panels[0].spec)
    ribbons = {(r["from"], r["to"], r["origin"], r["rows"]) for r in rows if "ribbon" in r}
    assert ribbons == {
        ("seed", "set 1", "seed", 20),
        ("round 1 · self", "set 1", "self", 30),
        ("seed", "set 2", "seed", 10),
        ("round 1 · self", "set 2", "self", 30),
        ("round 2 · self", "set 2", "self", 40),
        ("round 2 · rationalized", "set 2", "rationalized", 25),
        ("set 1", "checkpoint 1 · 0.50", "seed", 20),
        ("set 1", "checkpoint 1 · 0.50", "self", 30),
        ("set 2", "checkpoint 2 · 0.60", "seed", 5),
        ("set 2", "checkpoint 2 · 0.60", "self", 70),
        ("set 2", "checkpoint 2 · 0.60", "rationalized", 25),
        ("set 2", "not trained on", "not trained on", 5),
    }


def test_a_long_run_shows_its_newest_rounds_and_says_so() -> None:
    many = replace(TOLD, flows=[Flow(n, n, "self", 10, 10) for n in range(1, 41)])
    figure = drawn(lineage.lineage(many))
    sets = {row["set"] for row in values(figure.panels[0].spec) if "set" in row}
    assert sets == {f"set {n}" for n in range(29, 41)}
    assert "The newest 12 rounds are drawn." in figure.note
    assert len(figure.rows) == 40


def test_rows_of_rounds_before_the_oldest_set_stand_together() -> None:
    flows = [Flow(n, made, "self", 10, 10) for n in range(1, 21) for made in range(1, n + 1)]
    rows = values(drawn(lineage.lineage(replace(TOLD, flows=flows))).panels[0].spec)
    into = {row["from"]: row["rows"] for row in rows if row.get("to") == "set 9"}
    assert into == {"rounds 1 to 8 · self": 80, "round 9 · self": 10}


def test_many_refreshes_are_thinned_but_the_last_and_those_with_alarms_stay() -> None:
    readings = [Reading(n, 0, "entropy", "all", 1 / n) for n in range(1, 2001)]
    many = replace(TOLD, readings=readings, alarms=[replace(TOLD.alarms[0], round=777)])
    figure = drawn(monitors.entropy(many))
    rounds = [int(row[0]) for row in figure.rows]
    assert 400 <= len(rounds) <= 402
    assert {1, 777, 2000} <= set(rounds)
    assert f"{len(rounds)} of 2000 refreshes are drawn." in figure.note


def test_mix_shares_are_of_the_rounds_own_set() -> None:
    figure = drawn(lineage.mix(TOLD))
    assert figure.title == (
        "Rows that the run's own policies made: 60% of the set of round 1, 90% of round 2"
    )
    assert figure.rows[:2] == [["1", "seed", "20", "40%"], ["1", "self", "30", "60%"]]
    alone = replace(TOLD, flows=[Flow(1, 1, "self", 10, 10)])
    assert [panel.says for panel in drawn(lineage.mix(alone)).panels] == ["By rows"]


def test_the_journey_speaks_of_held_out_problems() -> None:
    figure = drawn(problems.journey(TOLD))
    assert figure.title == (
        "5 of 20 held-out problems were solved at the base, 11 of 20 in round 2, 1 that were "
        "solved before were lost"
    )
    assert [panel.says for panel in figure.panels] == [
        "Held-out problems", "Problems asked for training",
    ]  # fmt: skip


def test_hints_are_summed_over_rounds() -> None:
    figure = drawn(problems.hints(TOLD))
    assert figure.title == (
        "The hint turned 8 of 17 failures into training rows (47%); the hint showed in two "
        "answers, left out"
    )
    counts = {
        (row["difficulty"], row["what"]): row["count"] for row in values(figure.panels[0].spec)
    }
    assert counts["1", "right"] == 9
    assert counts["none", "kept"] == 1


def test_verdicts_leave_the_held_out_answers_out() -> None:
    figure = drawn(problems.verdicts(TOLD))
    assert figure.title == (
        "40% of 100 answers for training are right; most of those left out: wrong (60)"
    )
    assert len(figure.rows) == 3


def test_an_alarm_is_marked_where_it_sounded_and_nowhere_else() -> None:
    figure = drawn(monitors.entropy(TOLD))
    assert figure.title == "Entropy fell from 0.9 to 0.3: one alarm sounded"
    assert "Alarm: round 2, refresh 0: entropy is 0.5, below 0.6." in figure.note
    (mark,) = [row for row in values(figure.panels[0].spec) if "alarm" in row]
    assert mark["x"] == 1.5  # the first of two refreshes of round 2
    assert "alarm" not in drawn(monitors.length(TOLD)).title


def test_costs_leave_out_what_is_zero_everywhere() -> None:
    figure = drawn(monitors.costs(TOLD))
    assert figure.title == "2.0 minutes in all, 50% of them in update; 1,500 tokens were sampled"
    assert [panel.says for panel in figure.panels] == [
        "Wall-clock", "Tokens sampled, or trained on in updates",
    ]  # fmt: skip


def test_runs_are_compared_only_if_two_were_measured() -> None:
    assert compared([TOLD, BARE]) is None
    other = replace(BARE, metrics=measured("all", 0.4))
    title = drawn(compared([TOLD, other])).title
    assert title == "pass@1 at last: told 0.60 (round 2) and bare 0.40 (round 0)"


def test_words_by_hand() -> None:
    assert [share(0, 5), share(5, 5), share(1, 1000), share(999, 1000), share(1, 3)] == [
        "0%", "100%", "under 1%", "over 99%", "33%",
    ]  # fmt: skip
    assert [listed([]), listed(["a"]), listed(["a", "b", "c"])] == ["", "a", "a, b and c"]
    assert [counted(1, "row"), counted(0, "row"), counted(1300, "row")] == [
        "one row", "no rows", "1,300 rows",
    ]  # fmt: skip
    assert [went(0.25, 0.251), went(0.5, 0.4)] == ["stayed at 0.25", "fell from 0.50 to 0.40"]
