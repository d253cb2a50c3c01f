# SPDX-License-Identifier: Apache-2.0
"""HTTP to OpenAI-compatible servers: many requests over several servers, with retries.

Each server has a bounded number of requests open; the next one goes to the least loaded. A server
that fails rests, twice as long each time, and is tried again with one request; after `retries`
rests in a row it is out, and its requests go to the others. A reply that is no good counts
against its request alone.
"""

import asyncio
import ipaddress
import json
import os
import random
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from stages.errors import SamplerError

if TYPE_CHECKING:
    from types import TracebackType

    import httpx

T = TypeVar("T")
LONGEST_REST_S = 30.0
BUSY = (408, 425, 429, 502, 503, 504)
FIXES = {
    400: "lower sampling.max_tokens, shorten the prompts or mend sampler.extra_body",
    404: "check sampler.urls and sampler.model",
    422: "mend sampler.extra_body",
}


class BadReply(Exception):
    """A reply that cannot be used; the request is tried again."""


class _Down(Exception):
    """The server did not answer; `after_s` is how long it asked to be left alone."""

    def __init__(self, reason: str, after_s: float = 0.0, counts: bool = True) -> None:
        super().__init__(reason)
        self.after_s, self.counts = after_s, counts


@dataclass(frozen=True, slots=True)
class Key:
    """An API key and the environment variable it came from; never shown."""

    env: str
    value: str = field(repr=False)

    @classmethod
    def read(cls, env: str) -> "Key":
        value = os.environ.get(env, "").strip()
        if not value.isascii() or not value.isprintable():
            raise SamplerError(
                f"the key in {env} holds characters that no HTTP header takes: set it again"
            )
        return cls(env, value)

    def hidden(self, text: str) -> str:
        """The text in one line of at most 300 characters, without the key."""
        if self.value:
            text = text.replace(self.value, "***")
        shown = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return shown if len(shown) <= 300 else f"{shown[:300]}…"


