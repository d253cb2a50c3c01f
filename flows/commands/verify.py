# SPDX-License-Identifier: Apache-2.0
"""`starloop verify`: a run's stored trajectories judged anew by another verifier."""

from typing import Annotated

import typer

from flows.commands.common import StoreOption, age_line, choose, run_names, store_path

EXAMPLES = ('starloop verify star --with exact mark="=>"',)


def verify(
    run: Annotated[str, typer.Argument(help="Name of the run.", autocompletion=run_names)],
    with_: Annotated[
        str, typer.Option("--with", help="Verifier: a type such as exact.", show_default=False)
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="key=value of the verifier, e.g. mark='=>'.")
    ] = None,
    round_: Annotated[
        int | None, typer.Option("--round", help="This round alone.", show_default=False)
    ] = None,
    format: Annotated[
        str,
        typer.Option("--format", "-f", help="table (the whole page), csv or json (who flipped)."),
    ] = "table",
    store: StoreOption = None,
) -> None:
    """Judge stored trajectories anew; show who flipped and which models that touches."""
    import sys

    from flows.reverify import reverify
    from flows.screen import Screen
    from flows.views import view_on
    from report.pages import as_text
    from report.reverify import flips, reverify_sections
    from stages.errors import Interrupted
    from store.db import Store

    choose("--format", format, ("table", "csv", "json"))
    page = format == "table"
    try:
        with Screen(view=view_on(stderr=not page)) as screen:
            place = Store(store_path(store), screen.say)
            place.must_exist()
            verifier_id = reverify(place, run, with_, overrides or [], round_, screen)
    except KeyboardInterrupt as stop:
        raise Interrupted("interrupted: the same command goes on from here") from stop
    if not page:
        sys.stdout.buffer.write(flips(place, run, verifier_id, format))
        return
    typer.echo(as_text(reverify_sections(place, run, verifier_id)))
    typer.echo(age_line(place.copy))
