# SPDX-License-Identifier: Apache-2.0
"""`scripted`: replies from a table, or from a made-up student of addition. No model is run.

Good for seeing and testing a whole loop in seconds. The student is right with a fixed
probability that grows with each update of a `tally` checkpoint, and fails in the ways real
models do: a wrong sum, no answer, no end, a hint that shows.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from stages.chat import Messages, render_chat
from stages.policies.checkpoint import load_tokenizer, model_id_of
from stages.samplers.base import (
    Completion,
    Engine,
    Request,
    SamplerSettings,
    SamplingConfig,
)
from stages.settings import operational
from stages.tasks import addition


class Config(SamplerSettings):
    """`replies`: prompt text → replies, one drawn per slot. Other prompts go to the student.

    `skill`, `hinted_skill`: chance of a right answer without and with a hint; `gain` is added to
    `skill` per 100 update steps; `leak`: chance that a hinted right answer shows the hint.
    """

    type: Literal["scripted"]
    shard_size: int = operational(64, ge=1)
    replies: dict[str, list[str]] = Field(default_factory=dict)
    skill: float = Field(0.4, ge=0, le=1)
    hinted_skill: float = Field(0.8, ge=0, le=1)
    gain: float = Field(0.2, ge=0, le=1)
    leak: float = Field(0.1, ge=0, le=1)

    @field_validator("replies")
    @classmethod
    def _replies_are_text(cls, replies: dict[str, list[str]]) -> dict[str, list[str]]:
        for reply in (reply for found in replies.values() for reply in found):
            if any("\ud800" <= c <= "\udfff" for c in reply):
                raise ValueError("a reply holds half of a surrogate pair: write whole characters")
        return replies

    @property
    def holds_weights(self) -> bool:
        return False

    @property
    def batch_size(self) -> int:
        return self.shard_size

    def build(self, model: Path) -> Engine:
        return Scripted(self, model)


class Scripted:
    """Speaks from the script; a slot's reply follows from its prompt and seed."""

    name = "scripted"
    version = "1"
    dtype = "none"
    deterministic = True

    def __init__(self, config: Config, model: Path) -> None:
        self._config = config
        self._template_kwargs = config.chat_template_kwargs
        self._tokenizer: Any = load_tokenizer(model)
        self.weight_version = str(model_id_of(model))
        tally = json.loads((model / "config.json").read_text()).get("tally", {"steps": 0})
        self._skill = min(1.0, config.skill + config.gain * tally["steps"] / 100)

    def sample(self, requests: Sequence[Request], sampling: SamplingConfig) -> Iterator[Completion]:
        for request in requests:
            yield self._reply(request, sampling)

    def render(self, messages: Messages) -> tuple[int, ...]:
        return render_chat(messages, self._tokenizer, self._template_kwargs)

    def close(self) -> None:
        """Nothing is held."""

    def _reply(self, request: Request, sampling: SamplingConfig) -> Completion:
        prompt = self._tokenizer.decode(request.prompt_ids, skip_special_tokens=True).strip()
        rng = random.Random(request.seed)
        table = self._config.replies.get(prompt)
        text = rng.choice(table) if table else self._student(prompt, rng)
        token_ids = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        token_ids = [*token_ids, self._tokenizer.eos_token_id][: sampling.max_tokens]
        finished = token_ids[-1] == self._tokenizer.eos_token_id
        return Completion(
            trajectory_id=request.trajectory_id,
            token_ids=tuple(token_ids),
            text=self._tokenizer.decode(token_ids, skip_special_tokens=True),
            logprobs=(0.0,) * len(token_ids),
            finish_reason="stop" if finished else "length",
        )

    def _student(self, prompt: str, rng: random.Random) -> str:
        found = re.match(r"([a-t]\d)+\+([a-t]\d)+", prompt)
        if found is None:
            return "no idea"
        a, b = addition.operands(found[0])
        hinted = "hint" in prompt
        skill = self._config.hinted_skill if hinted else self._skill
        right = addition.worked(a, b)
        if rng.random() < skill:
            leaks = hinted and rng.random() < self._config.leak
            return f"as given in the hint;{right}" if leaks else right
        steps, _, answer = right.partition("#")
        slips = [f"{steps}#{int(answer) + rng.choice((-1, 1, 10))}", steps, steps * 40]
        return rng.choices(slips, weights=(8, 1, 1))[0]
