# SPDX-License-Identifier: Apache-2.0
"""The process that runs vLLM: its environment has none of our packages, so neither has this file.

It speaks JSON, one object a line, over two inherited pipes. It says its engine's field names,
is told what to load, says what it loaded, then answers slots as they finish, in any order. When
the first pipe closes, its parent is gone: it kills its process group, engine cores and all.
"""

import hashlib
import json
import os
import queue
import signal
import sys
import threading
import traceback
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO
from uuid import UUID

VOLATILE = ("transformers_version", "_name_or_path")
TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
)
ON_CPU = {  # compiling costs more than it saves an engine that lives for one checkpoint
    "kv_cache_memory_bytes": 2 * 2**30,
    "enable_chunked_prefill": False,
    "enforce_eager": True,
}
Inbox = queue.SimpleQueue[dict[str, Any]]


def weight_version(folder: Path) -> str:
    """The content id of a checkpoint folder, by the rule of `policies.checkpoint.model_id_of`."""
    config = json.loads((folder / "config.json").read_text())
    config = {key: value for key, value in config.items() if key not in VOLATILE}
    text = json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    parts = [f"config.json={hashlib.sha256(text.encode()).hexdigest()}"]
    named = [folder / name for name in TOKENIZER if (folder / name).exists()]
    for path in sorted([*folder.glob("*.safetensors"), *named]):
        with path.open("rb") as file:
            parts.append(f"{path.name}={hashlib.file_digest(file, 'sha256').hexdigest()}")
    content = hashlib.sha256(",".join(parts).encode()).hexdigest()
    return str(UUID(hashlib.sha256(f"m|{content}".encode()).hexdigest()[:32]))


def cut(text: str, stop: list[str]) -> str:
    """The text before the first stop string in it."""
    found = [at for at in map(text.find, stop) if at >= 0]
    return text[: min(found)] if found else text


class Speaker:
    """The way back to the parent."""

    def __init__(self, pipe: int) -> None:
        self._pipe: TextIO = os.fdopen(pipe, "w", encoding="utf-8")

    def say(self, **message: Any) -> None:
        self._pipe.write(json.dumps(message) + "\n")
        self._pipe.flush()

    def fail(self, kind: str, error: BaseException) -> None:
        """Say what went wrong, in one line; `kind` is environment, config, engine or render."""
        said = " ".join(str(error).split()) or "no message"
        self.say(failed=kind, message=f"{type(error).__name__}: {said}"[:2000])


def listen(pipe: int, inbox: Inbox) -> None:
    """Put the parent's messages in the inbox; end the whole group when there is no parent."""
    try:
        with os.fdopen(pipe, encoding="utf-8") as lines:
            for line in lines:
                inbox.put(json.loads(line))
    finally:
        os.killpg(os.getpgrp(), signal.SIGKILL)


