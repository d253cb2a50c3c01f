# SPDX-License-Identifier: Apache-2.0
"""From one round to the next: lock, begin or go on, target number of rounds, snapshots."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from configs.load import check, differences
from configs.schema import Config
from flows.context import Round, Run
from flows.environment import quiet_libraries
from flows.screen import Screen
from flows.server import prefect_server
from report.live import LiveTable
from report.rounds import header
from stages import ids
from stages.errors import ConfigError, LockedError, StoreError
from stages.ids import Id
from stages.policies.checkpoint import model_id_of
from stages.settings import canonical, identity
from store.db import Store
from store.manifest import manifest


@contextmanager
def run_lock(folder: Path, name: str) -> Iterator[None]:
    """Hold a run; LockedError names the process that holds it already."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise LockedError(
                f"run {name} is being worked on by process {holder}: wait for it, or use "
                "another --name"
            ) from error
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        yield


def sweep(folder: Path) -> None:
    """Remove drafts (`*.PID.tmp`) that a killed process left in the store's folder."""
    for path in [*folder.glob("*.tmp"), *folder.glob("models/*.tmp")]:
        owner = path.name.split(".")[-2]
        if owner.isdigit() and not _alive(int(owner)):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def run_rounds(name: str, config: Config, store: Store, screen: Screen) -> None:
    """Begin or go on with a run until `config.rounds` rounds are done."""
    config.policy.build().check()
    with run_lock(store.folder / name, name):
        store.create()
        run_id, done = _begin_or_go_on(name, config, store, screen)
        table = LiveTable(store, name, screen.say)
        sweep(store.folder)
        if done is not None and done >= config.rounds:
            store.snapshot()
            table.show()
            return
        quiet_libraries()
        run = Run(name, run_id, config, store, screen)
        screen.say(header(config))
        _work(run, model_id_of(run.base_folder), done, table)


def _work(run: Run, base: Id, done: int | None, table: LiveTable) -> None:
    if done is not None:
        table.show()
    run.screen.say("starting Prefect's server (some seconds, longer the first time)")
    with prefect_server(run.store.folder / ".prefect"):
        _rounds(run, base, done, table)


def _rounds(run: Run, base: Id, done: int | None, table: LiveTable) -> None:
    from flows.recipes import run_round

    target = run.config.rounds
    try:
        for number in range(0 if done is None else done + 1, target + 1):
            run.screen.in_round(number, target)
            start = _model_of_round(run, number - 1) if number else base
            run_round(Round(run, number, start, base))
            run.store.snapshot()
            table.show()
    except BaseException as error:
        _event(run, "cut", f"{type(error).__name__}: {error}")
        raise
    _event(run, "done", f"{target} rounds are done")
    run.store.snapshot()


def _begin_or_go_on(
    name: str, config: Config, store: Store, screen: Screen
) -> tuple[Id, int | None]:
    """The run's id and its last whole round (None before the base is measured)."""
    run_id = ids.run_id(name)
    with store.transaction() as tx:
        found = tx.ask("run_by_name", name=name)
        if not found:
            tx.append(
                "begin_run",
                run_id=run_id,
                name=name,
                recipe=config.recipe,
                config=canonical(config.model_dump(mode="json")),
                identity=canonical(identity(config)),
                manifest=canonical(manifest()),
            )
        done = tx.ask("rounds_done", run_id=run_id, every=config.evaluate.every)
    last = max((row["round"] for row in done), default=None)
    if not found:
        _event_at(store, run_id, "begun", f"run {name} begins, {config.rounds} rounds")
        screen.say(f"run {name} begins: {config.rounds} rounds")
        return run_id, None
    _take_over_changes(name, config, found[0], store)
    if last is not None and last >= config.rounds:
        screen.say(
            f"run {name} is complete: {last} rounds are done (a higher --rounds goes on from there)"
        )
    else:
        at = "its base" if last is None else f"round {last + 1} of {config.rounds}"
        _event_at(store, run_id, "gone_on", f"going on at {at}")
        screen.say(f"going on with run {name} at {at}")
    return run_id, last


def _take_over_changes(name: str, config: Config, found: dict[str, Any], store: Store) -> None:
    """Refuse a change of what is computed; record a change of how."""
    changed, operational = differences(check(json.loads(found["config"])), config)
    if changed:
        raise ConfigError(
            f"run {name} was made with another config ({'; '.join(changed)}): use that config, or "
            "start a run of its own with --name"
        )
    if operational:
        _event_at(store, found["run_id"], "config_changed", "; ".join(operational))


def _model_of_round(run: Run, number: int) -> Id:
    with run.store.transaction() as tx:
        found = tx.ask("model_of_round", run_id=run.run_id, round=number)
    if not found:
        raise StoreError(f"run {run.name} has no model for round {number}: start another --name")
    model_id: Id = found[0]["model_id"]
    return model_id


def _event(run: Run, kind: str, message: str) -> None:
    _event_at(run.store, run.run_id, kind, message)


def _event_at(store: Store, run_id: Id, kind: str, message: str) -> None:
    with store.transaction() as tx:
        tx.append(
            "add_event",
            run_id=run_id,
            round=None,
            refresh=None,
            kind=kind,
            message=message,
            detail=None,
        )
