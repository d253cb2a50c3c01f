# SPDX-License-Identifier: Apache-2.0
"""What a refresh looks like is stored once; alarms are said once, hold once, and stop for good."""

import json
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from running import TRY, ask, contents, starloop

from configs.load import load
from flows import steps
from flows.alarms import heed, refuse_stopped
from flows.context import Round, Run
from flows.screen import Screen
from stages import ids
from stages.errors import HeldError
from stages.policies import tiny
from stages.policies.checkpoint import model_id_of, model_row
from stages.rows import Model
from store.db import Store

SMALL = ["generate.problems.per_round=20", "task.train=40"]
LONG = "{watch: length, above: 1"


@dataclass(frozen=True)
class Begun:
    """Round 1 of a run whose round 0 has its setup step, and its screen."""

    round: Round
    screen: StringIO

    @property
    def path(self) -> Path:
        return self.round.run.store.path

    def events(self, *kinds: str) -> list[tuple[str, int, str]]:
        found = ask(self.path, "select kind, round, message, detail from event order by rowid")
        return [(kind, number, message) for kind, number, message, _ in found if kind in kinds]


def begin(folder: Path, policy: Path, *overrides: str, name: str = "one") -> Begun:
    store = Store(folder / "runs" / "store.duckdb")
    if not store.path.exists():
        store.create()
    config = load(TRY, [f"policy={{type: folder, path: {policy}}}", *SMALL, *overrides])
    with store.transaction() as tx:
        tx.append(
            "begin_run", run_id=ids.run_id(name), name=name, recipe="star", config="{}",
            identity="{}", manifest='{"accelerators": 2}', forked_from=None, forked_at_round=None,
        )  # fmt: skip
    screen = StringIO()
    run = Run(name, ids.run_id(name), config, store, Screen(Console(width=400, file=screen)))
    base = model_id_of(run.base_folder)
    steps.setup.fn(Round(run, 0, base, base))
    return Begun(Round(run, 1, base, base), screen)


def watch(r: Round, number: int = 1) -> Round:
    """A round of rejection sampling up to the step `watch`."""
    r = Round(r.run, number, r.start, r.base)
    answers = steps.generate.fn(r)
    verdicts = steps.verify.fn(r, answers)
    mixed = steps.mix.fn(r, answers, verdicts)
    steps.update.fn(r, mixed, r.init)
    steps.watch.fn(r, answers, verdicts, mixed)
    return r


@pytest.fixture
def begun(tmp_path: Path, tiny_folder: Path) -> Begun:
    return begin(tmp_path, tiny_folder)


def test_a_refresh_is_measured_from_what_the_store_holds(begun: Begun) -> None:
    watch(begun.round)
    found = {
        (name, part): value
        for name, part, value in ask(begun.path, "select name, slice, value from monitor")
    }
    ((answers, tokens, length, right, kept),) = ask(
        begun.path,
        "select count(*), sum(len(token_ids)), avg(len(token_ids)), "
        "avg(len(token_ids)) filter (status = 'correct'), "
        "count(*) filter (trajectory_id in (select trajectory_id from decision where kept)) "
        "from trajectory join verdict using (trajectory_id) "
        "where purpose = 'train' and verdict.trajectory_id in "
        "(select id from step_output where step = 'generate')",
    )
    assert 0 < kept < answers == 20
    assert found["answers", "all"] == 20
    assert found["tokens", "all"] == tokens
    assert found["length", "all"] == pytest.approx(length)
    assert found["length", "correct"] == pytest.approx(right)
    assert found["effective", "all"] == kept / answers
    assert found["reward_mean", "all"] == kept / answers  # one answer a problem, right ones train
    assert ("mixed", "all") not in found  # there are no groups
    assert ("entropy", "all") not in found  # temperature 0


def test_what_it_took_stands_beside_it_and_in_no_table_of_facts(begun: Begun) -> None:
    watch(begun.round)
    seconds = dict(ask(
        begun.path,
        "select slice, value from round_monitors where round = 1 and name = 'work_s'",
    ))  # fmt: skip
    assert seconds.keys() == {"all", "generate", "verify", "mix", "update", "watch"}
    assert seconds["all"] == pytest.approx(sum(seconds.values()) - seconds["all"])
    gpu = "select value from round_monitors where name = 'gpu_s' and slice = 'all'"
    ((gpu_s,),) = ask(begun.path, gpu)
    assert gpu_s == pytest.approx(2 * seconds["all"])  # the manifest names two accelerators
    assert ask(begun.path, "select name from monitor where ends_with(name, '_s')") == []


