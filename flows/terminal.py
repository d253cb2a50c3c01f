# SPDX-License-Identifier: Apache-2.0
"""The terminal as it is: its width, characters it cannot show, its pager."""

import codecs
import os
import shutil
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PLAIN = {"–": "-", "·": "*", "×": "x", "→": "->", "≥": ">=", "…": "...", "β": "beta", "∇": "grad"}
PLAIN |= {"│": "|", "├": "|", "└": "`", "─": "-", "━": "-", "╸": "-", "╭": "+", "╮": "+"}
PLAIN |= {"╰": "+", "╯": "+", "└": "`", "π": "pi", "σ": "sigma", "Δ": "delta", "²": "^2"}


def _in_place(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that the encoding has not: ASCII, or a question mark."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wanted = error.object[error.start : error.end]
    return "".join(PLAIN.get(character, "?") for character in wanted), error.end


def _ascii(name: str) -> codecs.CodecInfo | None:
    """ASCII by another name: click writes UTF-8 to streams that say `ascii`."""
    if name != "plain_ascii":
        return None
    ascii_ = codecs.lookup("ascii")
    return codecs.CodecInfo(
        ascii_.encode,
        ascii_.decode,
        ascii_.streamreader,
        ascii_.streamwriter,
        ascii_.incrementalencoder,
        ascii_.incrementaldecoder,
        name="plain_ascii",
    )


def settle_output() -> None:
    """Write to terminals of any encoding: what it has not is put in plain characters."""
    codecs.register_error("plain", _in_place)
    codecs.register(_ascii)
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, TextIOWrapper):
            continue
        encoding = codecs.lookup(stream.encoding).name
        if encoding == "ascii":
            stream.reconfigure(encoding="plain_ascii", errors="plain")
        elif encoding != "utf-8":
            stream.reconfigure(errors="plain")


def columns() -> int | None:
    """The terminal's width, None where output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def console() -> "Console":
    """Standard output for text in colour; NO_COLOR and pipes have none."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=sys.stdout.isatty() is False)


def page(parts: "list[RenderableType]", *, paged: bool) -> None:
    """Show these one after the other, by $PAGER where that is asked for and there is a terminal."""
    on = console()
    if paged and on.is_terminal and not on.is_dumb_terminal:
        os.environ.setdefault("LESS", "FRX")  # colours, and no page for what fits the screen
        with on.pager(styles=True):
            for part in parts:
                on.print(part)
        return
    for part in parts:
        on.print(part)
