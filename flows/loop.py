# SPDX-License-Identifier: Apache-2.0
"""From one round to the next: begin or go on, target number of rounds, snapshots."""

import json
import os
from contextlib import nullcontext, suppress
from itertools import count
from typing import Any

from configs.load import check, differences
from configs.schema import Config
from flows.alarms import heed, refuse_stopped
from flows.context import Round, Run
from flows.environment import quiet_libraries
from flows.fork import Fork, check_same, source_of, take_over, whole_rounds
from flows.growth import growth
from flows.lock import run_lock, sweep, sweep_work
from flows.notify import notify
from flows.retention import retain
from flows.screen import Screen
from flows.server import prefect_server
from flows.starts import starts_warning
from report.live import LiveTable
from report.rounds import header
from stages import ids
from stages.errors import ConfigError, StoreError
from stages.ids import Id
from stages.policies.checkpoint import model_id_of
from stages.settings import canonical, identity
from stages.tasks import TaskConfig
from stages.trackers import check_tracker
from store.db import Store
from store.manifest import manifest
from store.transaction import Transaction


def run_rounds(
    name: str,
    config: Config,
    store: Store,
    screen: Screen,
    fork: Fork | None = None,
    until: int | None = None,
) -> None:
    """Begin or go on with a run until `config.rounds` rounds are done, or `until` that one is."""
    config.policy.build().check()
    config.update.updater.check()
    check_tracker(config.tracking)
    with run_lock(store.folder / name, name):
        sweep(store)
        store.create()
        run_id, done = _begin_or_go_on(name, config, store, screen, fork)
        with screen.recording(store.folder / name, name, config.recipe, config.rounds):
            target = config.rounds if until is None else min(until, config.rounds)
            _go_on(name, run_id, config, store, screen, done, target)


def _go_on(
    name: str,
    run_id: Id,
    config: Config,
    store: Store,
    screen: Screen,
    done: int | None,
    target: int,
) -> None:
    table = LiveTable(store, name, screen.row)
    if done is not None:
        sweep_work(store, store.folder / name, run_id, done)
    if done is not None and done >= target:
        store.snapshot()
        table.show()
        return
    quiet_libraries()
    run = Run(name, run_id, config, store, screen, _task_of(store, name))
    screen.say(header(config))
    asked = config.generate.problems.per_round
    problems = len(run.task.problems("train")) if asked == "all" else asked
    if (warning := starts_warning(name, config, store, problems)) is not None:
        screen.say(warning)
    try:
        _work(run, _base(run), done, target, table)
    finally:
        run.close()
        run.tracking.close()


def _task_of(store: Store, name: str) -> TaskConfig:
    """The task as the run began with it."""
    with store.transaction() as tx:
        (row,) = tx.ask("run_by_name", name=name)
    return check(json.loads(row["config"])).task


def _base(run: Run) -> Id:
    """The base's id; ConfigError where the run began with another."""
    found = model_id_of(run.base_folder)
    with run.store.transaction() as tx:
        began = tx.ask("model_of_round", run_id=run.run_id, round=0)
    if began and began[0]["model_id"] != found:
        raise ConfigError(
            f"policy: run {run.name} began with base {began[0]['model_id']}, and the policy is now "
            f"{found}: put the old one back, or start a run of its own with --name"
        )
    return found


def _work(run: Run, base: Id, done: int | None, target: int, table: LiveTable) -> None:
    if done is not None:
        table.show()
    paged = bool(os.environ.get("PREFECT_API_URL"))
    if not paged:
        run.screen.say("starting Prefect's server (some seconds, longer the first time)")
    with prefect_server(run.store.folder / ".prefect"):
        _rounds(run, base, done, target, table, paged)


def _rounds(
    run: Run, base: Id, done: int | None, target: int, table: LiveTable, paged: bool
) -> None:
    from flows.artifacts import show_round
    from flows.preflight import check_outlook
    from flows.recipes import run_round, without_heartbeats

    number = 0 if done is None else done
    try:
        run.tracking.catch_up(rounds=True)
        heed(run)
        for number in range(0 if done is None else done + 1, target + 1):
            if number == 1:
                check_outlook(run)
            run.screen.in_round(number, target)
            start = _model_of_round(run, number - 1) if number else base
            with nullcontext() if paged else without_heartbeats():
                run_round(Round(run, number, start, base))
            retain(run)
            run.store.snapshot()
            table.show()
            run.tracking.catch_up(rounds=True)
            if paged:
                show_round(run, number)
            heed(run)
    except BaseException as error:
        with suppress(Exception):
            hasty = Store(run.store.path, patience_s=1.0)
            _event(hasty, run.run_id, "cut", f"{type(error).__name__}: {error}")
        notify(run, number, str(error) or type(error).__name__, error)
        raise
    if target == run.config.rounds:
        _event(run.store, run.run_id, "done", f"{target} rounds are done")
    run.store.snapshot()
    if target == run.config.rounds:
        notify(run, target, f"{target} rounds are done")


