# SPDX-License-Identifier: Apache-2.0
"""`starloop` on a terminal of its own, and what it drew there."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from running import ROOT, clean_environment

CONTROL = re.compile(r"\x1b\[[?0-9;]*[a-zA-Z]|\r")
# A session of its own whose terminal is standard input, so that Ctrl-C reaches all of its group.
LEAD = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


class Terminal:
    """A process on a pseudo-terminal; `raw` grows with what it writes."""

    def __init__(self, arguments: list[str], columns: int, environment: dict[str, str]) -> None:
        self._master, self._slave = pty.openpty()
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        self.before: list[Any] = termios.tcgetattr(self._slave)
        self.raw = b""
        program = str(Path(sys.executable).with_name("starloop"))
        self.process = subprocess.Popen(
            [sys.executable, "-c", LEAD, program, *arguments],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
            cwd=ROOT,
            env=clean_environment(**{"TERM": "xterm-256color", "PAGER": "cat", **environment}),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                found = os.read(self._master, 65536)
            except OSError:
                return
            self.raw += found

    @property
    def text(self) -> str:
        """What was written, without colours and movements of the cursor."""
        return CONTROL.sub("", self.raw.decode(errors="replace"))

    @property
    def is_restored(self) -> bool:
        """Whether the terminal is as it was: its modes, and a cursor that is shown."""
        hidden, shown = self.raw.rfind(b"\x1b[?25l"), self.raw.rfind(b"\x1b[?25h")
        return termios.tcgetattr(self._slave) == self.before and shown >= hidden

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.write(self._master, b"\x03")

    def end(self, timeout_s: float = 120.0) -> int:
        """Wait for the process and for what it wrote; its exit code."""
        code = self.process.wait(timeout_s)
        seen = -1
        while seen < len(self.raw):
            seen = len(self.raw)
            time.sleep(0.1)
        return code

    def close(self) -> None:
        """End what is left of it."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._slave)
        self._reader.join(5)
        os.close(self._master)


@contextmanager
def terminal(*arguments: object, columns: int = 100, **environment: str) -> Iterator[Terminal]:
    """`starloop` with these arguments on a terminal of so many columns."""
    opened = Terminal([str(each) for each in arguments], columns, environment)
    try:
        yield opened
    finally:
        opened.close()