@dataclass(frozen=True, slots=True)
class Limits:
    """Requests open per server, seconds a try may take, retries and the first rest (seconds)."""

    concurrency: int
    timeout_s: float
    retries: int
    backoff_s: float

    def rest(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row, with jitter."""
        longest: float = min(LONGEST_REST_S, self.backoff_s * 2.0 ** min(failures - 1, 30))
        return longest * random.uniform(0.5, 1.0)


@dataclass(slots=True, eq=False)
class _Server:
    url: str
    client: "httpx.AsyncClient"
    open: int = 0
    failures: int = 0
    rest_until: float = 0.0
    said: str = ""


class Pool:
    """Connections to servers (API roots such as http://127.0.0.1:8000/v1), open in `async with`."""

    def __init__(self, urls: tuple[str, ...], limits: Limits, key: Key) -> None:
        self._urls, self._limits, self._key = urls, limits, key
        self._servers: list[_Server] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Pool":
        import httpx

        self._changed = asyncio.Event()
        headers = {"Authorization": f"Bearer {self._key.value}"} if self._key.value else {}
        for url in self._urls:
            client = httpx.AsyncClient(
                headers=headers,
                timeout=None,
                limits=httpx.Limits(max_connections=self._limits.concurrency),
                trust_env=not is_loopback(url),
                verify=url.startswith("https:"),
            )
            self._servers.append(_Server(url, await self._stack.enter_async_context(client)))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: "TracebackType | None",
    ) -> None:
        await self._stack.aclose()

    async def fetch(
        self,
        path: str,
        body: dict[str, Any] | None,
        read: Callable[[Any], T],
        absent: tuple[int, ...] = (),
    ) -> T | None:
        """What `read` makes of the reply; GET without a body. None at a status in `absent`."""
        failures, failed = 0, None
        while True:
            server = await self._take(failed)
            try:
                reply = await self._once(server, path, body, absent)
                server.failures = 0
                return None if reply is None else read(reply)
            except _Down as down:
                self._rest(server, down)
                said, counted, rest = str(down), down.counts, 0.0
            except BadReply as bad:
                said, counted, rest = str(bad), True, self._limits.rest(failures + 1)
            finally:
                server.open -= 1
                self._changed.set()
            failures, failed = failures + counted, server
            if failures > self._limits.retries:
                raise SamplerError(
                    f"{server.url}{path}: {said} ({failures} tries of one request); see the "
                    "server's log, or raise sampler.timeout_s or sampler.retries"
                )
            await asyncio.sleep(rest)

    async def look(self, path: str) -> dict[str, Any]:
        """The JSON object of a page that a server may have; empty where there is none."""
        try:
            reply = await self._once(self._servers[0], path, None, tuple(range(300, 500)))
        except (_Down, BadReply):
            return {}
        return reply or {}

    async def _take(self, failed: _Server | None) -> _Server:
        """The least loaded server with room, waiting for one; `failed` only if it is the last."""
        while True:
            alive = [s for s in self._servers if s.failures <= self._limits.retries]
            if not alive:
                said = "; ".join(f"{s.url}: {s.said}" for s in self._servers)
                raise SamplerError(
                    f"no server is left after {self._limits.retries} retries ({said}): start the "
                    "server or mend sampler.urls, then run again; what was sampled is kept"
                )
            alive = [s for s in alive if s is not failed] or alive
            now = time.monotonic()
            ready = [s for s in alive if s.rest_until <= now and s.open < self._room(s)]
            if ready:
                server = min(ready, key=lambda s: s.open)
                server.open += 1
                return server
            rests = [s.rest_until - now for s in alive if s.rest_until > now]
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(rests, default=None)):
                    await self._changed.wait()

    def _room(self, server: _Server) -> int:
        return 1 if server.failures else self._limits.concurrency

    def _rest(self, server: _Server, down: _Down) -> None:
        """Count a failure once per rest: what was open when a server went down is one failure."""
        now = time.monotonic()
        server.said = str(down)
        if now >= server.rest_until:
            server.failures += 1
            rest = max(self._limits.rest(server.failures), down.after_s)
            server.rest_until = now + rest

    async def _once(
        self, server: _Server, path: str, body: dict[str, Any] | None, absent: tuple[int, ...]
    ) -> dict[str, Any] | None:
        import httpx

        # pages outside /v1, such as /version, lie beside it
        place = server.url if path.startswith("/") else server.url.removesuffix("/v1") + "/"
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                method = "GET" if body is None else "POST"
                response = await server.client.request(method, place + path, json=body)
        except TimeoutError:
            raise _Down(f"no reply within {self._limits.timeout_s:g} s") from None
        except httpx.ConnectError as error:
            raise _Down(self._said(error), counts=False) from None
        except httpx.TransportError as error:
            raise _Down(self._said(error)) from None
        except httpx.DecodingError as error:
            raise BadReply(self._said(error)) from None
        status = response.status_code
        if status in absent:
            return None
        if status in BUSY:
            after = min(_seconds(response.headers.get("Retry-After")), self._limits.timeout_s)
            counts = status in (408, 504)
            raise _Down(f"status {status}: {self._message(response.text)}", after, counts)
        if status >= 500 and status != 501:
            raise BadReply(f"status {status}: {self._message(response.text)}")
        if status != 200:
            fix = FIXES.get(status, "see the server's log")
            if status in (401, 403):
                fix = f"set {self._key.env} in the environment to a key that the server takes"
            said = f"status {status}: {self._message(response.text)}"
            raise SamplerError(f"{place}{path} answered with {said}; {fix}")
        try:
            reply = json.loads(response.content)
        except ValueError:
            raise BadReply(f"no JSON but {self._key.hidden(response.text)!r}") from None
        if not isinstance(reply, dict):
            raise BadReply(f"no JSON object but {self._key.hidden(response.text)!r}")
        return reply

    def _said(self, error: Exception) -> str:
        return self._key.hidden(f"{type(error).__name__}: {error}")

    def _message(self, text: str) -> str:
        """The message in an error's body, as servers write it, or the body."""
        with suppress(ValueError):
            found: Any = json.loads(text)
            for name in ("error", "message", "detail"):
                if isinstance(found, dict) and found.get(name):
                    found = found[name]
            text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        return self._key.hidden(text) or "no message"


def is_loopback(url: str) -> bool:
    """Whether a url leads to this machine itself."""
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _seconds(retry_after: str | None) -> float:
    """A Retry-After header (RFC 9110, 10.2.3) as seconds from now."""
    with suppress(ValueError, TypeError):
        text = retry_after or "0"
        if text.strip().isdigit():
            return float(text)
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return 0.0
