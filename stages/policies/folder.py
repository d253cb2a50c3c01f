# SPDX-License-Identifier: Apache-2.0
"""`folder`: a local Hugging Face checkpoint (config, safetensors, tokenizer) as the base."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stages.errors import ConfigError
from stages.policies.base import Policy, Progress
from stages.policies.checkpoint import load_tokenizer
from stages.settings import Settings, operational


class Config(Settings):
    """`path` names the folder; the model's content, not this path, makes its id."""

    type: Literal["folder"]
    path: str = operational(..., min_length=1)

    def build(self) -> Policy:
        return Folder(Path(self.path).expanduser())


@dataclass(frozen=True, slots=True)
class Folder:
    """A checkpoint that somebody else made."""

    path: Path

    def check(self) -> None:
        if not (self.path / "config.json").is_file():
            raise ConfigError(
                f"policy.path: {self.path} is no checkpoint folder (config.json is missing): "
                "name a folder with config.json, *.safetensors and tokenizer.json"
            )
        if not list(self.path.glob("*.safetensors")):
            raise ConfigError(
                f"policy.path: {self.path} has no *.safetensors: save the weights with "
                "save_pretrained"
            )
        load_tokenizer(self.path)

    def prepare(self, models: Path, progress: Progress) -> Path:
        self.check()
        return self.path
