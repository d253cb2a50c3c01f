# SPDX-License-Identifier: Apache-2.0
"""A run's stored trajectories judged anew by another verifier, round by round, exactly once.

New verdicts stand beside the old ones; what the run decided stays. Each round gets a step
`reverify …` of its own, which the views of the run leave out.
"""

import json
import time
from collections.abc import Sequence
from typing import Any

from configs.load import apply, check
from configs.schema import Config
from flows.commit import Output, store_step
from flows.fork import whole_rounds
from flows.lock import run_lock
from flows.screen import Screen
from stages import ids
from stages.errors import ConfigError, StoreError
from stages.ids import Id
from stages.rows import Problem, Trajectory, Verdict, VerdictComponent, Verifier
from stages.verifiers import VerifierPart
from stages.verify import hold_unjudged, verifier_row, verify
from store.db import Store

VERSION = 1


def verifier_of(config: Config, name: str, overrides: Sequence[str]) -> VerifierPart:
    """The verifier of that name; its other keys are its defaults or `key=value`."""
    values = config.model_dump(mode="json")
    values["verifier"] = {"type": name}
    for override in overrides:
        if not override.partition("=")[1]:
            raise ConfigError(f"--with {name}: {override!r} is not key=value: write e.g. mark='=>'")
        apply(values, f"verifier.{override}")
    return check(values).verifier.build()


def reverify(
    store: Store,
    run: str,
    name: str,
    overrides: Sequence[str],
    only: int | None,
    screen: Screen,
) -> Id:
    """Judge a run's rounds, or `only` one, with another verifier; the verifier's id."""
    store.create()
    with store.transaction() as tx:
        found = tx.ask("run_by_name", name=run)
        if not found or found[0]["recipe"] == "import":
            raise ConfigError(f"verify: {run!r} is not a run of a recipe: `starloop status` lists")
        run_id: Id = found[0]["run_id"]
        (newest,) = tx.ask("newest_config", run_id=run_id)
        config = check(json.loads(newest["config"]))
        rounds = whole_rounds(tx, found[0], config.evaluate.every)
    if only is not None and only not in rounds:
        raise ConfigError(
            f"--round: run {run} has no whole round {only}; whole ones: "
            f"{', '.join(map(str, rounds)) or 'none yet'}"
        )
    verifier = verifier_of(config, name, overrides)
    with run_lock(store.folder / run, run):
        for number in rounds if only is None else [only]:
            _round(store, run, run_id, number, verifier, config.gates.max_unjudged, screen)
    store.snapshot()
    return verifier_row(verifier).verifier_id


def _round(
    store: Store,
    run: str,
    run_id: Id,
    number: int,
    verifier: VerifierPart,
    most_unjudged: float,
    screen: Screen,
) -> None:
    place: dict[str, Any] = {"run_id": run_id, "round": number, "refresh": 0}
    row = verifier_row(verifier)
    step = f"reverify {str(row.verifier_id)[:8]}"
    begun = time.monotonic()
    with store.transaction() as tx:
        trajectories = tx.rows(Trajectory, "round_trajectories", run_id=run_id, round=number)
        wanted = list(dict.fromkeys(t.problem_id for t in trajectories))
        problems = {p.problem_id: p for p in tx.rows(Problem, "problems_by_id", ids=wanted)}
        committed = tx.ask("step_committed", **place, step=step)
    judged = ids.hash_ids(t.trajectory_id for t in trajectories)
    key = ids.step_key("reverify", VERSION, [row.verifier_id, judged], "")
    if committed and committed[0]["step_key"] != key:
        raise StoreError(
            f"round {number}, step {step} was committed with another key "
            f"({committed[0]['step_key']}, now {key}): the code or its inputs changed; judge with "
            "a verifier of another version or config"
        )
    if committed:
        screen.say(f"round {number}: judged already")
    if committed or not trajectories:
        return
    with screen.stage(f"round {number}: verify", total=len(trajectories)) as stage:
        verdicts, components = verify(trajectories, problems, verifier)
        stage.advance(len(trajectories))
    hold_unjudged(verdicts, most_unjudged, number)
    output = Output(
        [(Verifier, [row]), (Verdict, verdicts), (VerdictComponent, components)],
        {"verdict": [verdict.verdict_id for verdict in verdicts]},
    )
    seconds = time.monotonic() - begun
    with store.transaction() as tx:
        store_step(tx, run, place, step, key, output, seconds, seconds)
