# SPDX-License-Identifier: Apache-2.0
"""A made-up history of any size in a store's tables: runs × rounds × trajectories."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb

from stages.ids import mint
from store.db import Store

ROUND = (Path(__file__).parent / "history.sql").read_text()
BEGIN = """
insert into model values ($base, 'outside', 'Made', 1, null, 'models/base');
insert into verifier values (mint('v', [0]), 'exact', '1', '{}');
insert into problem by name
select mint('p', [n]) as problem_id, 'made' as task, if(n < 0, 'dev', 'train') as split,
       'question ' || n as question, 'x' as answer, 1.0 as difficulty
from range(-500, $problems) r(n);
insert into prompt by name
select mint('q', [mint('p', [n])::varchar, hinted::varchar]) as prompt_id,
       mint('p', [n]) as problem_id, mint('x', [0]) as prompt_set_id,
       hinted, [1, 2, 3] as token_ids, 'question ' || n as text
from range(-500, $problems) r(n), (values (false), (true)) h(hinted);
"""


def model_of(run: int, round_: int) -> UUID:
    """The model that a made run's round ended with; round 0 is the base, shared by all runs."""
    return mint("m", run * 1000 + round_ if round_ else -1)


def write_history(
    path: Path,
    runs: int,
    rounds: int,
    size: int,
    words: int,
    tokens: int,
    say: Callable[[str], None] = print,
    config: str = "{}",
) -> None:
    """Write `runs` runs of `rounds` rounds of `size` trajectories into a new store at `path`.

    All of them have the same `config`, as JSON.
    """
    Store(path).create()
    vocabulary = _vocabulary()
    problems = max(100, size // 10) | 1  # odd: a problem is answered in every way
    with duckdb.connect(str(path), config={"threads": 2, "memory_limit": "6GB"}) as connection:
        for statement in BEGIN.split(";")[:-1]:
            named = {"base": model_of(0, 0), "problems": problems}
            used = {k: v for k, v in named.items() if f"${k}" in statement}
            connection.execute(statement, used)
        _set(connection, vocabulary=vocabulary, words=words, tokens=tokens, problems=problems)
        _set(connection, base=model_of(0, 0), size=size)
        for run in range(runs):
            connection.execute(
                "insert into run values "
                "($id, $name, 'star', $config, '{}', '{}', null, null, now())",
                {"id": mint("r", run), "name": f"run-{run}", "config": config},
            )
            for round_ in range(1, rounds + 1):
                _round(connection, run, round_, rounds, size)
            say(f"  {(run + 1) * rounds * size:,} trajectories of {runs * rounds * size:,}")
        connection.execute("checkpoint")


def _round(
    connection: duckdb.DuckDBPyConnection, run: int, round_: int, rounds: int, size: int
) -> None:
    number = run * 1000 + round_
    _set(
        connection,
        run_id=mint("r", run),
        name=f"run-{run}",
        round=round_,
        number=number,
        run_begin=run * rounds * size,
        begin=(run * rounds + round_ - 1) * size,
        policy=model_of(run, round_ - 1),
        policies=[model_of(run, earlier) for earlier in range(round_)],
        model=mint("m", number),
        held=mint("y", number),
        update=mint("u", number),
        measured=mint("e", number),
        mix_key=mint("k", number, "mix"),
        hint_key=mint("k", number, "rationalize"),
    )
    connection.execute("begin")
    connection.execute(ROUND)
    connection.execute("commit")


def _set(connection: duckdb.DuckDBPyConnection, **variables: Any) -> None:
    for name, value in variables.items():
        connection.execute(f"set variable {name} = $value", {"value": value})


def _vocabulary() -> list[str]:
    """2,048 words of 2 to 9 letters."""
    rng = random.Random(0)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    return ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(2048)]
