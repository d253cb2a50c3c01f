# SPDX-License-Identifier: Apache-2.0
"""`folder`: a local Hugging Face checkpoint (config, safetensors, tokenizer) as the base."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stages.errors import ConfigError
from stages.policies.base import Policy, Progress
from stages.policies.checkpoint import lacking, load_tokenizer
from stages.settings import Settings, operational


class Config(Settings):
    """`path` names the folder; the model's content, not this path, makes its id."""

    type: Literal["folder"]
    path: str = operational(..., min_length=1)

    def build(self) -> Policy:
        return Folder(Path(self.path).expanduser())


@dataclass(frozen=True, slots=True)
class Folder:
    """A checkpoint that somebody else made; `field` names it in messages."""

    path: Path
    field: str = "policy.path"

    def check(self) -> None:
        fault = lacking(self.path)
        if fault is not None:
            raise ConfigError(f"{self.field}: {self.path} {fault}")
        load_tokenizer(self.path)

    def prepare(self, models: Path, progress: Progress) -> Path:
        self.check()
        return self.path
