# SPDX-License-Identifier: Apache-2.0
"""`starloop snapshot`: renew the readers' copy now."""

import typer

from flows.commands.common import StoreOption, store_path

EXAMPLES = ("starloop snapshot",)


def snapshot(store: StoreOption = None) -> None:
    """Renew the copy that readers see; a store of an older schema is brought up to date first."""
    from report.text import size
    from store.db import Store

    place = Store(store_path(store), say=typer.echo)
    place.must_exist()
    place.create()
    copy = place.snapshot()
    typer.echo(f"{copy}: {size(copy.stat().st_size)}")
