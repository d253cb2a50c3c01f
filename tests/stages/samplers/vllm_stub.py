# SPDX-License-Identifier: Apache-2.0
"""Speaks the protocol of `vllm_child.py` without vLLM: each slot says its prompt backwards.

A prompt that starts with 666 kills the process, one that starts with 13 is refused.
"""

import json
import os
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[3] / "stages" / "samplers" / "vllm_child.py"


def main() -> None:
    child = runpy.run_path(str(SOURCE))
    lines, pipe = os.fdopen(int(sys.argv[1])), os.fdopen(int(sys.argv[2]), "w")

    def say(**message: Any) -> None:
        print(json.dumps(message), file=pipe, flush=True)

    say(fields=["model", "enforce_eager", "max_model_len"], version="stub")
    model = Path(json.loads(lines.readline())["load"]["model"])
    if os.environ.get("VLLM_STUB") == "no memory":
        return say(failed="engine", message="RuntimeError: no memory")
    say(
        dtype="float32",
        weight_version=child["weight_version"](model),
        vocabulary=int(os.environ.get("VLLM_STUB_VOCABULARY", "49")),
        longest=100,
        at_once=2,
    )
    for message in map(json.loads, lines):
        if "close" in message:
            return
        if "id" in message:
            first, tokens = message["prompt_ids"][0], message["prompt_ids"][::-1]
            if first == 666:
                print("the engine is on fire", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            if first == 13:
                say(id=message["id"], refused="ValueError: thirteen")
                continue
            where = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
            logprobs = [-1.0] * len(tokens)
            text = f"{where} {message['seed']}"
            reply = {"token_ids": tokens, "text": text, "logprobs": logprobs}
            say(id=message["id"], finish_reason="length", **reply)


if __name__ == "__main__":
    main()