class Server:
    """A loaded engine and its open slots."""

    def __init__(self, engine: Any, inbox: Inbox, speaker: Speaker) -> None:
        self._engine, self._inbox, self._speaker = engine, inbox, speaker
        self._tokenizer = engine.get_tokenizer()
        self._stops: dict[str, list[str]] = {}

    def serve(self) -> None:
        """Take messages between engine steps until told to close."""
        while True:
            while not self._engine.has_unfinished_requests() or not self._inbox.empty():
                message = self._inbox.get()
                if "close" in message:
                    return
                self._take(message)
            for output in self._engine.step():
                if output.finished:
                    self._answer(output)

    def _take(self, message: dict[str, Any]) -> None:
        if "abort" in message:
            self._engine.abort_request(message["abort"])
            for slot in message["abort"]:
                self._stops.pop(slot, None)
        elif "render" in message:
            try:
                self._speaker.say(rendered=self._render(message["render"], message["kwargs"]))
            except Exception as error:
                self._speaker.fail("render", error)
        else:
            try:
                self._add(message)
            except Exception as error:
                said = " ".join(str(error).split())
                self._speaker.say(id=message["id"], refused=f"{type(error).__name__}: {said}")

    def _add(self, message: dict[str, Any]) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        stop = message["sampling"]["stop"]
        parameters = SamplingParams(
            **message["sampling"],
            seed=message["seed"],
            logprobs=0,
            detokenize=bool(stop),
            skip_special_tokens=False,
            spaces_between_special_tokens=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        self._engine.add_request(
            message["id"], {"prompt_token_ids": message["prompt_ids"]}, parameters
        )
        self._stops[message["id"]] = stop

    def _answer(self, output: Any) -> None:
        stop = self._stops.pop(output.request_id, None)
        if stop is None:
            return
        (reply,) = output.outputs
        tokens = list(reply.token_ids)
        if reply.finish_reason not in ("stop", "length"):
            said = f"the engine ended it with {reply.finish_reason!r}"
            self._speaker.say(id=output.request_id, refused=said)
            return
        ended = reply.finish_reason == "stop" and tokens[-1] == self._tokenizer.eos_token_id
        text = self._tokenizer.decode(
            tokens[:-1] if ended else tokens, clean_up_tokenization_spaces=False
        )
        self._speaker.say(
            id=output.request_id,
            token_ids=tokens,
            text=cut(text, stop),
            logprobs=[
                position[token].logprob
                for token, position in zip(tokens, reply.logprobs, strict=True)
            ],
            finish_reason=reply.finish_reason,
        )

    def _render(self, messages: list[list[str]], kwargs: dict[str, Any]) -> list[int]:
        chat = [{"role": role, "content": content} for role, content in messages]
        text = self._tokenizer.apply_chat_template(
            chat, tokenize=False, add_generation_prompt=True, **kwargs
        )
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])


def load(inbox: Inbox, speaker: Speaker) -> Any:
    """Say the field names, be told the arguments, load; None where that failed and was said."""
    try:
        import vllm
        from vllm.engine.arg_utils import EngineArgs
        from vllm.platforms import current_platform
        from vllm.v1.engine.llm_engine import LLMEngine
    except ImportError as error:
        return speaker.fail("environment", error)
    names = [field.name for field in fields(EngineArgs)]
    speaker.say(fields=names, version=vllm.__version__)
    given = inbox.get()["load"]
    if current_platform.is_cpu():
        # one process less to start; a part of the memory that does not depend on what is free
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        given = {**ON_CPU, **given}
        if given["enable_chunked_prefill"]:
            said = "enable_chunked_prefill fails with seeds on a CPU: leave it out"
            return speaker.fail("config", ValueError(said))
    folder, version = Path(given["model"]), queue.SimpleQueue[str]()
    reading = threading.Thread(target=lambda: version.put(weight_version(folder)), daemon=True)
    reading.start()
    try:
        arguments = EngineArgs(**given)
        config = arguments.create_engine_config()
    except Exception as error:
        return speaker.fail("config", error)
    try:
        engine = LLMEngine.from_engine_args(arguments)
    except Exception as error:
        return speaker.fail("engine", error)
    speaker.say(
        dtype=str(config.model_config.dtype).removeprefix("torch."),
        weight_version=version.get(),
        vocabulary=len(engine.get_tokenizer()),
        longest=config.model_config.max_model_len,
        at_once=config.scheduler_config.max_num_seqs,
    )
    return engine


def main(requests: int, replies: int) -> int:
    """Serve on the two pipes; the exit status."""
    for pipe in (requests, replies):
        os.set_inheritable(pipe, False)
    inbox: Inbox = queue.SimpleQueue()
    threading.Thread(target=listen, args=(requests, inbox), daemon=True).start()
    speaker = Speaker(replies)
    engine = load(inbox, speaker)
    if engine is None:
        return 1
    Server(engine, inbox, speaker).serve()
    engine.engine_core.shutdown()
    return 0


if __name__ == "__main__":
    status = 1
    try:
        status = main(int(sys.argv[1]), int(sys.argv[2]))
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # threads of the engine must not hold up the end
