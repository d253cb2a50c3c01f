# SPDX-License-Identifier: Apache-2.0
"""`starloop`: the command line. One file per subcommand in `flows/commands/`.

Exit codes: 0 done, 1 failed, 2 usage or config, 3 held by a gate, 4 locked, 130 interrupted.
"""

import os
import sys
import traceback
from typing import Annotated

import typer

from flows.commands.deploy import deploy
from flows.commands.describe import describe
from flows.commands.diff import diff
from flows.commands.doctor import doctor
from flows.commands.export import export
from flows.commands.gc import gc
from flows.commands.import_ import import_
from flows.commands.init import init
from flows.commands.lineage import ancestors, lineage
from flows.commands.preflight import preflight
from flows.commands.publish import publish
from flows.commands.report import report
from flows.commands.run import run
from flows.commands.samples import samples
from flows.commands.schedule import schedule
from flows.commands.snapshot import snapshot
from flows.commands.sql import sql
from flows.commands.status import status
from flows.commands.verify import verify
from flows.commands.watch import watch
from flows.terminal import settle_output
from report.text import visible
from stages.errors import LoopError, ServerGoneError

EXIT_CODES = (
    "Exit codes: 0 done, 1 failed, 2 usage or config, 3 held by a gate, 4 locked, 130 interrupted."
)

app = typer.Typer(
    name="starloop",
    help="Self-improvement rounds that can be trusted: resumable, comparable, queryable.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (
    *(run, watch, status, report, samples, diff, sql, snapshot, import_, export, publish, verify),
    *(preflight, doctor, gc, init, schedule, deploy, describe),
)


def examples(command: object) -> str:
    """The end of a command's help: how it is typed, from its module's EXAMPLES."""
    typed: tuple[str, ...] = sys.modules[command.__module__].EXAMPLES
    return "\n".join(["Examples:", *(f"  {line}" for line in typed), "", EXIT_CODES])


for command in COMMANDS:
    app.command(command.__name__.rstrip("_"), epilog=examples(command))(command)
app.add_typer(lineage, name="lineage", epilog=examples(ancestors))


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"starloop {version('starloop')}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version, stop."),
    ] = False,
) -> None:
    """Self-improvement rounds that can be trusted: resumable, comparable, queryable."""


def main() -> None:
    """Entry point: errors become one line and an exit code; `--debug` shows the traceback."""
    settle_output()
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        app()
    except LoopError as error:
        _show(debug, str(error))
        if isinstance(error, ServerGoneError):
            sys.stdout.flush()
            os._exit(error.exit_code)
        sys.exit(error.exit_code)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _show(debug, f"{error.strerror or error}{where}: mend it and run the same command again")
        sys.exit(1)
    except Exception as error:
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        _show(debug, f"unexpected {what}; --debug shows where")
        sys.exit(1)


def _show(debug: bool, line: str) -> None:
    if debug:
        traceback.print_exc()
    else:
        typer.echo(f"starloop: {visible(line)}", err=True)
