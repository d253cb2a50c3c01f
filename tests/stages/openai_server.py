# SPDX-License-Identifier: Apache-2.0
"""A small OpenAI-compatible server on loopback with scripted faults.

It speaks the tiny policy's tokens: what a prompt is answered with follows from prompt and seed.
"""

import json
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from stages.policies.tiny import CHARACTERS, SPECIAL

EOS = SPECIAL.index("<eos>")
Body = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; `cut` bytes of its body are kept back, and then the line is dropped."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int = 0
    after_s: float = 0.0


Fault = Callable[[Body, Body], Answer]


def as_json(body: Any, **more: Any) -> Answer:
    return Answer(json.dumps(body).encode(), **more)


def status(code: int, message: str = "no luck", **headers: str) -> Fault:
    """Answers with an error as OpenAI's servers write it."""
    body = {"error": {"message": message, "code": code}}
    return lambda asked, reply: as_json(
        body, status=code, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


def spoilt(change: Callable[[Body], Any]) -> Fault:
    """The right reply with its choice changed in place."""

    def answer(asked: Body, reply: Body) -> Answer:
        change(reply["choices"][0])
        return as_json(reply)

    return answer


def draw(prompt: Any, seed: int, max_tokens: int) -> tuple[list[int], str]:
    """Token ids and finish reason: characters of the tiny policy, an end now and then."""
    rng = random.Random(f"{prompt}|{seed}")
    ids = []
    for _ in range(max_tokens):
        ends = rng.random() < 0.05
        ids.append(EOS if ends else len(SPECIAL) + rng.randrange(len(CHARACTERS)))
        if ends:
            return ids, "stop"
    return ids, "length"


def text_of(ids: list[int]) -> str:
    return "".join(CHARACTERS[i - len(SPECIAL)] for i in ids if i >= len(SPECIAL))


class Server:
    """What the server is and was asked; `script` holds one fault per completion, then none."""

    def __init__(self, root: str = "", port: int = 0) -> None:
        self.root, self.models = root, ["served"]
        self.tokens, self.processed = True, True
        self.weight_version: str | None = None
        self.key: str | None = None
        self.takes_s: Callable[[Body], float] = lambda body: 0.0
        self.script: deque[Fault] = deque()
        self.always: Fault | None = None
        self.asked: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.open = self.most_open = 0
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"server_state": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def complete(self, path: str, body: Body) -> Answer:
        if path == "/v1/completions":
            if not self.tokens:
                return status(400, "prompt must be a string")(body, {})
            reply = self.token_reply(body)
        else:
            reply = self.chat_reply(body)
        with self.lock:
            self.asked.append(body)
            fault = self.script.popleft() if self.script else self.always
        time.sleep(self.takes_s(body))
        return fault(body, reply) if fault else as_json(reply)

    def token_reply(self, body: Body) -> Body:
        ids, finish = draw(body["prompt"], body["seed"], body["max_tokens"])
        sharp = self.processed and body["top_k"] == 1
        logprob = 0.0 if sharp else -1.25
        return {
            "choices": [
                {
                    "index": 0,
                    "text": text_of(ids),
                    "token_ids": ids,
                    "prompt_token_ids": body["prompt"],
                    "finish_reason": finish,
                    "logprobs": {
                        "token_logprobs": [logprob] * len(ids),
                        "top_logprobs": [
                            {f"token_id:{i}": logprob, "token_id:0": -9999.0 if sharp else -2.0}
                            for i in ids
                        ],
                    },
                }
            ]
        }

    def chat_reply(self, body: Body) -> Body:
        ids, finish = draw(body["messages"], body["seed"], body["max_tokens"])
        message = {"role": "assistant", "content": text_of(ids)}
        return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}

    def page(self, path: str) -> Answer:
        cards = [{"id": name, "root": self.root} for name in self.models]
        pages = {"/v1/models": {"data": cards}, "/version": {"version": "1.2"}}
        if self.weight_version is not None:
            pages["/weight_info"] = {"weight_version": self.weight_version}
        return as_json(pages[path]) if path in pages else status(404)({}, {})


class _Handler(BaseHTTPRequestHandler):
    server_state: Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body go out together

    def handle(self) -> None:
        with suppress(ConnectionError):  # the client went away
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.reply(self.server_state.page(self.path))

    def do_POST(self) -> None:
        state = self.server_state
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with state.lock:
            state.headers.append(dict(self.headers))
            state.open += 1
            state.most_open = max(state.most_open, state.open)
        try:
            if state.key and self.headers.get("Authorization") != f"Bearer {state.key}":
                answer = status(401, f"bad key {self.headers.get('Authorization')}")(body, {})
            elif self.path == "/tokenize":
                ids = [len(message["content"]) for message in body["messages"]]
                answer = as_json({"tokens": ids}) if state.tokens else status(404)({}, {})
            else:
                answer = state.complete(self.path, body)
            time.sleep(answer.after_s)
        finally:
            with state.lock:
                state.open -= 1
        self.reply(answer)

    def reply(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body[: len(answer.body) - answer.cut])
        if answer.cut:
            self.close_connection = True


@contextmanager
def serving(root: str = "", port: int = 0) -> Iterator[Server]:
    """A server that runs for the length of the block."""
    server = Server(root, port)
    thread = threading.Thread(target=server.http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join()