def test_it_is_measured_once_and_an_arm_takes_it_over(
    begun: Begun, tmp_path: Path, tiny_folder: Path
) -> None:
    watch(begun.round)
    before = contents(begun.path)
    watch(begun.round)
    assert contents(begun.path) == before
    arm = begin(tmp_path, tiny_folder, name="two")
    watch(arm.round)
    assert contents(begun.path)["monitor"] == before["monitor"]
    assert ask(begun.path, "select run, reused from step_run where step = 'watch' order by 1") == [
        ("one", False),
        ("two", True),
    ]
    runs = "select distinct run from round_monitors where name = 'length' order by 1"
    assert ask(begun.path, runs) == [("one",), ("two",)]


def test_a_policy_is_compared_with_its_base_on_a_sample(tmp_path: Path, tiny_folder: Path) -> None:
    begun = begin(tmp_path, tiny_folder, "monitors={kl: true, kl_sample: 7}")
    run = begun.round.run
    sizes = {"digits": 3, "hidden_size": 16, "layers": 1, "heads": 1, "steps": 0}
    other = tiny.Config.model_validate({"type": "tiny", "seed": 1, **sizes})
    folder = other.build().prepare(run.models, lambda done, total: None)
    with run.store.transaction() as tx:
        tx.insert(Model, [model_row(folder, "outside", run.store.folder)])
    policy = model_id_of(folder)
    watch(Round(run, 1, policy, begun.round.base))
    scored = ask(
        begun.path,
        "select p.logprob, b.logprob, len(token_ids) from trajectory t "
        "join trajectory_logprob p using (trajectory_id) "
        "join trajectory_logprob b using (trajectory_id) "
        "where (p.prompt_id, b.prompt_id) = (t.prompt_id, t.prompt_id) "
        "and p.model_id = ? and b.model_id = ?",
        policy,
        begun.round.base,
    )
    assert len(scored) == 7
    found = dict(ask(begun.path, "select name, value from monitor where name like 'kl%'"))
    assert found.keys() == {"kl_base_k1", "kl_base_k3"}  # a tally has no reference
    gaps, tokens = sum(p - b for p, b, _ in scored), sum(count for *_, count in scored)
    assert found["kl_base_k1"] == pytest.approx(gaps / tokens)
    assert found["kl_base_k3"] > 1e-6


def test_a_base_is_no_way_from_itself(tmp_path: Path, tiny_folder: Path) -> None:
    begun = begin(tmp_path, tiny_folder, "monitors.kl=true")
    watch(begun.round)
    assert ask(begun.path, "select distinct value from monitor where name like 'kl%'") == [(0.0,)]
    assert ask(begun.path, "select count(*) from trajectory_logprob") == [(20,)]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_samplers_numbers_stand_beside_the_trainers_at_its_temperature(
    tmp_path: Path, tiny_folder: Path, temperature: float
) -> None:
    begun = begin(
        tmp_path, tiny_folder, "monitors={kl: true, kl_sample: 5}", "sampler={type: transformers}",
        f"generate.sampling={{temperature: {temperature}, max_tokens: 8}}",
        "update.steps={first: 2}", "mix.seed_rows=20",
    )  # fmt: skip
    watch(begun.round)
    found = dict(ask(begun.path, "select name, value from monitor where slice = 'all'"))
    assert 0 <= found["sampler_gap"] <= found["sampler_gap_max"] < 1e-4
    begun.round.run.close()


def test_a_refresh_is_held_against_the_newest_evaluation_before_its_round(begun: Begun) -> None:
    base = begun.round.base
    steps.evaluate.fn(Round(begun.round.run, 0, base, base))
    watch(begun.round)
    ((measured,),) = ask(
        begun.path, "select value from metric where name = 'pass_at_1' and slice = 'all'"
    )
    found = dict(ask(begun.path, "select name, value from round_monitors where slice = 'all'"))
    assert 0 < measured < 1 and found["held_out"] == measured
    assert found["reward_gap"] == pytest.approx(found["reward_mean"] - measured)


# ── alarms ──────────────────────────────────────────────────────────────────────────────────


def test_an_alarm_is_an_event_and_a_line_once(tmp_path: Path, tiny_folder: Path) -> None:
    begun = begin(tmp_path, tiny_folder, f"alarms=[{LONG}}}]")
    watch(begun.round)
    watch(begun.round)
    ((_, number, message),) = begun.events("alarm", "held", "stopped")
    assert number == 1
    assert message.startswith("round 1, refresh 0: length is ")
    assert begun.screen.getvalue().count(f"alarm: {message}") == 1
    ((detail,),) = ask(begun.path, "select detail from event where kind = 'alarm'")
    ((value,),) = ask(
        begun.path, "select value from monitor where name = 'length' and slice = 'all'"
    )
    told = json.loads(detail)
    assert (told["rule"]["above"], told["values"]) == (1.0, [value])
    heed(begun.round.run)  # a warning holds nothing


