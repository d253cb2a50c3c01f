# SPDX-License-Identifier: Apache-2.0
"""`lora`: a PEFT adapter on a base folder, merged once into an ordinary checkpoint.

The id of the merged model hashes the base's id and the adapter's files, as the note `merged.json`
in its folder records (see `checkpoint.py`). The sum is taken in float32 and stored in the type
that the base is stored in; tokenizer and chat template are the base's.
"""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from stages.errors import ConfigError
from stages.ids import hash_text
from stages.policies.base import Policy, Progress
from stages.policies.checkpoint import (
    copy_tokenizer,
    load_tokenizer,
    model_id_of,
    note_merged,
)
from stages.policies.folder import Folder
from stages.policies.hashes import file_hashes
from stages.policies.made import made_once
from stages.settings import Settings, operational

SETTINGS, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
TYPE = "policy.type: 'lora'"
RECIPE = 1


class Config(Settings):
    """`base` names a checkpoint folder, `adapter` the folder that PEFT saved."""

    type: Literal["lora"]
    base: str = operational(..., min_length=1)
    adapter: str = operational(..., min_length=1)

    def build(self) -> Policy:
        return Lora(Path(self.base).expanduser(), Path(self.adapter).expanduser())


@dataclass(frozen=True, slots=True)
class Lora:
    """A base and an adapter; their sum is found again by the hashes of both."""

    base: Path
    adapter: Path

    def check(self) -> None:
        Folder(self.base, "policy.base").check()
        for name in (SETTINGS, WEIGHTS):
            if not (self.adapter / name).is_file():
                raise ConfigError(
                    f"policy.adapter: {self.adapter} has no {name}: name a folder that PEFT's "
                    "save_pretrained wrote, with safetensors"
                )
        try:
            kind = json.loads((self.adapter / SETTINGS).read_text())["peft_type"]
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"policy.adapter: {self.adapter / SETTINGS} says no peft_type: save it anew"
            ) from error
        if kind != "LORA":
            raise ConfigError(
                f"policy.adapter: {self.adapter} is of peft_type {kind!r}, not 'LORA': merge it "
                "yourself and use the result as a folder"
            )
        the_peft(TYPE)

    def prepare(self, models: Path, progress: Progress) -> Path:
        self.check()
        base, adapter = model_id_of(self.base), self._hashes()
        made_of = f"{RECIPE}|{base}|{','.join(adapter.values())}"
        return made_once(models, f"lora-{hash_text(made_of)[:16]}", self._merge)

    def _hashes(self) -> dict[str, str]:
        names = (SETTINGS, WEIGHTS)
        return dict(zip(names, file_hashes([self.adapter / n for n in names]), strict=True))

    def _merge(self, draft: Path) -> None:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM

        stored = AutoConfig.from_pretrained(self.base, local_files_only=True).dtype
        model = AutoModelForCausalLM.from_pretrained(
            self.base, dtype=torch.float32, local_files_only=True
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # of transformers, about peft
                merged = (
                    the_peft(TYPE).PeftModel.from_pretrained(model, self.adapter).merge_and_unload()
                )
        except (ValueError, RuntimeError, KeyError, TypeError) as error:
            said = " ".join(str(error).split())[:200]
            raise ConfigError(
                f"policy.adapter: {self.adapter} does not fit the base {self.base} "
                f"({type(error).__name__}: {said}): name the base that it was trained on"
            ) from error
        merged.to(stored or torch.float32).save_pretrained(draft)
        copy_tokenizer(self.base, draft)
        load_tokenizer(draft)
        note_merged(draft, model_id_of(self.base), self._hashes())


def the_peft(field: str) -> Any:
    """The package; ConfigError naming the field that needs it where it is not installed."""
    try:
        import peft
    except ImportError as error:
        raise ConfigError(
            f"{field} needs the package peft: install it with the extra `lora` "
            "(pip install -e '.[lora]')"
        ) from error
    return peft
