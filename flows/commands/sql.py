# SPDX-License-Identifier: Apache-2.0
"""`starloop sql`: ask the readers' copy of the store."""

from enum import StrEnum
from typing import Annotated

import typer

from flows.commands.common import StoreOption, age_line, store_path


class Format(StrEnum):
    """Output formats."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


def sql(
    query: Annotated[str, typer.Argument(help="SQL, e.g. 'select * from round_summary'.")],
    format: Annotated[Format, typer.Option("--format", "-f", help="Output format.")] = Format.table,
    store: StoreOption = None,
) -> None:
    """Ask the store in SQL; it answers from the read-only copy."""
    import sys

    from report.query import answer
    from store.db import Store

    place = Store(store_path(store))
    if format is Format.parquet and sys.stdout.isatty():
        from stages.errors import ConfigError

        raise ConfigError(
            "--format parquet writes bytes: send them to a file with > answer.parquet"
        )
    sys.stdout.buffer.write(answer(place, query, format.value))
    if format is Format.table:
        typer.echo(age_line(place.copy))
