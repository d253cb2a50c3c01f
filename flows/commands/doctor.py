# SPDX-License-Identifier: Apache-2.0
"""`starloop doctor`: is the store sound, and what around it is not."""

from typing import Annotated

import typer

from flows.commands.common import StoreOption, store_path

EXAMPLES = (
    "starloop doctor",
    "starloop doctor --recover",
)


def doctor(
    recover: Annotated[
        bool,
        typer.Option(
            "--recover",
            help="Put in the place of a store that cannot be read what can; keep a backup.",
        ),
    ] = False,
    store: StoreOption = None,
) -> None:
    """Look for what is wrong with the store and around it; nothing is changed without --recover."""
    from flows.doctor import AROUND, BESIDE, OUTLINE, Place, mount_table, refuse_under_way
    from report.text import visible
    from store.checks import Unreadable, look_inside
    from store.db import Store
    from store.recovery import recover as put_back

    place = Place(Store(store_path(store), say=typer.echo), mount_table())
    place.store.must_exist()
    refuse_under_way(place)
    if recover:
        done = put_back(place.store)
        for path in done.kept if done else ():
            typer.echo(visible(f"kept: {path}"))
        if done:
            typer.echo(f"lost: {done.lost}; run the last run's command again, it does that again")
        else:
            typer.echo("nothing to recover: the store can be read, and its log")
    found = [finding for look in AROUND for finding in look(place)]
    try:
        found += look_inside(place.store)
        found += [finding for look in BESIDE for finding in look(place)]
    except Unreadable as error:
        found.append(error.finding)
    for finding in found:
        typer.echo(visible(f"{finding.what}: {finding.where}"))
        typer.echo(visible(f"  → {finding.mend}"))
    if found:
        raise typer.Exit(1)
    typer.echo(visible(f"nothing found in {place.store.path}:"))
    for line in OUTLINE:
        typer.echo(f"  {line}")