def _begin_or_go_on(
    name: str, config: Config, store: Store, screen: Screen, fork: Fork | None
) -> tuple[Id, int | None]:
    """The run's id and its last whole round (None before the base is measured)."""
    run_id = ids.run_id(name)
    rounds = f"{config.rounds} round{'s' * (config.rounds > 1)}"
    origin = f" as a fork of {fork.run} at round {fork.round}" if fork else ""
    begins = f"run {name} begins{origin}"
    with store.transaction() as tx:
        found = tx.ask("run_by_name", name=name)
        if found:
            check_same(found[0], found[0]["forked_from_name"], fork, name)
        else:
            _begin(tx, name, run_id, config, fork)
            _write_event(tx, run_id, "forked" if fork else "begun", f"{begins}, {rounds}")
        (row,) = tx.ask("run_by_name", name=name)
        last = max(whole_rounds(tx, row, config.evaluate.every), default=None)
    if not found:
        screen.say(f"{begins}: {rounds}")
        store.snapshot()
        return run_id, last
    if found[0]["recipe"] == "import":
        raise ConfigError(f"--name: {name} is an import in this store: give another --name")
    _take_over_changes(name, config, found[0], store, screen)
    if last is not None and last >= config.rounds:
        asked = f", {config.rounds} asked for" if last > config.rounds else ""
        screen.say(
            f"run {name} is complete: {last} rounds are done{asked} "
            "(a higher --rounds goes on from there)"
        )
    else:
        refuse_stopped(store, run_id, name, config.alarms)
        at = "its base" if last is None else f"round {last + 1} of {config.rounds}"
        _event(store, run_id, "gone_on", f"going on at {at}")
        screen.say(f"going on with run {name} at {at}")
    return run_id, last


def _begin(tx: Transaction, name: str, run_id: Id, config: Config, fork: Fork | None) -> None:
    source = source_of(tx, fork, config) if fork else None
    tx.append(
        "begin_run",
        run_id=run_id,
        name=name,
        recipe=config.recipe,
        config=canonical(config.model_dump(mode="json")),
        identity=canonical(identity(config)),
        manifest=canonical(manifest()),
        forked_from=source,
        forked_at_round=fork.round if fork else None,
    )
    if fork and source:
        take_over(tx, run_id, source, fork)


def _take_over_changes(
    name: str, config: Config, found: dict[str, Any], store: Store, screen: Screen
) -> None:
    """Refuse a change of what is computed, but for a grown train file; record what changed."""
    run_id = found["run_id"]
    with store.transaction() as tx:
        (last,) = tx.ask("newest_config", run_id=run_id)
        names = {row["name"] for row in tx.ask("run_list")}
    changed, operational = differences(check(json.loads(last["config"])), config)
    grown = growth(store, run_id, changed, config)
    if changed and (grown is None or grown.fault):
        free = next(f"{name}-{n}" for n in count(2) if f"{name}-{n}" not in names)
        fault = f"; a train file may gain problems, but {grown.fault}" if grown else ""
        raise ConfigError(
            f"run {name} was made with another config ({'; '.join(changed)}{fault}): use that "
            f"config, or start a run of its own with --name {free} (and --fork {name}@ROUND to go "
            "on from one of its rounds)"
        )
    if not changed and not operational:
        return
    with store.transaction() as tx:
        if grown:
            message = f"the train file gained {grown.problems} problems"
            detail = canonical({"problems": grown.problems, "changed": changed})
            _write_event(tx, run_id, "grown", f"{message} ({'; '.join(changed)})", detail)
            screen.say(f"{message}: the next round that begins admits them")
        resolved = canonical(config.model_dump(mode="json"))
        said = "; ".join([*changed, *operational])
        _write_event(tx, run_id, "config_changed", said, resolved)


def _model_of_round(run: Run, number: int) -> Id:
    with run.store.transaction() as tx:
        found = tx.ask("model_of_round", run_id=run.run_id, round=number)
    if not found:
        raise StoreError(f"run {run.name} has no model for round {number}: start another --name")
    model_id: Id = found[0]["model_id"]
    return model_id


def _event(store: Store, run_id: Id, kind: str, message: str, detail: str | None = None) -> None:
    with store.transaction() as tx:
        _write_event(tx, run_id, kind, message, detail)


def _write_event(
    tx: Transaction, run_id: Id, kind: str, message: str, detail: str | None = None
) -> None:
    tx.append(
        "add_event",
        run_id=run_id,
        round=None,
        refresh=None,
        kind=kind,
        message=message,
        detail=detail,
    )
