# SPDX-License-Identifier: Apache-2.0
"""Prefect's server for as long as a run lasts: a child that cannot outlive it.

The child has a session of its own, so Ctrl-C reaches the run alone and Prefect still hears how it
ended. It holds the reading end of a pipe: when the run is gone, however it went, the pipe closes
and the child ends itself. A server named by PREFECT_API_URL is used instead where there is one.
"""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from stages.errors import LoopError

START_TIMEOUT_S = 120.0


@contextmanager
def prefect_server(home: Path, *, schedules: bool = False) -> Iterator[None]:
    """Have a server and PREFECT_API_URL set for the block; call before importing Prefect.

    `schedules`: a server of our own fires schedules and has its page.
    """
    if os.environ.get("PREFECT_API_URL"):
        yield
        return
    home.mkdir(parents=True, exist_ok=True)
    with (home / "start.lock").open("w") as turn:
        fcntl.flock(
            turn, fcntl.LOCK_EX
        )  # two servers that begin at once would both make the database
        child, port, writing = _start(home, schedules)
        try:
            _wait_until_healthy(child, port, home / "server.log")
        except BaseException:
            _end(child, writing)
            raise
    try:
        os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{port}/api"
        yield
    finally:
        os.environ.pop("PREFECT_API_URL", None)
        _end(child, writing)


def _start(home: Path, schedules: bool) -> tuple["subprocess.Popen[bytes]", int, int]:
    """The child, its port, and the end of the pipe that it lives by."""
    reading, writing = os.pipe()
    bare = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1"}
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        (home / "server.log").open("ab") as log,
    ):
        port = listener.getsockname()[1]
        page = {"PREFECT_UI_ENABLED": "1", "PREFECT_UI_API_URL": f"http://127.0.0.1:{port}/api"}
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "flows.server", str(listener.fileno()), str(reading)],
            pass_fds=(listener.fileno(), reading),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **(page if schedules else bare)},
        )
    os.close(reading)
    return child, port, writing


def _end(child: "subprocess.Popen[bytes]", writing: int) -> None:
    os.close(writing)
    child.terminate()
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _wait_until_healthy(child: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while child.poll() is None and time.monotonic() < deadline:
        try:
            with urlopen(f"http://127.0.0.1:{port}/api/health", timeout=5) as reply:
                if reply.status == 200:
                    return
        except (URLError, OSError):
            time.sleep(0.1)
    raise LoopError(
        f"Prefect's server did not start; its log is {log}: mend what it names, or delete "
        f"{log.parent} (Prefect's own database, made anew), and run again"
    )


def serve(listener: int, pipe: int) -> None:
    """The child: serve on an inherited socket until the pipe closes."""

    def end_with_parent() -> None:
        os.read(pipe, 1)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=end_with_parent, daemon=True).start()
    import uvicorn
    from prefect.server.api.server import create_app

    config = uvicorn.Config(create_app, factory=True, log_level="error", lifespan="on")
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=listener)])


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
