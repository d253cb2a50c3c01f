# SPDX-License-Identifier: Apache-2.0
"""`vllm`: samples with vLLM in an environment of its own, a fresh process for each checkpoint.

Prompts go as token ids, each slot with its own seed, and come back as they finish. The
log-probabilities are those of the distribution drawn from (vLLM's `processed_logprobs`), at
temperature 1 for greedy slots. The checkpoint's generation config is not read: a completion ends
with the tokenizer's end token, a stop string, `max_tokens`, or the end of the model's context.
"""

import difflib
import itertools
import os
import queue
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from stages.chat import Messages
from stages.errors import ConfigError, SamplerError
from stages.policies.checkpoint import load_tokenizer, model_id_of
from stages.samplers.base import (
    Completion,
    Engine,
    Request,
    SamplerSettings,
    SamplingConfig,
    passed_through,
)
from stages.samplers.vllm_process import Message, Process
from stages.settings import operational

CHECKOUT = Path(__file__).resolve().parents[2]
_WEIGHTS = "the policy's checkpoint folder is loaded as it is"
_ENDINGS = "sampling parameters are the config's alone"
_SPREAD = "set sampler.devices"
OWNED = {
    "seed": "each slot has its own",
    "dtype": "set sampler.dtype",
    "logprobs_mode": "log-probabilities are those of the distribution drawn from",
    "skip_tokenizer_init": "completions are stored as text too",
    **dict.fromkeys(("model", "model_weights", "hf_config_path", "served_model_name"), _WEIGHTS),
    **dict.fromkeys(("tokenizer", "revision", "code_revision", "tokenizer_revision"), _WEIGHTS),
    **dict.fromkeys(("generation_config", "override_generation_config"), _ENDINGS),
    **dict.fromkeys(("device_ids", "data_parallel_size", "data_parallel_rank"), _SPREAD),
}


class Config(SamplerSettings):
    """`python`: of an environment with vLLM (default: what `make vllm` makes).

    `devices`: one engine for each set of devices ("0", or "0,1" for an engine on two); none: one
    engine that sees all. `engine_args` go to vLLM's EngineArgs as they are; on a CPU the engine is
    eager unless they say otherwise.
    """

    type: Literal["vllm"]
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    engine_args: dict[str, Any] = Field(default_factory=dict)
    python: str | None = operational(None, min_length=1)
    devices: tuple[str, ...] = operational((), strict=False)
    shard_size: int = operational(256, ge=1)
    start_timeout_s: float = operational(900.0, gt=0)

    @field_validator("engine_args")
    @classmethod
    def _args_are_json_and_not_ours(cls, given: dict[str, Any]) -> dict[str, Any]:
        return passed_through(given, OWNED)

    @field_validator("devices")
    @classmethod
    def _devices_differ(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(given)) < len(given):
            raise ValueError(f"{list(given)} names a device set twice: an engine needs its own")
        return given

    @property
    def batch_size(self) -> None:
        return None

    @property
    def starts_process(self) -> bool:
        return True

    @property
    def interpreter(self) -> Path:
        """The python that runs vLLM; ConfigError where there is none."""
        named = self.python or os.environ.get("STARLOOP_VLLM_PYTHON")
        python = Path(named).expanduser() if named else CHECKOUT / ".venv-vllm" / "bin" / "python"
        if not python.is_file():
            raise ConfigError(
                f"sampler.python: {python} is not there: run `make vllm`, or set it (or "
                "STARLOOP_VLLM_PYTHON) to the python of an environment with vLLM"
            )
        return python

    def build(self, model: Path) -> Engine:
        return VLLM(self, model)


