# SPDX-License-Identifier: Apache-2.0
"""Every view and macro asked of a made-up history, and three of the questions of JSONL files."""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.history import model_of
from stages.ids import mint
from store.db import Store

RUN, ROUNDS = 3, 10
NAME = f"run-{RUN}"
LAST = f"'{model_of(RUN, ROUNDS)}'"

QUESTIONS = {
    "trajectory_fate": f"select round, origin, why, count(*) from trajectory_fate "
    f"where run = '{NAME}' group by all",
    "trajectory_fate, 1,000 rows": f"from trajectory_fate where run = '{NAME}' limit 1000",
    "lineage_edge": f"select relation, count(*) from lineage_edge "
    f"where run = '{NAME}' group by all",
    "lineage_edge, 1,000 rows": f"from lineage_edge where run = '{NAME}' limit 1000",
    "model_ancestry": f"from model_ancestry where model_id = {LAST}",
    "mix_by_round": f"from mix_by_round where run = '{NAME}'",
    "problem_journey": f"select round, state, count(*) from problem_journey "
    f"where run = '{NAME}' group by all",
    "problem_journey, 1,000 rows": f"from problem_journey where run = '{NAME}' limit 1000",
    "round_summary": f"from round_summary where run = '{NAME}'",
    "trained_by": f"select run, round, origin, count(*), sum(visits) "
    f"from trained_by({LAST}) group by all",
    "trained_by, 1,000 rows": f"from trained_by({LAST}) limit 1000",
    "ancestors": f"from ancestors({LAST})",
    "descendants of a model": f"select kind, run, round, count(*) "
    f"from descendants('{model_of(RUN, 5)}') group by all",
    "descendants of a trajectory": "select kind, run, round, count(*) "
    "from descendants('{trajectory}') group by all",
    "descendants, 1,000 rows": "from descendants('{trajectory}') limit 1000",
    "fate_of": "from fate_of('{trajectory}')",
    "journey": "from journey('{problem}')",
    "mix_of": f"from mix_of('{mint('y', RUN * 1000 + ROUNDS)}')",
    "rationalized_in_use": f"from rationalized_in_use('{NAME}', {ROUNDS}) limit 1000",
    "mix_moves": f"from mix_moves('{NAME}')",
    "problem_moves": f"from problem_moves('{NAME}')",
}
WHOLE = {
    "descendants of the verifier": f"select kind, count(*) from descendants('{mint('v', 0)}') "
    "group by all",
}


def ask_all(path: Path, questions: dict[str, str]) -> dict[str, float]:
    """Seconds of each question, asked cold of a new reader at 4 GB and 2 threads."""
    store = Store(path)
    size = _count(store) // 100
    chosen = (RUN * ROUNDS + 2) * size  # kept in the third round
    things = {"trajectory": mint("t", chosen), "problem": mint("p", 7)}
    seconds = {}
    for name, sql in questions.items():
        with store.reader(memory="4GB", threads=2) as connection:
            begun = time.monotonic()
            rows = connection.execute(sql.format(**things)).fetchall()
            seconds[name] = time.monotonic() - begun
        if not rows:
            raise SystemExit(f"{name} has no answer in {path}: {sql}")
    return seconds


def _count(store: Store) -> int:
    with store.reader() as connection:
        (row,) = connection.execute("select count(*) from trajectory").fetchall()
    return int(row[0])


# ── the same questions of files ─────────────────────────────────────────────────────────────

BESIDE = {
    "rows kept, by round and origin": f"select round, origin, count(*) from trajectory_fate "
    f"where run = '{NAME}' and kept group by all",
    "what trained the last model": f"select round, origin, count(*) "
    f"from trained_by({LAST}) group by all",
    "problems new, kept, lost": f"from problem_moves('{NAME}')",
}


def write_jsonl(path: Path, folder: Path) -> None:
    """One run as a loop of scripts leaves it: trajectories with their verdicts, training rows."""
    with duckdb.connect(str(path), read_only=True) as connection:
        connection.execute(f"""copy (
            select f.*, t.token_ids, t.logprobs from trajectory_fate f
            join trajectory t using (trajectory_id) where f.run = '{NAME}'
        ) to '{folder / "trajectories.jsonl"}' (format json)""")
        connection.execute(f"""copy (
            select s.round, x.trajectory_id from step_output s
            join training_row_trajectory x on x.training_set_id = s.id
            where s.run = '{NAME}' and s.kind = 'training_set'
        ) to '{folder / "training.jsonl"}' (format json)""")


def _pandas(folder: Path) -> dict[str, Callable[[], Any]]:
    import pandas

    def trajectories() -> Any:
        return pandas.read_json(folder / "trajectories.jsonl", lines=True)

    def kept() -> Any:
        rows = trajectories()
        return rows[rows.kept].groupby(["round", "origin"]).size()

    def trained() -> Any:
        rows = pandas.read_json(folder / "training.jsonl", lines=True)
        last = rows[rows["round"] == ROUNDS]
        return last.merge(trajectories(), on="trajectory_id").groupby(["round_y", "origin"]).size()

    def moves() -> Any:
        rows = trajectories()
        rows = rows[rows.purpose.isin(["train", "eval"])]
        solved = rows.assign(right=rows.status == "correct")
        right = solved.groupby(["problem_id", "round"]).right.max().unstack()
        before = right.shift(axis=1).fillna(False).astype(bool).cummax(axis=1)
        return {"new": (right & ~before).sum(), "lost": (~right.astype(bool) & before).sum()}

    return dict(zip(BESIDE, (kept, trained, moves), strict=True))


def _jq(folder: Path) -> dict[str, Callable[[], Any]]:
    def shell(program: str) -> Callable[[], Any]:
        return lambda: subprocess.run(program, shell=True, check=True, capture_output=True)

    count = "| sort | uniq -c"
    rows, training = folder / "trajectories.jsonl", folder / "training.jsonl"
    kept, trained, _ = BESIDE
    return {
        kept: shell(f"jq -r 'select(.kept) | [.round, .origin] | @tsv' {rows} {count}"),
        trained: shell(
            f"jq -r --slurpfile t {training} -n 'INDEX($t[] | select(.round == {ROUNDS}); "
            f".trajectory_id) as $last | inputs | select($last[.trajectory_id]) "
            f"| [.round, .origin] | @tsv' {rows} {count}"
        ),
    }


def beside_files(path: Path, folder: Path) -> dict[str, dict[str, float | None]]:
    """Seconds of three questions: the store, pandas, and jq where it is installed."""
    write_jsonl(path, folder)
    ours = ask_all(path, BESIDE)
    ways = {"pandas": _pandas(folder), "jq": _jq(folder) if shutil.which("jq") else {}}
    found: dict[str, dict[str, float | None]] = {n: {"starloop": s} for n, s in ours.items()}
    for way, questions in ways.items():
        for name in BESIDE:
            found[name][way] = _seconds(questions[name]) if name in questions else None
    return found


def _seconds(ask: Callable[[], Any]) -> float:
    begun = time.monotonic()
    ask()
    return time.monotonic() - begun
