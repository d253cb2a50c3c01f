# SPDX-License-Identifier: Apache-2.0
"""`starloop import`: rollouts, demonstrations, problems or pairs that other tools wrote."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.commands.common import StoreOption, check_name, choose, store_path
from stages.errors import ConfigError, Interrupted

EXAMPLES = (
    "starloop import rollouts.jsonl --as rollouts --format verl --origin outside --task sums",
)

KINDS = ("rollouts", "demonstrations", "problems", "pairs")
ORIGINS = ("human", "teacher", "outside", "self")


def import_(
    files: Annotated[list[Path], typer.Argument(help="JSONL or Parquet files.")],
    kind: Annotated[str, typer.Option("--as", help=f"One of {', '.join(KINDS)}.")],
    format: Annotated[str, typer.Option("--format", "-f", help="trl, verl, prime-rl or jsonl.")],
    task: Annotated[str, typer.Option("--task", help="Name of the task the problems belong to.")],
    origin: Annotated[
        str | None, typer.Option("--origin", help="Who wrote it: human, teacher, outside, self.")
    ] = None,
    map: Annotated[
        list[str] | None,
        typer.Option("--map", help="FIELD=COLUMN, e.g. answer=gold; FIELD= leaves it out."),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="train, dev or test.")] = "train",
    tokenizer: Annotated[
        Path | None,
        typer.Option("--tokenizer", help="Folder of a tokenizer, where files have no token ids."),
    ] = None,
    correct_at: Annotated[
        float | None,
        typer.Option("--correct-at", help="A reward from here on is a correct verdict."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the run; the first file's if left out.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Take in what other tools wrote, as a run of its own."""
    from stages.imports import FORMATS

    what: Any = choose("--as", kind, KINDS)
    part = FORMATS[choose("--format", format, list(FORMATS))]
    choose("--split", split, ("train", "dev", "test"))
    if kind not in part.kinds:
        raise ConfigError(f"--as: {format} files hold no {kind}; they hold {', '.join(part.kinds)}")
    if not task.strip():
        raise ConfigError("--task: an empty name is not allowed: name the task of the problems")
    if origin is None and kind != "problems":
        raise ConfigError(
            f"--origin is missing: say who wrote the completions ({', '.join(ORIGINS)})"
        )
    if correct_at is not None and not math.isfinite(correct_at):
        raise ConfigError(f"--correct-at: {correct_at} is not allowed: give a finite number")
    mapping = _mapping(map or [], list(part.fields))
    run_name = check_name(name or files[0].stem)
    path = store_path(store)
    from flows.environment import settle

    settle(path)
    from flows.importing import Request, take_in
    from flows.screen import Screen
    from store.db import Store

    who: Any = choose("--origin", origin or "outside", ORIGINS)
    asked = Request(files, what, format, mapping, who, task, split, tokenizer, correct_at, run_name)
    try:
        with Screen() as screen:
            take_in(asked, Store(path, screen.say), screen.say)
    except KeyboardInterrupt as stop:
        raise Interrupted("interrupted: nothing was imported; run the same command again") from stop


def _mapping(entries: list[str], fields: list[str]) -> dict[str, str]:
    """FIELD=COLUMN entries as field → column."""
    mapping = {}
    for entry in entries:
        field, equals, column = entry.partition("=")
        if not equals:
            raise ConfigError(
                f"--map: {entry!r} is not FIELD=COLUMN: write for example answer=gold"
            )
        mapping[choose("--map", field, fields)] = column
    return mapping
