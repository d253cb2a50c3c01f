# SPDX-License-Identifier: Apache-2.0
"""`starloop gc`: free what the runs' `keep` lets go, and what killed processes left behind."""

from typing import Annotated

import typer

from flows.commands.common import StoreOption, run_names, store_path

EXAMPLES = (
    "starloop gc",
    "starloop gc star --yes",
)


def gc(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names of runs; all if left out.", show_default=False, autocompletion=run_names
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete what is listed.")] = False,
    store: StoreOption = None,
) -> None:
    """List what can be freed, with sizes; with --yes free it. No row is ever deleted."""
    import shutil

    from flows.lock import drafts, sweep
    from flows.retention import bytes_in, free, freeable, hold, litter
    from report.freed import freed_page
    from report.runs import nearest
    from report.text import visible
    from stages.errors import ConfigError
    from store.db import Store

    place = Store(store_path(store), say=typer.echo)
    place.must_exist()
    place.create()
    with place.transaction() as tx:
        names = [row["name"] for row in tx.ask("keep_rules")]
    for name in runs or []:
        if name not in names:
            raise ConfigError(f"gc: there is no run {name!r}{nearest(name, names)}")
    asked = runs or names
    with hold(place, names) as busy:
        for name in asked:
            if name in busy:
                typer.echo(
                    visible(f"{name} is left out, process {busy[name]} works on it"), err=True
                )
        quiet = [name for name in asked if name not in busy]
        with place.transaction() as tx:
            found = freeable(tx, place, quiet, busy)
            work = litter(tx, place, quiet)
        left = [] if runs else drafts(place)
        waste = [("workspace", run, path) for run, path in work]
        waste += [("draft", "", path) for path in left]
        listed = [(what, run, path.name, bytes_in(path)) for what, run, path in waste]
        if yes:
            found = free(place, quiet, busy)
            for _, path in work:
                shutil.rmtree(path)
            if left:
                sweep(place)
    models = [("checkpoint", ", ".join(m.runs), str(m.model_id), m.bytes) for m in found]
    typer.echo(freed_page([*models, *listed], yes))
    if yes and found:
        place.snapshot()
