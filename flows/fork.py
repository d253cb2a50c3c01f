# SPDX-License-Identifier: Apache-2.0
"""Forks: a new run that takes over another's rounds and goes on from there under its own config."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from configs.load import check, differences
from configs.schema import Config
from report.runs import nearest
from stages.errors import ConfigError
from stages.ids import Id
from store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Fork:
    """The run and its last round that are taken over."""

    run: str
    round: int


def parse(text: str) -> Fork:
    """`RUN@ROUND` as a fork."""
    run, mark, number = text.rpartition("@")
    if not mark or not run or not number.isascii() or not number.isdigit():
        raise ConfigError(
            f"--fork: {text!r} is not RUN@ROUND: write e.g. star@2 for round 2 of run star"
        )
    return Fork(run, int(number))


def whole_rounds(tx: Transaction, run: Mapping[str, Any], every: int) -> list[int]:
    """The rounds of a run that are done, those a fork took over included; `every`: of evaluate."""
    rows = tx.ask("rounds_done", run_id=run["run_id"], every=every)
    taken = run["forked_at_round"]
    return sorted({row["round"] for row in rows} | set(range(0 if taken is None else taken + 1)))


def source_of(tx: Transaction, fork: Fork, config: Config) -> Id:
    """The id of the run that is forked; ConfigError where its rounds cannot be gone on from."""
    found = tx.ask("run_by_name", name=fork.run)
    if not found or found[0]["recipe"] == "import":
        names = [row["name"] for row in tx.ask("run_list") if row["recipe"] != "import"]
        raise ConfigError(f"--fork: there is no run {fork.run!r}{nearest(fork.run, names)}")
    source: Id = found[0]["run_id"]
    (newest,) = tx.ask("newest_config", run_id=source)
    theirs = check(json.loads(newest["config"]))
    done = whole_rounds(tx, found[0], theirs.evaluate.every)
    if fork.round not in done:
        raise ConfigError(
            f"--fork: run {fork.run} has no whole round {fork.round}; whole ones: "
            f"{', '.join(map(str, done)) or 'none yet'}"
        )
    if config.rounds <= fork.round:
        raise ConfigError(
            f"--fork: round {fork.round} is taken over, and rounds is {config.rounds}: set "
            f"--rounds to {fork.round + 1} or more"
        )
    _check_same_base(fork, theirs, config)
    return source


def _check_same_base(fork: Fork, theirs: Config, ours: Config) -> None:
    """The rows that are taken over were written by the source's base, in its prompts."""
    changed, _ = differences(theirs, ours)
    base = [line for line in changed if line.startswith("policy")]
    if base:
        raise ConfigError(
            f"--fork: another base than run {fork.run}'s ({'; '.join(base)}): a fork keeps the "
            "base; start a run of its own instead"
        )
    prompts = [c.prompt_set(c.task.build()).prompt_set_id for c in (theirs, ours)]
    if prompts[0] != prompts[1]:
        raise ConfigError(
            f"--fork: another prompt set than run {fork.run}'s: its rows cannot be mixed with "
            "new ones; start a run of its own instead"
        )


def take_over(tx: Transaction, run_id: Id, source: Id, fork: Fork) -> None:
    """Write the source's steps and outputs down as the fork's own."""
    place: dict[str, Any] = {
        "run_id": run_id,
        "forked_from": source,
        "forked_at_round": fork.round,
    }
    tx.append("fork_steps", **place)
    tx.append("fork_outputs", **place)
    tx.append("fork_resets", **place)


def check_same(run: dict[str, Any], source_name: str | None, fork: Fork | None, name: str) -> None:
    """ConfigError where a run that is there already is not the fork that is asked for."""
    if fork is not None and (source_name, run["forked_at_round"]) != (fork.run, fork.round):
        is_ = f"forked from {source_name}@{run['forked_at_round']}" if source_name else "not a fork"
        raise ConfigError(
            f"--fork: run {name} is there already and {is_}: leave --fork out to go on with it, "
            "or use another --name"
        )