def test_a_rise_counts_from_the_runs_first_refresh(tmp_path: Path, tiny_folder: Path) -> None:
    begun = begin(tmp_path, tiny_folder, "alarms=[{watch: answers, rises_by: -1, for: 2}]")
    watch(begun.round)
    assert begun.events("alarm") == []
    watch(begun.round, 2)
    ((_, number, message),) = begun.events("alarm")
    assert (number, message) == (
        2,
        "round 2, refresh 0: answers is 20, +0 from 20 (rises_by -1), 2 refreshes in a row",
    )


def test_an_alarm_that_holds_does_so_once_and_the_next_refresh_anew(
    tmp_path: Path, tiny_folder: Path
) -> None:
    begun = begin(tmp_path, tiny_folder, f"alarms=[{LONG}, then: hold}}]")
    run = begun.round.run
    watch(begun.round)
    with pytest.raises(HeldError, match=r"run one is held by an alarm: round 1.*ease the rule"):
        heed(run)
    watch(begun.round)
    heed(run)
    watch(begun.round, 2)
    with pytest.raises(HeldError, match="round 2, refresh 0"):
        heed(run)
    assert [event[:2] for event in begun.events("alarm", "held")] == [
        ("alarm", 1), ("held", 1), ("alarm", 2), ("held", 2),
    ]  # fmt: skip


def test_an_alarm_that_stops_does_so_until_its_rule_is_changed(
    tmp_path: Path, tiny_folder: Path
) -> None:
    begun = begin(tmp_path, tiny_folder, f"alarms=[{LONG}, then: hold}}, {LONG}, then: stop}}]")
    run = begun.round.run
    rules = run.config.alarms
    refuse_stopped(run.store, run.run_id, "one", rules)
    watch(begun.round)
    with pytest.raises(HeldError, match=r"is stopped by an alarm: .*take it out of `alarms`"):
        heed(run)
    assert [event[0] for event in begun.events("held", "stopped")] == ["held", "stopped"]
    heed(run)
    with pytest.raises(HeldError, match="run one is stopped by an alarm") as stopped:
        refuse_stopped(run.store, run.run_id, "one", rules)
    assert stopped.value.exit_code == 3
    refuse_stopped(run.store, run.run_id, "one", rules[:1])


def test_what_a_trainer_measured_is_counted_within_its_update(
    begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule that is built in hears chosen answers that grow less likely."""
    from stages.updaters.base import Trained
    from stages.updaters.tally import Tally

    trained = Tally.update

    def falling(self: Tally, *arguments: object) -> Trained:
        done = trained(self, *arguments)  # type: ignore[arg-type]
        series = [(step, "logps/chosen", -10.0 - step / 2) for step in range(1, 21)]
        return Trained(done.steps_done, done.visits, done.loss, series)

    monkeypatch.setattr(Tally, "update", falling)
    watch(begun.round)
    ((_, _, message),) = begun.events("alarm")
    # means of the first two steps and of the last two
    assert message == (
        "round 1, refresh 0: train/logps/chosen is -19.75, -9 from -10.75 (falls_by 5)"
    )


@pytest.mark.slow
def test_a_run_is_held_after_its_round_told_and_goes_on_with_the_same_command(
    tmp_path: Path,
) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    told = tmp_path / "told"
    keep = f'["sh", "-c", "cat > {told}"]'
    command = (
        *("run", TRY, "--store", store, "rounds=1", *SMALL, f"notify.command={keep}"),
        f"alarms=[{LONG}, then: hold}}]",
    )
    held = starloop(*command)
    assert held.code == 3, held.err
    assert "run try is held by an alarm: round 1, refresh 0: length is" in held.err
    assert json.loads(told.read_text())["event"] == "held"
    assert ask(store, "select count(*) from step_run where round = 1 and step = 'evaluate'") == [
        (1,)
    ]
    again = starloop(*command, "rounds=2")
    assert again.code == 3, again.err
    assert "round 2, refresh 0" in again.err
    ended = starloop(*command, "rounds=3", "alarms=[]")
    assert ended.code == 0, ended.err
    assert json.loads(told.read_text()) == {
        "run": "try", "round": 3, "event": "done", "message": "3 rounds are done",
    }  # fmt: skip


@pytest.mark.slow
def test_a_run_that_an_alarm_stopped_goes_on_once_the_rule_is_gone(tmp_path: Path) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    command = ("run", TRY, "--store", store, *SMALL)
    rule = f"alarms=[{LONG}, then: stop}}]"
    assert starloop(*command, rule).code == 3
    again = starloop(*command, rule)
    assert (again.code, again.out) == (3, "")
    assert "run try is stopped by an alarm" in again.err
    assert "stopped by an alarm" in starloop("status", "--store", store).out
    assert starloop(*command, "alarms=[]").code == 0
    assert ask(store, "select max(round) from step_run") == [(2,)]
