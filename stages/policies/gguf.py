# SPDX-License-Identifier: Apache-2.0
"""`gguf`: a GGUF file, unpacked once into an ordinary checkpoint.

The weights are taken out of their quantized blocks and stored as `dtype`: bfloat16 (half the
room) or float32 (every unpacked value as it is). Tokenizer and chat template are the file's own,
or those of another folder.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from stages.errors import ConfigError
from stages.ids import hash_text
from stages.policies.base import Progress
from stages.policies.checkpoint import copy_tokenizer, load_tokenizer, tokenizer_hash
from stages.policies.hashes import file_hash
from stages.policies.made import made_once
from stages.settings import Settings, operational

MAGIC = b"GGUF"
RECIPE = 1


class Config(Settings):
    """`path` names the file, `tokenizer` a folder to take the tokenizer from instead."""

    type: Literal["gguf"]
    path: str = operational(..., min_length=1)
    tokenizer: str | None = operational(None, min_length=1)
    dtype: Literal["bfloat16", "float32"] = "bfloat16"

    def build(self) -> "Gguf":
        tokenizer = None if self.tokenizer is None else Path(self.tokenizer).expanduser()
        return Gguf(Path(self.path).expanduser(), tokenizer, self.dtype)


@dataclass(frozen=True, slots=True)
class Gguf:
    """A GGUF file; its checkpoint is found again by the file's hash."""

    path: Path
    tokenizer: Path | None
    dtype: str

    def check(self) -> None:
        if not self.path.is_file():
            raise ConfigError(f"policy.path: {self.path} is not a file: name a *.gguf file")
        with self.path.open("rb") as file:
            magic = file.read(len(MAGIC))
        if magic != MAGIC:
            raise ConfigError(
                f"policy.path: {self.path} begins with {magic!r}, not {MAGIC!r}: it is no GGUF "
                "file, name another"
            )
        if self.tokenizer is not None:
            load_tokenizer(self.tokenizer)

    def prepare(self, models: Path, progress: Progress) -> Path:
        self.check()
        tokenizer = "" if self.tokenizer is None else tokenizer_hash(self.tokenizer)
        made_of = f"{RECIPE}|{file_hash(self.path)}|{self.dtype}|{tokenizer}"
        return made_once(models, f"gguf-{hash_text(made_of)[:16]}", self.unpack)

    def unpack(self, draft: Path) -> None:
        """Write the checkpoint's files into an empty folder."""
        try:
            self._model().save_pretrained(draft)
            if self.tokenizer is None:
                self._own_tokenizer().save_pretrained(draft)
            else:
                copy_tokenizer(self.tokenizer, draft)
        except Exception as error:
            said = " ".join(str(error).split())[:200]
            raise ConfigError(
                f"policy.path: {self.path} cannot be unpacked ({type(error).__name__}: {said}): "
                "get the whole file of an architecture and a type that transformers reads, or "
                "use a checkpoint folder"
            ) from error
        load_tokenizer(draft)

    def _model(self) -> Any:
        import torch
        from transformers import AutoModelForCausalLM, GgufConfig

        return AutoModelForCausalLM.from_pretrained(
            self.path.parent,
            gguf_file=self.path.name,
            quantization_config=GgufConfig(dequantize=True),
            dtype=getattr(torch, self.dtype),
            local_files_only=True,
        )

    def _own_tokenizer(self) -> Any:
        """The file's tokenizer; without a pad token of its own it pads with its end token."""
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(
            self.path.parent, gguf_file=self.path.name, local_files_only=True
        )
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        return tokenizer
