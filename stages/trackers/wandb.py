# SPDX-License-Identifier: Apache-2.0
"""`wandb`: Weights & Biases, online or as WANDB_MODE says; its files lie in the run's folder."""

import os
from collections.abc import Mapping

from stages.errors import ConfigError
from stages.trackers.base import PROJECT, Tracked

STEP = "step"


def begin(tracked: Tracked) -> "Wandb":
    return Wandb(tracked)


class Wandb:
    """Steps are a value of their own: wandb's own counter may not stand still, nor fall."""

    def __init__(self, tracked: Tracked) -> None:
        import wandb

        online = os.environ.get("WANDB_MODE", "online") in ("", "online")
        if online and not wandb.login(prompt=False, verify=False):
            raise ConfigError(
                "tracking: wandb has no key: log in once (wandb login), set WANDB_API_KEY, or set "
                "WANDB_MODE=offline"
            )
        tracked.folder.mkdir(parents=True, exist_ok=True)
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            id=tracked.id,
            name=tracked.name,
            dir=str(tracked.folder),
            config=dict(tracked.config),
            resume="allow",
            settings=wandb.Settings(silent=True, console="off", init_timeout=30),
        )
        self._run.define_metric("*", step_metric=STEP)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log({STEP: step, **values})

    def alarm(self, step: int, text: str) -> None:
        self._run.alert("alarm", text=text, level="WARN")

    def close(self) -> None:
        self._run.finish()
