# SPDX-License-Identifier: Apache-2.0
"""Telling someone how a run ended: a command or a webhook. A failure to tell is a warning."""

import os
import subprocess
from collections.abc import Sequence

from flows.context import Run
from report.text import visible
from stages.errors import HeldError, Interrupted
from stages.settings import canonical

COMMAND_S = 60.0
WEBHOOK_S = 10.0


def notify(run: Run, round_: int, message: str, error: BaseException | None = None) -> None:
    """Tell that the run is done, or by its error held or failed; not where a person stopped it."""
    settings = run.config.notify
    event = "done" if error is None else "held" if isinstance(error, HeldError) else "failed"
    stopped = isinstance(error, KeyboardInterrupt | SystemExit | Interrupted)
    if stopped or event not in settings.when:
        return
    text = canonical({"run": run.name, "round": round_, "event": event, "message": message})
    if settings.command is not None:
        _warn(run, "command", _command(settings.command, text))
    if settings.webhook is not None:
        _warn(run, "webhook", _post(os.path.expandvars(settings.webhook), text))


def _warn(run: Run, what: str, failure: str | None) -> None:
    if failure is not None:
        run.screen.say(visible(f"warning: notify.{what} failed: {failure}"))


def _command(arguments: Sequence[str], text: str) -> str | None:
    """Run it with the text on its input; why it failed, if it did."""
    try:
        done = subprocess.run(
            arguments, input=text, text=True, capture_output=True, timeout=COMMAND_S, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = (done.stderr.strip().splitlines() or [""])[-1]
    return f"exit {done.returncode} {said}".strip() if done.returncode else None


def _post(address: str, text: str) -> str | None:
    """Post the text as JSON; why it failed, if it did. The address is not repeated."""
    import httpx

    try:
        headers = {"content-type": "application/json"}
        reply = httpx.post(address, content=text, headers=headers, timeout=WEBHOOK_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{type(error).__name__}: {error}"
    return None if reply.is_success else f"status {reply.status_code}"