class VLLM:
    """One vLLM process for each device set, with a policy loaded."""

    name = "vllm"
    deterministic = False

    def __init__(self, config: Config, model: Path) -> None:
        python, model = config.interpreter, model.resolve()
        vocabulary = len(load_tokenizer(model))
        self._template_kwargs = config.chat_template_kwargs
        self._answers: queue.SimpleQueue[tuple[Process, Message | None]] = queue.SimpleQueue()
        self._calls = itertools.count()
        self._processes: list[Process] = []
        try:
            for devices in config.devices or (None,):
                self._processes.append(Process(python, devices, self._answers))
            loaded = self._load(config, model)
        except BaseException:
            for process in self._processes:
                process.kill()
            raise
        self.version = str(loaded["version"])
        self.dtype = str(loaded["dtype"])
        self.weight_version = str(loaded["weight_version"])
        self._longest, self._at_once = int(loaded["longest"]), int(loaded["at_once"])
        if (read := self.weight_version, loaded["vocabulary"]) != (
            wanted := str(model_id_of(model)),
            vocabulary,
        ):
            self.close()
            raise SamplerError(
                f"vLLM read {read} (weights, tokens) from {model}, which holds "
                f"{(wanted, vocabulary)}: the folder changed meanwhile; run again"
            )

    def _load(self, config: Config, model: Path) -> Message:
        """Have every process load the policy; what the last one says of itself."""
        end = time.monotonic() + config.start_timeout_s
        said: Message = {}
        for process in self._processes:
            said = process.reply(max(0.0, end - time.monotonic()))
            _check_names(config.engine_args, said["fields"])
            (process.folder / "generation_config.json").write_text("{}")
            args = {
                "disable_log_stats": True,
                **config.engine_args,
                "model": str(model),
                "seed": 0,
                "dtype": config.dtype,
                "logprobs_mode": "processed_logprobs",
                "generation_config": str(process.folder),
            }
            process.send(load=args)
        for process in self._processes:
            said |= process.reply(max(0.0, end - time.monotonic()))
        return said

    def sample(self, requests: Sequence[Request], sampling: SamplingConfig) -> Iterator[Completion]:
        """Completions as they finish. The processes draw from one queue of slots."""
        parameters = _parameters(sampling)
        for request in requests:
            if len(request.prompt_ids) >= self._longest:
                raise SamplerError(
                    f"the prompt of slot {request.trajectory_id} has {len(request.prompt_ids)} "
                    f"tokens, the model reads at most {self._longest} with one to come: leave "
                    "such problems out, or raise sampler.engine_args.max_model_len"
                )
        call, todo = next(self._calls), iter(enumerate(requests))
        open_: dict[str, tuple[Process, Request]] = {}

        def feed(process: Process) -> None:
            for number, request in itertools.islice(todo, 1):
                slot = f"{call}-{number}"
                open_[slot] = process, request
                process.send(
                    id=slot, prompt_ids=request.prompt_ids, seed=request.seed, sampling=parameters
                )

        try:
            for process in self._processes * (2 * self._at_once):
                feed(process)
            while open_:
                process, message = self._answers.get()
                if message is None:
                    raise process.gone()
                if message["id"] not in open_:
                    continue
                _, request = open_.pop(message["id"])
                if "refused" in message:
                    raise SamplerError(
                        f"vLLM refuses slot {request.trajectory_id}: {message['refused']}"
                    )
                with suppress(SamplerError):  # what a dead one said is read first, then its end
                    feed(process)
                yield _completion(request, message)
        finally:
            for process in self._processes:
                left = [slot for slot, (whose, _) in open_.items() if whose is process]
                with suppress(SamplerError):
                    if left:
                        process.send(abort=left)

    def render(self, messages: Messages) -> tuple[int, ...]:
        process = self._processes[0]
        process.send(render=messages, kwargs=self._template_kwargs)
        return tuple(process.reply()["rendered"])

    def close(self) -> None:
        for process in self._processes:
            process.close()


def _check_names(given: dict[str, Any], known: list[str]) -> None:
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3)
            hint = f"did you mean {', '.join(near)}?" if near else "see `vllm serve --help`"
            raise ConfigError(
                f"sampler.engine_args.{name}: unknown to vLLM (value {given[name]!r}); {hint}"
            )


def _parameters(sampling: SamplingConfig) -> dict[str, Any]:
    """Sampling parameters as vLLM names them; ConfigError for those that it would change."""
    if sampling.temperature and not 0.01 <= sampling.temperature <= 2:
        raise ConfigError(
            f"sampling.temperature: {sampling.temperature} is not allowed with vLLM; use 0, or "
            "0.01 to 2, or another sampler"
        )
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop),
    }


def _completion(request: Request, message: Message) -> Completion:
    return Completion(
        trajectory_id=request.trajectory_id,
        token_ids=tuple(message["token_ids"]),
        text=message["text"],
        logprobs=tuple(message["logprobs"]),
        finish_reason=message["finish_reason"],
    )
