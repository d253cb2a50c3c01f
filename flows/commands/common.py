# SPDX-License-Identifier: Apache-2.0
"""What the subcommands share: where the store is, and options with one meaning everywhere."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stages.errors import ConfigError

if TYPE_CHECKING:
    from configs.schema import Config

RESERVED = (".duckdb", ".wal", ".tmp")

StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        help="Store file; else STARLOOP_STORE, else the nearest runs/store.duckdb above.",
        show_default=False,
    ),
]


def run_names(incomplete: str) -> list[str]:
    """Runs beside the store, for the shell's completion: folders that have a lock."""
    folders = (path.parent.name for path in store_path(None).parent.glob("*/lock"))
    return sorted(name for name in folders if name.startswith(incomplete))


RunArgument = Annotated[
    str | None,
    typer.Argument(
        help="Name of the run; the newest if left out.",
        show_default=False,
        autocompletion=run_names,
    ),
]
PagerOption = Annotated[
    bool, typer.Option("--no-pager", help="All at once, also where a terminal is.")
]
PurposeOption = Annotated[str, typer.Option("--purpose", help="training or held-out answers.")]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON, an object a line.")]

OverridesArgument = Annotated[
    list[str] | None, typer.Argument(help="key=value …, e.g. update.steps.first=50.")
]
NameOption = Annotated[
    str | None, typer.Option(help="Name of the run; the config file's name if left out.")
]
CronOption = Annotated[
    str, typer.Option(help="When it fires, as a quoted cron line: '0 2 * * *' is nightly at two.")
]
TimezoneOption = Annotated[str, typer.Option(help="Of the cron line, e.g. Europe/Berlin.")]
RoundsPerFiringOption = Annotated[
    int, typer.Option(help="Rounds that a firing carries the run on.")
]
UntilOption = Annotated[
    int | None,
    typer.Option(
        help="The round at which the schedule ends; never if left out.", show_default=False
    ),
]
NewProblemsOption = Annotated[
    bool,
    typer.Option(
        "--on-new-problems", help="Fire only if there are train problems not sampled yet."
    ),
]


def store_path(option: Path | None) -> Path:
    """The store file: option, environment, nearest parent that has one, or here."""
    named = option or (
        Path(os.environ["STARLOOP_STORE"]) if os.environ.get("STARLOOP_STORE") else None
    )
    if named is not None:
        return named.expanduser().absolute()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "runs" / "store.duckdb").exists():
            return folder / "runs" / "store.duckdb"
    return here / "runs" / "store.duckdb"


def typed() -> str | None:
    """The command that this process was started with, as one types it; None in a worker."""
    program = Path(sys.argv[0])
    if program.name != "starloop":
        return None
    found = shutil.which("starloop")
    known = found is not None and (
        program.name == str(program) or program.resolve() == Path(found).resolve()
    )
    arguments = ["run" if given == "preflight" else given for given in sys.argv[1:2]]
    return shlex.join(["starloop" if known else str(program), *arguments, *sys.argv[2:]])


def choose(option: str, given: str, allowed: Sequence[str]) -> str:
    """A value that must be one of a few; ConfigError names them, and the nearest."""
    import difflib

    if given in allowed:
        return given
    near = difflib.get_close_matches(given, allowed, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ConfigError(f"{option}: {given!r} is unknown; allowed: {', '.join(allowed)}{hint}")


def check_name(name: str, option: str = "--name") -> str:
    """A run's name becomes a folder: letters, digits, dot, dash and underscore."""
    import re

    fits = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name)
    if not fits or name == "models" or name.endswith(RESERVED):
        raise ConfigError(
            f"{option}: {name!r} is not allowed: use up to 100 letters, digits, '.', '-' or '_', "
            "starting with a letter or digit, not ending in .duckdb, .wal or .tmp, and not 'models'"
        )
    return name


def named_run(name: str | None, file: Path, config: "Config") -> str:
    """A run's name, the config file's where none is given; a control arm's is in it."""
    import re

    given = check_name(name or file.stem)
    arm = config.reward.type if config.reward else None
    if arm is None or re.search(rf"(?<![^._-]){arm}(?![^._-])", given):
        return given
    return check_name(f"{given}-{arm}")


def age_line(copy: Path) -> str:
    """How old the readers' copy is."""
    import time

    seconds = max(0.0, time.time() - copy.stat().st_mtime)
    if seconds < 90:
        text = f"{seconds:.0f} s"
    elif seconds < 5400:
        text = f"{seconds / 60:.0f} min"
    else:
        text = f"{seconds / 3600:.0f} h"
    return f"(from the copy of {text} ago)"
