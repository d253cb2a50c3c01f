# SPDX-License-Identifier: Apache-2.0
"""Someone is told how a run ended, by a command or a webhook; a failure to tell is a warning."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from rich.console import Console
from running import TRY

from configs.load import load
from flows.context import Run
from flows.notify import notify
from flows.screen import Screen
from stages import ids
from stages.errors import ConfigError, HeldError, Interrupted, SamplerError
from store.db import Store

KEEP = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())"


def run_with(folder: Path, **notify_config: Any) -> tuple[Run, StringIO]:
    """A run that tells, and its screen."""
    config = load(TRY, [f"notify={json.dumps(notify_config)}"])
    screen = StringIO()
    store = Store(folder / "store.duckdb")
    said = Screen(Console(width=400, file=screen))
    return Run("one", ids.run_id("one"), config, store, said), screen


@contextmanager
def listening(status: int = 204) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A server on the loopback that answers so; its address and what was posted."""
    posted: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["content-length"])
            posted.append((self.headers["content-type"], self.rfile.read(size)))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/here", posted
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("error", "event"),
    [(None, "done"), (HeldError("held"), "held"), (SamplerError("no"), "failed"),
     (ValueError("no"), "failed")],
)  # fmt: skip
def test_a_command_reads_how_the_run_ended(
    tmp_path: Path, error: BaseException | None, event: str
) -> None:
    target = tmp_path / "told"
    run, screen = run_with(tmp_path, command=[sys.executable, "-c", KEEP, str(target)])
    notify(run, 3, "as it ended", error)
    assert json.loads(target.read_text()) == {
        "run": "one", "round": 3, "event": event, "message": "as it ended",
    }  # fmt: skip
    assert screen.getvalue() == ""


def test_a_webhook_gets_the_same_and_its_address_may_be_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening() as (address, posted):
        monkeypatch.setenv("TELL_ME", address)
        run, screen = run_with(tmp_path, webhook="$TELL_ME")
        notify(run, 2, "2 rounds are done")
    ((kind, body),) = posted
    assert kind == "application/json"
    assert json.loads(body)["event"] == "done"
    assert screen.getvalue() == ""


def test_only_the_ends_that_are_named_are_told(tmp_path: Path) -> None:
    target = tmp_path / "told"
    command = [sys.executable, "-c", KEEP, str(target)]
    run, _ = run_with(tmp_path, command=command, when=["held"])
    notify(run, 1, "done")
    assert not target.exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Interrupted("by hand")])
def test_who_stopped_it_is_not_told(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "told"
    run, _ = run_with(tmp_path, command=[sys.executable, "-c", KEEP, str(target)])
    notify(run, 1, "cut", error)
    assert not target.exists()


def test_a_failure_to_tell_is_a_warning_and_does_not_keep_the_other_from_it(
    tmp_path: Path,
) -> None:
    with listening(500) as (address, posted):
        run, screen = run_with(tmp_path, command=["/no/such/program"], webhook=address)
        notify(run, 1, "done")
    assert len(posted) == 1
    first, second = screen.getvalue().splitlines()
    assert first.startswith("warning: notify.command failed: ")
    assert "No such file" in first
    assert second == "warning: notify.webhook failed: status 500"


def test_a_command_that_fails_says_why_and_a_server_that_is_gone_is_no_error(
    tmp_path: Path,
) -> None:
    with listening() as (address, _):
        pass
    fails = [sys.executable, "-c", "import sys; sys.exit('the mail is full')"]
    run, screen = run_with(tmp_path, command=fails, webhook=address)
    notify(run, 1, "done")
    first, second = screen.getvalue().splitlines()
    assert first == "warning: notify.command failed: exit 1 the mail is full"
    assert second.startswith("warning: notify.webhook failed: ConnectError")
    assert address not in second


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"notify\.webhook: 'ftp://x' is not allowed: use an"):
        load(TRY, ["notify.webhook=ftp://x"])
