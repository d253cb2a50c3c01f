# SPDX-License-Identifier: Apache-2.0
"""`starloop lineage`: what came from what, one subcommand a question."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.commands.common import RunArgument, StoreOption, age_line, store_path

if TYPE_CHECKING:
    from report.lineage import Answer
    from store.db import Store

EXAMPLES = (
    "starloop lineage",
    "starloop lineage trained-by star@2",
    "starloop lineage ancestors star --format tree",
)

lineage = typer.Typer(help="What came from what: one subcommand a question.")


class Format(StrEnum):
    """Output formats."""

    table = "table"
    tree = "tree"
    csv = "csv"
    json = "json"
    mermaid = "mermaid"
    graphviz = "graphviz"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="Output format.")]
AllOption = Annotated[bool, typer.Option("--all", help="Every row instead of the summary.")]
ModelArgument = Annotated[
    str | None,
    typer.Argument(help="RUN (its last model), RUN@ROUND, or an id; the newest run if left out."),
]


def _show(place: Path | None, format_: Format, ask: "Callable[[Store], Answer]") -> None:
    from report.lineage import write
    from store.db import Store

    store = Store(store_path(place))
    typer.echo(write(ask(store), format_.value), nl=False)
    typer.echo(age_line(store.copy), err=format_ is not Format.table)


@lineage.callback(invoke_without_command=True)
def page(
    context: typer.Context,
    run: Annotated[
        str | None, typer.Option("--run", help="The run; the newest if left out.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """What trained a run's last checkpoint, and what it rests on."""
    if context.invoked_subcommand is not None:
        return
    from report.lineage import last_checkpoint
    from store.db import Store

    place = Store(store_path(store))
    typer.echo(last_checkpoint(place, run))
    typer.echo(age_line(place.copy))


@lineage.command("trained-by")
def trained_by(
    model: ModelArgument = None,
    every: AllOption = False,
    format: FormatOption = Format.table,
    store: StoreOption = None,
) -> None:
    """Which trajectories of which rounds trained this model."""
    from report import lineage as questions

    _show(store, format, lambda place: questions.trained_by(place, model, every))


@lineage.command()
def ancestors(
    model: ModelArgument = None, format: FormatOption = Format.table, store: StoreOption = None
) -> None:
    """Everything a model rests on, to the base, across runs and forks."""
    from report import lineage as questions

    _show(store, format, lambda place: questions.ancestors(place, model))


@lineage.command()
def fate(
    trajectory: Annotated[str, typer.Argument(help="Id, or its first 4 or more digits.")],
    format: FormatOption = Format.table,
    store: StoreOption = None,
) -> None:
    """What became of a trajectory."""
    from report import lineage as questions

    _show(store, format, lambda place: questions.fate(place, trajectory))


@lineage.command()
def rationalized(
    at: Annotated[
        str | None, typer.Argument(metavar="RUN[@ROUND]", help="The last round if left out.")
    ] = None,
    every: AllOption = False,
    format: FormatOption = Format.table,
    store: StoreOption = None,
) -> None:
    """Which rationalized rows are still in use in a round."""
    from report import lineage as questions

    _show(store, format, lambda place: questions.rationalized(place, at, every))


@lineage.command()
def mix(
    run: RunArgument = None, format: FormatOption = Format.table, store: StoreOption = None
) -> None:
    """How a run's mix by origin moved."""
    from report import lineage as questions

    _show(store, format, lambda place: questions.mix(place, run))


@lineage.command()
def problems(
    run: RunArgument = None, format: FormatOption = Format.table, store: StoreOption = None
) -> None:
    """Problems new, kept and lost in each round."""
    from report import lineage as questions

    _show(store, format, lambda place: questions.problems(place, run))


@lineage.command()
def problem(
    problem: Annotated[str, typer.Argument(help="Id, or its first 4 or more digits.")],
    format: FormatOption = Format.table,
    store: StoreOption = None,
) -> None:
    """How every run fared on a problem."""
    from report import lineage as questions

    _show(store, format, lambda place: questions.problem(place, problem))


@lineage.command()
def downstream(
    thing: Annotated[
        str,
        typer.Argument(help="Id of any kind of thing, RUN or RUN@ROUND."),
    ],
    every: AllOption = False,
    format: FormatOption = Format.table,
    store: StoreOption = None,
) -> None:
    """Everything downstream of a thing: what it tainted if it was wrong."""
    from report import lineage as questions

    _show(store, format, lambda place: questions.downstream(place, thing, every))
