# SPDX-License-Identifier: Apache-2.0
"""`starloop verify`: a run's stored trajectories judged anew by another verifier."""

from typing import Annotated

import typer

from flows.commands.common import StoreOption, age_line, store_path


def verify(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    with_: Annotated[
        str, typer.Option("--with", help="Verifier: a type such as exact.", show_default=False)
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="key=value of the verifier, e.g. mark='=>'.")
    ] = None,
    round_: Annotated[
        int | None, typer.Option("--round", help="This round alone.", show_default=False)
    ] = None,
    store: StoreOption = None,
) -> None:
    """Judge stored trajectories anew; show who flipped and which models that touches."""
    from flows.reverify import reverify
    from flows.screen import Screen
    from report.pages import as_text
    from report.reverify import reverify_sections
    from stages.errors import StoreError
    from store.db import Store

    screen = Screen()
    place = Store(store_path(store), screen.say)
    if not place.path.exists():
        raise StoreError(f"there is no store at {place.path}: name one with --store")
    verifier_id = reverify(place, run, with_, overrides or [], round_, screen)
    typer.echo(as_text(reverify_sections(place, run, verifier_id)))
    typer.echo(age_line(place.copy))
