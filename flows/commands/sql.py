# SPDX-License-Identifier: Apache-2.0
"""`starloop sql`: ask the readers' copy of the store."""

from enum import StrEnum
from typing import Annotated

import typer

from flows.commands.common import StoreOption, age_line, store_path
from stages.errors import ConfigError, LoopError

EXAMPLES = (
    'starloop sql "from round_summary"',
    'starloop sql "from mix_by_round" --format csv > mix.csv',
)


class Format(StrEnum):
    """Output formats."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


def sql(
    query: Annotated[str, typer.Argument(help="SQL, e.g. 'select * from round_summary'.")],
    format: Annotated[Format, typer.Option("--format", "-f", help="Output format.")] = Format.table,
    rows: Annotated[
        int, typer.Option("--rows", min=1, help="Most rows that a table shows.")
    ] = 1000,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0, help="Most seconds that DuckDB works; 0: no end.")
    ] = 60.0,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", help="Most memory, e.g. 2GB; else 4 GB or half of the machine, the lesser."
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", min=1, max=256, help="Most threads; else one a core."),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Ask the store in SQL; it answers from the read-only copy, within limits."""
    import math
    import os
    import sys

    from report.query import answer
    from store.db import Store
    from store.limits import Limits, default_memory, memory_of

    if not math.isfinite(timeout):
        raise ConfigError(f"--timeout: {timeout} is not allowed: give seconds, or 0 for no end")
    limits = Limits(
        timeout or None, default_memory() if memory is None else memory_of(memory), threads
    )
    place = Store(store_path(store))
    if format is Format.parquet and sys.stdout.isatty():
        raise ConfigError(
            "--format parquet writes bytes: send them to a file with > answer.parquet"
        )
    try:
        answer(place, query, format.value, sys.stdout.buffer, rows, limits, _end)
        if format is Format.table:
            typer.echo(age_line(place.copy))
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has had enough, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(error: LoopError) -> None:
    """The process ends: DuckDB is deep in one value and hears no interrupt."""
    import os

    typer.echo(f"starloop: {error}", err=True)
    os._exit(error.exit_code)
