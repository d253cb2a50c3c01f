# SPDX-License-Identifier: Apache-2.0
"""`openai`: samples from OpenAI-compatible servers that a user runs: vLLM and others.

Two ways to ask. `tokens`: prompts go as token ids, ids and log-probabilities come back (vLLM's
`return_token_ids`). `chat`: messages go, text comes back; its ids are the policy's tokenizer's
reading of it, and there are no log-probabilities. `auto` asks for one token and takes `tokens`
where ids come back; the engine's version says which it was.
"""

import asyncio
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from stages.chat import Messages
from stages.errors import SamplerError
from stages.policies.checkpoint import load_tokenizer, model_id_of
from stages.samplers.base import (
    Completion,
    Engine,
    Request,
    SamplerSettings,
    SamplingConfig,
    passed_through,
)
from stages.samplers.drive import drive
from stages.samplers.openai_client import Key, Limits, Pool, is_loopback
from stages.samplers.openai_meeting import NO_SUCH_PAGE, Met, check_weights, meet
from stages.samplers.openai_replies import read_chat, read_tokens
from stages.settings import operational

OWNED = {
    "seed": "each slot has its own",
    "n": "each slot is a request of its own",
    "stream": "whole replies are read",
    "prompt": "it is the slot's",
    "messages": "they are the slot's",
    "model": "set sampler.model",
    "chat_template_kwargs": "set sampler.chat_template_kwargs",
    "logprobs": "one per sampled token is asked for",
    "top_logprobs": "one per sampled token is asked for",
    "return_token_ids": "sampler.api decides",
    "echo": "completions are stored without their prompt",
    **dict.fromkeys(("temperature", "top_p", "top_k", "stop"), "set sampling"),
    **dict.fromkeys(("max_tokens", "max_completion_tokens"), "set sampling.max_tokens"),
}


