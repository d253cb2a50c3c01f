# SPDX-License-Identifier: Apache-2.0
"""The questions of `starloop lineage`: a title and a table each, and edges where there are any."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from report.graphs import GRAPHS, Edge, as_tree
from report.query import written
from report.runs import newest_run
from report.things import any_thing, model_of, run_and_round, thing_of
from stages.errors import ConfigError
from store.db import Store
from store.transaction import read, read_table

DRAWN = ("tree", *GRAPHS)
WRITTEN = ("table", "csv", "json")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; `root` is where its tree begins, which runs against the edges if `backwards`."""

    title: str
    table: pa.Table
    root: str = ""
    edges: Sequence[Edge] = ()
    backwards: bool = False


def write(answer: Answer, format_: str) -> str:
    """The answer in a format; ConfigError where it has no graph to draw."""
    if format_ in WRITTEN:
        text = written(answer.table, format_).decode()
        return f"{answer.title}\n\n{text}" if format_ == "table" else text
    if not answer.root:
        raise ConfigError(
            f"--format: this answer has no graph, {format_} is not possible: {', '.join(WRITTEN)}"
        )
    if format_ == "tree":
        return as_tree(answer.root, answer.edges, answer.backwards) + "\n"
    return GRAPHS[format_](answer.edges) + "\n"


def trained_by(store: Store, model: str | None, every: bool) -> Answer:
    """Which trajectories of which rounds trained a model: visited by its optimizer."""
    with store.reader() as connection:
        thing = model_of(connection, model)
        name = "lineage_trained_by_all" if every else "lineage_trained_by"
        table = read_table(connection, name, model_id=thing.id)
        groups = read(connection, "lineage_trained_by", model_id=thing.id)
    edges = [
        Edge(
            f"{row['run']}, {_round(row['round'], row['refresh'])}, {row['origin']}: "
            f"{row['trajectories']:,} trajectories",
            thing.label,
            f"{row['visits']:,} visits",
        )
        for row in groups
    ]
    return Answer(f"trained {thing.label} ({thing.id})", table, thing.label, edges, True)


def ancestors(store: Store, model: str | None) -> Answer:
    """Everything a model rests on, to the base, across runs and forks."""
    with store.reader() as connection:
        thing = model_of(connection, model)
        table = read_table(connection, "lineage_ancestors", model_id=thing.id)
        rows = read(connection, "lineage_ancestors", model_id=thing.id)
        found = read(connection, "lineage_model_edges", model_id=thing.id)
    names = {row["model_id"]: _model_name(row) for row in rows} | {thing.id: thing.label}
    edges = [
        Edge(names[row["parent_id"]], names[row["model_id"]], row["relations"]) for row in found
    ]
    return Answer(f"{thing.label} ({thing.id}) rests on", table, thing.label, edges, True)


def fate(store: Store, trajectory: str) -> Answer:
    """What became of a trajectory in every run that used it."""
    with store.reader() as connection:
        thing = thing_of(connection, trajectory, "trajectory")
        table = read_table(connection, "lineage_fate", trajectory_id=thing.id)
        rows = read(connection, "lineage_fate", trajectory_id=thing.id)
    edges = [Edge(f"problem {rows[0]['problem_id']}", thing.label, "asked")] if rows else []
    for row in rows:
        verdict = f"{row['run']}, {_round(row['round'])}: {row['status'] or 'not judged'}"
        decision = f"{verdict}, {'kept' if row['kept'] else row['why']}"
        edges.append(Edge(thing.label, decision, row["origin"]))
        edges += [Edge(decision, f"training set {held}", "in") for held in row["training_sets"]]
        edges += [Edge(decision, f"model {model}", "trained") for model in row["trained_models"]]
    return Answer(f"fate of {thing.label}", table, thing.label, edges[1:])


def rationalized(store: Store, at: str | None, every: bool) -> Answer:
    """Which rationalized rows are still in use in a round."""
    with store.reader() as connection:
        run, number = run_and_round(connection, at)
        name = "lineage_rationalized_all" if every else "lineage_rationalized"
        table = read_table(connection, name, run=run, round=number)
    return Answer(f"rationalized rows that {run} trained on in round {number}", table)


def mix(store: Store, run: str | None) -> Answer:
    """How a run's mix by origin moved from round to round."""
    with store.reader() as connection:
        name = newest_run(connection, run)
        table = read_table(connection, "lineage_mix", run=name)
    return Answer(f"mix of {name} by origin", table)


def problems(store: Store, run: str | None) -> Answer:
    """Problems new, kept and lost in each round of a run."""
    with store.reader() as connection:
        name = newest_run(connection, run)
        table = read_table(connection, "lineage_problems", run=name)
    return Answer(f"problems of {name}: solved for the first time, again, lost, not yet", table)


def problem(store: Store, text: str) -> Answer:
    """How every run fared on a problem, round by round."""
    with store.reader() as connection:
        thing = thing_of(connection, text, "problem")
        table = read_table(connection, "lineage_problem", problem_id=thing.id)
    return Answer(f"journey of {thing.label}", table)


def downstream(store: Store, text: str, every: bool) -> Answer:
    """Everything downstream of a thing: what it tainted if it was wrong."""
    with store.reader() as connection:
        thing = any_thing(connection, text)
        name = "lineage_downstream_all" if every else "lineage_downstream"
        table = read_table(connection, name, thing=thing.id)
        groups = read(connection, "lineage_downstream", thing=thing.id)
    edges = [
        Edge(thing.label, f"{row['run']}, {_round(row['round'])}: {_counted(row)}")
        for row in groups
    ]
    return Answer(f"downstream of {thing.label}", table, thing.label, edges)


def last_checkpoint(store: Store, run: str | None) -> str:
    """What trained a run's last checkpoint, and the models it rests on, as text."""
    return "\n".join(
        [
            write(trained_by(store, run, False), "table"),
            write(ancestors(store, run), "table").rstrip(),
        ]
    )


def _round(number: int | None, refresh: int | None = 0) -> str:
    place = "base" if number == 0 else f"round {number}"
    return f"{place} refresh {refresh}" if refresh else place


def _counted(row: dict[str, Any]) -> str:
    kind = row["kind"].replace("_", " ")
    return f"{row['count']:,} {kind}{'s' * (row['count'] != 1)}"


def _model_name(row: dict[str, Any]) -> str:
    where = f"{row['run']}@{row['round']}" if row["run"] else row["path"]
    where += f" refresh {row['refresh']}" if row["refresh"] else ""
    return f"{where} {str(row['model_id'])[:8]}"
