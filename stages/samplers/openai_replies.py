# SPDX-License-Identifier: Apache-2.0
"""Replies of OpenAI-compatible servers to completions. What does not fit its request is no reply.

The form is that of OpenAI's completions and chat completions, with `token_ids` and
`prompt_token_ids` per choice as vLLM adds them for `return_token_ids`.
"""

import math
from collections.abc import Callable
from typing import Any

from stages.rows import Finish
from stages.samplers.base import Completion, Request, SamplingConfig
from stages.samplers.openai_client import BadReply

NEVER = -1000.0  # below any real log-probability; vLLM writes -9999 for minus infinity


def choice_of(reply: dict[str, Any]) -> dict[str, Any]:
    """The one choice of a reply to a request with n = 1."""
    choices = reply.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        count = len(choices) if isinstance(choices, list) else "no"
        raise BadReply(f"the reply has {count} choices, not one")
    choice: dict[str, Any] = choices[0]
    if choice.get("index", 0) != 0:
        raise BadReply(f"the reply's one choice has index {choice['index']!r}, not 0")
    return choice


def read_tokens(
    reply: dict[str, Any], request: Request, sampling: SamplingConfig, vocabulary: int
) -> Completion:
    """A completion by token ids; `vocabulary` is the number of ids that the policy knows."""
    choice = choice_of(reply)
    if choice.get("prompt_token_ids") != list(request.prompt_ids):
        raise BadReply("the reply is to another prompt: its prompt_token_ids are not those sent")
    token_ids = choice.get("token_ids")
    if not isinstance(token_ids, list) or not 1 <= len(token_ids) <= sampling.max_tokens:
        count = len(token_ids) if isinstance(token_ids, list) else "no"
        raise BadReply(f"the reply has {count} token ids; 1 to {sampling.max_tokens} were asked")
    strange = [i for i in token_ids if type(i) is not int or not 0 <= i < vocabulary]
    if strange:
        raise BadReply(
            f"token id {strange[0]!r} is not one of the policy's {vocabulary}: the server has "
            "another tokenizer"
        )
    return Completion(
        trajectory_id=request.trajectory_id,
        token_ids=tuple(token_ids),
        text=_text(choice.get("text")),
        logprobs=_logprobs(choice, len(token_ids)),
        finish_reason=_finish(choice),
    )


def read_chat(
    reply: dict[str, Any],
    request: Request,
    encode: Callable[[str], list[int]],
    eos: int,
) -> Completion:
    """A completion by text; its ids are what `encode` makes of it, and `eos` if it ended so."""
    choice = choice_of(reply)
    message = choice.get("message")
    text = _text(message.get("content") if isinstance(message, dict) else None)
    finish = _finish(choice)
    # a stop string that was hit is named (vLLM); then no end was sampled
    ended = finish == "stop" and not isinstance(choice.get("stop_reason"), str)
    token_ids = [*encode(text), *([eos] if ended else [])]
    if not token_ids:
        raise BadReply("the reply has no text: raise sampling.max_tokens if reasoning used them up")
    return Completion(
        trajectory_id=request.trajectory_id,
        token_ids=tuple(token_ids),
        text=text,
        logprobs=None,
        finish_reason=finish,
        from_text=True,
    )


def gives_tokens(reply: dict[str, Any], prompt: list[int]) -> bool:
    """Whether a reply to a token prompt has its ids, the completion's and log-probabilities."""
    choice = choice_of(reply)
    return (
        choice.get("prompt_token_ids") == prompt
        and isinstance(choice.get("token_ids"), list)
        and isinstance(choice.get("logprobs"), dict)
    )


def is_processed(reply: dict[str, Any]) -> bool:
    """Whether log-probabilities are of the distribution drawn from.

    The reply is to a draw at top_k 1: then the token has log-probability 0 and no other can come.
    """
    choice = choice_of(reply)
    (drawn,) = _logprobs(choice, 1)
    top = (choice["logprobs"].get("top_logprobs") or [{}])[0] or {}
    others = sorted(float(value) for value in top.values())[:-1]
    return drawn > -1e-6 and all(value < NEVER for value in others)


def _text(text: Any) -> str:
    if text is not None and not isinstance(text, str):
        raise BadReply(f"the reply's text is {type(text).__name__}, not a string")
    # half of a surrogate pair cannot be stored
    return (text or "").encode("utf-8", "replace").decode()


def _logprobs(choice: dict[str, Any], count: int) -> tuple[float, ...]:
    given = choice.get("logprobs")
    values = given.get("token_logprobs") if isinstance(given, dict) else None
    if not isinstance(values, list) or len(values) != count:
        found = len(values) if isinstance(values, list) else "no"
        raise BadReply(f"the reply has {found} log-probabilities for {count} tokens")
    if any(
        isinstance(value, bool)
        or not isinstance(value, float | int)
        or not math.isfinite(value)
        or value > 1e-3
        for value in values
    ):
        raise BadReply("the reply has a log-probability that is not a number up to 0")
    return tuple(min(0.0, float(value)) for value in values)


def _finish(choice: dict[str, Any]) -> Finish:
    reason = choice.get("finish_reason")
    if reason == "stop":
        return "stop"
    if reason == "length":
        return "length"
    raise BadReply(f"finish_reason is {reason!r}, not stop or length")
