# SPDX-License-Identifier: Apache-2.0
"""What round 0 says of the rounds to come: held, warned of, or gone on with."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from running import TRY, ask, starloop

from configs.load import load
from flows import steps
from flows.context import Round, Run
from flows.preflight import check_outlook, read_outlook, read_pace
from flows.screen import Screen
from report.forecast import Forecast
from report.preflight import outlook_lines, preflight_page
from stages import ids
from stages.errors import HeldError
from stages.policies.checkpoint import model_id_of
from stages.preflight import outlook
from store.db import Store


def measured(tmp_path: Path, policy: Path, *overrides: str) -> tuple[Run, StringIO]:
    """A run whose round 0 has measured the base, and its screen."""
    store = Store(tmp_path / "runs" / "store.duckdb")
    if not store.path.exists():
        store.create()
    config = load(
        TRY, [f"policy={{type: folder, path: {policy}}}", "evaluate.problems=3", *overrides]
    )
    with store.transaction() as tx:
        tx.append(
            "begin_run", run_id=ids.run_id("one"), name="one", recipe="star", config="{}",
            identity="{}", manifest="{}", forked_from=None, forked_at_round=None,
        )  # fmt: skip
    screen = StringIO()
    run = Run("one", ids.run_id("one"), config, store, Screen(Console(width=400, file=screen)))
    base = model_id_of(run.base_folder)
    zero = Round(run, 0, base, base)
    for step in (steps.setup, steps.admit, steps.evaluate):
        step.fn(zero)
    return run, screen


def test_a_base_that_solves_nothing_is_held_before_round_1(
    tmp_path: Path, tiny_folder: Path
) -> None:
    run, _ = measured(tmp_path, tiny_folder, "sampler.skill=0.0")
    with pytest.raises(HeldError) as held:
        check_outlook(run)
    assert str(held.value).startswith(
        "run one is held before round 1: pass@1 0.000 and pass@4 0.000 of the base on 9 problems: "
        "the base solves no problem"
    )
    assert held.value.exit_code == 3


def test_it_is_gone_on_with_where_the_config_says_so(tmp_path: Path, tiny_folder: Path) -> None:
    given = ("sampler.skill=0.0", "gates.preflight=warn")
    run, screen = measured(tmp_path, tiny_folder, *given)
    check_outlook(run)
    assert "warning: pass@1 0.000 and pass@4 0.000 of the base on 9 problems" in screen.getvalue()


def test_a_base_that_solves_everything_is_warned_of(tmp_path: Path, tiny_folder: Path) -> None:
    run, screen = measured(tmp_path, tiny_folder, "sampler.skill=1.0")
    check_outlook(run)
    assert "the base solves 100% already and little is left to learn" in screen.getvalue()


def test_of_a_base_that_can_climb_nothing_is_said(tmp_path: Path, tiny_folder: Path) -> None:
    run, screen = measured(tmp_path, tiny_folder, "sampler.skill=0.4")
    check_outlook(run)
    assert "warning" not in screen.getvalue()
    found = read_outlook(run.store, run.run_id, 4)
    ((value,),) = ask(run.store.path, "select value from metric where name = 'pass_at_1' "
                      "and slice = 'all'")  # fmt: skip
    assert found is not None
    assert found.pass_at_1 == pytest.approx(value)  # as many problems of each difficulty
    assert (found.problems, found.n) == (9, 8)


def test_the_pace_is_of_round_0s_own_answers(tmp_path: Path, tiny_folder: Path) -> None:
    run, _ = measured(tmp_path, tiny_folder)
    ((answers, tokens),) = ask(
        run.store.path,
        "select count(*), sum(len(token_ids)) from trajectory where purpose = 'eval'",
    )
    ((work_s,),) = ask(run.store.path, "select work_s from step_run where step = 'evaluate'")
    pace = read_pace(run.store, run.run_id)
    assert pace is not None
    assert pace.tokens == pytest.approx(tokens / answers)
    assert pace.per_second == pytest.approx(tokens / work_s)
    other = ids.run_id("not begun")
    assert read_pace(run.store, other) is None
    assert read_outlook(run.store, other, 4) is None


FORECAST = Forecast("r", 2, 4, 3, 2, 10, 20.0, True, 100, 50, "all", 2, 40, 60, 1210)


def test_the_page_by_hand() -> None:
    found = outlook([(4, 0), (4, 0), (4, 1), (4, 4)], 2)
    assert [line.rstrip() for line in outlook_lines(found)] == [
        "base on 4 held-out problems, 4 answers each: pass@1 0.312, pass@2 0.375",
        "mixed outcomes: 1 problems (25%), never solved 2, always 1",
        "problems by pass rate",
        f"   never      2  {'█' * 40}",
        f"   < 0.3      1  {'█' * 20}",
        f"  always      1  {'█' * 20}",
    ]
    page = preflight_page(found, (12.5, 50.0), FORECAST).splitlines()
    # 10 answers of 12.5 tokens are 125, at 50 a second two and a half seconds
    assert (
        "to sample: 10 answers, 125 tokens at 12 each, 0:02 at 50 tokens/s; updates come"
        in (page[6])
    )
    assert page[7].startswith("forecast for run r")
    held = preflight_page(outlook([(4, 0)], 2), None, FORECAST).splitlines()
    assert [line for line in held if line.startswith("hold: the base solves no problem")]
    assert preflight_page(None, None, FORECAST).startswith("round 0 measured nothing\n")


ROUND_0 = "select step, step_key, started_at, reused from step_run where round = 0 order by 1"


@pytest.mark.slow
def test_a_run_goes_on_from_its_preflight_and_samples_round_0_once(tmp_path: Path) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    given = (TRY, "--name", "one", "--store", store)
    looked = starloop("preflight", *given)
    assert looked.code == 0, looked.err
    assert "problems by pass rate" in looked.out and "to sample: " in looked.out
    before = ask(store, ROUND_0)
    assert ask(store, "select distinct purpose from trajectory order by 1") == [
        ("eval",),
        ("seed",),
    ]
    assert ask(store, "select distinct round from step_run") == [(0,)]
    ran = starloop("run", TRY, "--rounds", 1, *given[1:])
    assert ran.code == 0, ran.err
    assert ask(store, ROUND_0) == before
    assert ask(store, "select distinct round from step_run order by 1") == [(0,), (1,)]


@pytest.mark.slow
def test_a_hopeless_base_ends_the_command_with_3_until_the_config_goes_on(tmp_path: Path) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    given = (TRY, "sampler.skill=0.0", "--rounds", 1, "--store", store)
    held = starloop("run", *given)
    assert held.code == 3
    assert held.err.splitlines()[-1].startswith("starloop: run try is held before round 1")
    assert ask(store, "select distinct round from step_run") == [(0,)]
    looked = starloop("preflight", *given[:2], "--store", store)
    assert looked.code == 3 and "hold: the base solves no problem" in looked.out
    gone_on = starloop("run", *given, "gates.preflight=warn")
    assert gone_on.code == 0, gone_on.err
    assert ask(store, "select max(round) from step_run") == [(1,)]
