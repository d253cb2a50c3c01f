# SPDX-License-Identifier: Apache-2.0
"""`trackio`: its local database (TRACKIO_DIR), shown by `trackio show`.

It goes to a Space or a server only where the user names one (TRACKIO_SPACE_ID, TRACKIO_SERVER_URL).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import StringIO

from stages.trackers.base import PROJECT, Tracked


def begin(tracked: Tracked) -> "Trackio":
    return Trackio(tracked)


class Trackio:
    """A run of trackio is known by its name, so that is the id."""

    def __init__(self, tracked: Tracked) -> None:
        import trackio

        with _quiet():
            self._run = trackio.init(
                project=PROJECT,
                name=tracked.id,
                group=tracked.name,
                config=dict(tracked.config),
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def alarm(self, step: int, text: str) -> None:
        self._run.alert("alarm", text=text, step=step)

    def close(self) -> None:
        import trackio

        with _quiet():
            trackio.finish()


@contextmanager
def _quiet() -> Iterator[None]:
    """Its greetings are left out: the screen is the run's."""
    with redirect_stdout(StringIO()):
        yield
