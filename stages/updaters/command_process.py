# SPDX-License-Identifier: Apache-2.0
"""A command as its parent sees it: a process group that ends with us, what it prints in a log."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from stages.errors import UpdaterError
from stages.updaters import command_child

LOG_LINES = 4
EVERY_S = 0.2


def missing(program: str) -> str | None:
    """What is to be said of a program that is not there, None of one that is."""
    if shutil.which(program) is not None:
        return None
    return (
        f"update.updater.command: {program!r} is not found: give a program on the PATH, or the "
        "path of one"
    )


def run(
    arguments: Sequence[str], log: Path, timeout_s: float | None, watch: Callable[[], None]
) -> None:
    """Run to the end; calls `watch` now and then. UpdaterError for a failure or a time-out.

    The group is ended with us, however that happens: by an error here, Ctrl-C or a kill.
    """
    if fault := missing(arguments[0]):
        raise UpdaterError(fault)
    pipe, ours = os.pipe()
    try:
        with log.open("ab") as file:
            child = subprocess.Popen(
                [sys.executable, "-P", command_child.__file__, str(pipe), *arguments],
                pass_fds=(pipe,),
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(pipe)
    try:
        status = _wait(child, log, timeout_s, watch)
    finally:
        os.close(ours)
        with suppress(subprocess.TimeoutExpired):
            child.wait(command_child.GRACE_S + 5)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    if status:
        raise UpdaterError(
            f"update.updater.command ended with {_named(status)}: mend it and run again; "
            f"{said(log)}"
        )


def _wait(
    child: "subprocess.Popen[bytes]",
    log: Path,
    timeout_s: float | None,
    watch: Callable[[], None],
) -> int:
    begun = time.monotonic()
    while True:
        with suppress(subprocess.TimeoutExpired):
            return child.wait(EVERY_S)
        watch()
        if timeout_s is not None and time.monotonic() - begun > timeout_s:
            raise UpdaterError(
                f"update.updater.timeout_s: the command was ended after {timeout_s:g} s: raise it, "
                f"or see what it was doing; {said(log)}"
            )


def said(log: Path) -> str:
    """Where a command's log is, and its last lines."""
    lines = log.read_text(errors="replace").splitlines()
    shown = [line.strip() for line in lines if line.strip()][-LOG_LINES:]
    return f"its log is {log}, its last lines: {' | '.join(shown) or 'none'}"


def _named(status: int) -> str:
    number = -status if status < 0 else status - 128
    with suppress(ValueError):
        return f"signal {number} ({signal.Signals(number).name})"
    return f"status {status}"
