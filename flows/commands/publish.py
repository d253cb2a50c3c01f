# SPDX-License-Identifier: Apache-2.0
"""`starloop publish`: a checkpoint with its card and training set, to a folder or the Hub."""

from typing import Annotated

import typer

from flows.commands.common import StoreOption, age_line, store_path

EXAMPLES = (
    "starloop publish star --to out/star",
    "starloop publish star@3 --to hub:me/star-3 --yes",
)


def publish(
    at: Annotated[str, typer.Argument(metavar="RUN[@ROUND]", help="The last round if left out.")],
    to: Annotated[
        str, typer.Option("--to", metavar="FOLDER|hub:OWNER/NAME", help="Where; it must be empty.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Write or upload what is listed.")] = False,
    store: StoreOption = None,
) -> None:
    """List what would be published of a round's model; with --yes publish it."""
    from flows.publish import publication, target
    from report.text import size
    from store.db import Store

    where = target(to)
    place = Store(store_path(store))
    with publication(place, at) as what:
        sizes = {name: path.stat().st_size for name, path in what.files.items()}
        for name, bytes_ in sizes.items():
            typer.echo(f"{name}: {size(bytes_)}")
        subject = what.subject
        of = f"{subject.run}@{subject.round}, {len(sizes)} files, {size(sum(sizes.values()))}"
        if yes:
            typer.echo(f"{of}: published to {where.take(what)} {age_line(place.copy)}")
        else:
            typer.echo(
                f"{of}: nothing was written; --yes publishes them to {to} {age_line(place.copy)}"
            )
