# SPDX-License-Identifier: Apache-2.0
"""`starloop watch`: the screen of a run that another process works on."""

from typing import TYPE_CHECKING, Annotated

import typer

from flows.commands.common import RunArgument, StoreOption, store_path

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = ("starloop watch", "starloop watch star", "starloop watch star --json > events.jsonl")
POLL_S = 0.2


def watch(
    run: RunArgument = None,
    json: Annotated[
        bool, typer.Option("--json", help="Its events as JSON, one a line, and nothing else.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Show a run while another process works on it; end with it, with its exit code.

    It reads the run's progress file and lock, never the store. A run that was killed gives 1.
    """
    import time

    from flows.lock import holder_of
    from flows.progress import FILE, Tail
    from flows.views import Json, view_on
    from report.progress import Standing, ended_line, resuming
    from stages.errors import Interrupted

    folder = _folder(store_path(store).parent, run)
    view, tail, at = Json() if json else view_on(), Tail(folder / FILE), Standing()
    try:
        while True:
            alive = holder_of(folder) is not None
            for event in tail.read():
                at.take(event)
                view.take(event, at)
            if not alive or (isinstance(view, Json) and view.gone):
                break
            time.sleep(POLL_S)
    except KeyboardInterrupt as stop:
        raise Interrupted(f"no longer watched: run {folder.name} goes on") from stop
    finally:
        view.close()
    typer.echo(ended_line(at), err=json)
    if at.ended is None or at.ended["code"]:
        typer.echo(f"next: {resuming(at, folder.name)}", err=json)
    raise typer.Exit(1 if at.ended is None else at.ended["code"])


def _folder(runs: "Path", name: str | None) -> "Path":
    """The folder of a run, or of the one that told something last; ConfigError without events."""
    from flows.progress import FILE
    from report.runs import nearest
    from stages.errors import ConfigError, StoreError

    files = sorted(runs.glob(f"*/{FILE}"), key=lambda path: path.stat().st_mtime)
    names = [path.parent.name for path in files]
    if name is None and not names:
        raise StoreError(
            f"no run in {runs} has told anything yet: start one with `starloop run CONFIG`"
        )
    if name is not None and name not in names:
        raise ConfigError(f"run {name!r} has told nothing in {runs}{nearest(name, names)}")
    return runs / (name or names[-1])