class Config(SamplerSettings):
    """`urls`: one or more servers with the same model, `concurrency` requests open at each.

    `model` is the served name (None: the only one there). `weight_version` is what the servers
    serve, where they cannot show it themselves (a folder or version with the policy's id): the
    policy's model id, or a name of yours for weights that never change. The API key is read from
    the environment variable `key_env`. `extra_body` goes into each request as it is.
    """

    type: Literal["openai"]
    urls: tuple[str, ...] = operational(..., min_length=1, strict=False)
    model: str | None = None
    api: Literal["auto", "tokens", "chat"] = "auto"
    weight_version: str | None = Field(None, min_length=1)
    extra_body: dict[str, Any] = Field(default_factory=dict)
    key_env: str = operational("OPENAI_API_KEY", min_length=1)
    concurrency: int = operational(64, ge=1, le=10_000)
    timeout_s: float = operational(600.0, gt=0)
    retries: int = operational(8, ge=0, le=100)
    backoff_s: float = operational(0.5, ge=0)
    shard_size: int = operational(256, ge=1)

    @field_validator("urls")
    @classmethod
    def _urls_are_api_roots(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        roots = tuple(map(_api_root, urls))
        if len(set(roots)) < len(roots):
            raise ValueError("a server stands twice: name each once and raise concurrency instead")
        return roots

    @field_validator("extra_body")
    @classmethod
    def _extra_is_json_and_not_ours(cls, extra: dict[str, Any]) -> dict[str, Any]:
        return passed_through(extra, OWNED)

    @property
    def batch_size(self) -> None:
        return None

    def build(self, model: Path) -> Engine:
        return OpenAI(self, model)


class OpenAI:
    """Servers found, with the policy's weights as far as they can show, and asked how they reply.

    Log-probabilities must be of the distribution drawn from. A server that gives them before
    temperature, top_p and top_k (vLLM's default) is asked only for draws that these leave alone.
    """

    name = "openai"
    dtype = "unknown"
    deterministic = False

    def __init__(self, config: Config, model: Path) -> None:
        self._config, self._folder = config, model
        self._limits = Limits(
            config.concurrency, config.timeout_s, config.retries, config.backoff_s
        )
        self._tokenizer: Any = load_tokenizer(model)
        sizes = json.loads((model / "config.json").read_text())
        self._vocabulary = max(len(self._tokenizer), sizes.get("vocab_size") or 0)
        self._key = Key.read(config.key_env)
        for url in config.urls:
            if self._key.value and url.startswith("http:") and not is_loopback(url):
                warnings.warn(
                    f"sampler.urls: {url} gets the key in {config.key_env} unencrypted: use "
                    "https, or unset the key",
                    stacklevel=3,
                )
        met = [found for url in config.urls for found in drive(partial(self._meet, url))]
        if len({found.model for found in met}) > 1:
            raise SamplerError(
                f"sampler.urls: the servers serve {sorted({found.model for found in met})}: serve "
                "the policy under one name (vLLM: --served-model-name)"
            )
        self._model = met[0].model
        self.weight_version = config.weight_version or str(model_id_of(model))
        self._tokens = all(found.tokens for found in met)
        self._processed = all(found.processed for found in met)
        kind = "processed" if self._processed else "raw"
        said = f"tokens, {kind} log-probabilities" if self._tokens else "chat"
        self.version = f"{' + '.join(sorted({found.version for found in met}))} ({said})"

    def _pool(self, urls: tuple[str, ...]) -> Pool:
        return Pool(urls, self._limits, self._key)

    async def _meet(self, url: str, put: Callable[[Met], None]) -> None:
        config = self._config
        async with self._pool((url,)) as pool:
            probe = [self._tokenizer.eos_token_id]
            found = await meet(pool, url, config.model, config.api, probe)
        check_weights(url, found, self._folder, config.weight_version)
        put(found)

    def sample(self, requests: Sequence[Request], sampling: SamplingConfig) -> Iterator[Completion]:
        self._check(requests, sampling)
        if requests:
            yield from drive(partial(self._sample, requests, sampling))

    def render(self, messages: Messages) -> tuple[int, ...] | None:
        return next(drive(partial(self._render, messages)), None)

    def close(self) -> None:
        """Nothing is held between calls: a call's connections end with its iterator."""

    def _check(self, requests: Sequence[Request], sampling: SamplingConfig) -> None:
        if not self._tokens:
            bare = next((r for r in requests if not r.messages), None)
            if bare is not None:
                raise SamplerError(
                    f"slot {bare.trajectory_id} has no messages, and the server takes no token "
                    "ids: use a server that does (vLLM)"
                )
        elif not self._processed:
            cut = sampling.temperature > 0 and (sampling.top_p < 1 or sampling.top_k > 0)
            if sampling.temperature not in (0, 1) or cut or self._config.extra_body:
                raise SamplerError(
                    "the server's log-probabilities are raw, not of the distribution that "
                    f"temperature {sampling.temperature:g}, top_p {sampling.top_p:g}, top_k "
                    f"{sampling.top_k} or sampler.extra_body leave: start it with --logprobs-mode "
                    "processed_logprobs, or sample at temperature 1 with nothing cut"
                )

    async def _sample(
        self,
        requests: Sequence[Request],
        sampling: SamplingConfig,
        put: Callable[[Completion], None],
    ) -> None:
        todo = iter(requests)
        urls = self._config.urls

        async def work(pool: Pool) -> None:
            for request in todo:
                path, body = self._body(request, sampling)
                reply = await pool.fetch(path, body, partial(self._read, request, sampling))
                assert reply is not None  # no status stands for an absent page here
                put(reply)

        try:
            async with self._pool(urls) as pool, asyncio.TaskGroup() as group:
                for _ in range(min(len(requests), len(urls) * self._limits.concurrency)):
                    group.create_task(work(pool))
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _render(self, messages: Messages, put: Callable[[tuple[int, ...]], None]) -> None:
        body = {
            "model": self._model,
            "messages": _as_json(messages),
            "add_generation_prompt": True,
            "chat_template_kwargs": self._config.chat_template_kwargs,
        }
        async with self._pool(self._config.urls) as pool:
            reply = await pool.fetch("tokenize", body, dict, NO_SUCH_PAGE)
        ids = (reply or {}).get("tokens")
        if isinstance(ids, list) and all(type(i) is int for i in ids):
            put(tuple(ids))

    def _body(self, request: Request, sampling: SamplingConfig) -> tuple[str, dict[str, Any]]:
        """Path and body of a request, every sampling parameter said: servers have defaults."""
        greedy = sampling.temperature == 0
        body = {
            "model": self._model,
            "n": 1,
            "stream": False,
            "temperature": sampling.temperature,
            "top_p": 1.0 if greedy else sampling.top_p,
            "max_tokens": sampling.max_tokens,
        }
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        if self._tokens:
            return "/completions", {
                **body,
                "prompt": list(request.prompt_ids),
                "seed": request.seed,
                "top_k": 0 if greedy else sampling.top_k,
                "min_p": 0.0,
                "repetition_penalty": 1.0,
                "presence_penalty": 0.0,
                "frequency_penalty": 0.0,
                "logprobs": 0,
                "return_token_ids": True,
                "skip_special_tokens": False,
                "spaces_between_special_tokens": False,
                **self._config.extra_body,
            }
        if sampling.top_k > 0 and not greedy:
            body["top_k"] = sampling.top_k
        if self._config.chat_template_kwargs:
            body["chat_template_kwargs"] = self._config.chat_template_kwargs
        # servers differ in the seeds they take: 31 bits fit all
        seed = request.seed % 2**31
        extra = self._config.extra_body
        messages = _as_json(request.messages)
        return "/chat/completions", {**body, "seed": seed, "messages": messages, **extra}

    def _read(
        self, request: Request, sampling: SamplingConfig, reply: dict[str, Any]
    ) -> Completion:
        if self._tokens:
            return read_tokens(reply, request, sampling, self._vocabulary)
        return read_chat(reply, request, self._encode, self._tokenizer.eos_token_id)

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids


def _as_json(messages: Messages) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in messages]


def _api_root(url: str) -> str:
    """`http://host:port` or a server's own API root, as the root that paths are added to.

    What is wrong is said without the url, which may hold a secret.
    """
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  a bad port is found when it is read
    except ValueError:
        raise ValueError("a url cannot be read: write http://host:port") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", url):
        raise ValueError("a url is not http://host:port or https://host/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("a url holds a user, a query or a fragment: put the key into key_env")
    root = url.rstrip("/")
    return root if parts.path.strip("/") else f"{root}/v1"
