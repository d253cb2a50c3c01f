# SPDX-License-Identifier: Apache-2.0
"""Values of a file's columns, checked: text, numbers, token ids, chat messages.

Each function takes a value and where it stands, and raises TaskDataError with file, line, column
and what was found. Text may hold NUL; a lone surrogate is no text.
"""

import math
from typing import Any

from stages.errors import TaskDataError
from stages.imports.base import Message
from stages.settings import canonical

MOST_SHOWN = 60


class NotSayable(Exception):
    """A value that is well formed and has no place here; the message is the reason."""


def shown(value: Any) -> str:
    """A value as an error message shows it: short, and always printable."""
    text = ascii(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def kind_of(value: Any) -> str:
    """The word for a value's type in messages."""
    words = {bool: "a truth value", int: "a number", float: "a number", str: "text"}
    words |= {list: "a list", tuple: "a list", dict: "an object", type(None): "nothing"}
    return words.get(type(value), type(value).__name__)


def text(value: Any, at: str) -> str:
    """Text that UTF-8 can hold."""
    if not isinstance(value, str):
        raise TaskDataError(
            f"{at}: {kind_of(value)} ({shown(value)}) where text is needed: mend the file, or map "
            "another column with --map"
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise TaskDataError(
            f"{at}: a lone surrogate ({ascii(value[error.start])[1:-1]}) is no text: mend the file"
        ) from error
    return value


def plain(value: Any, at: str) -> str:
    """Text, or any other value as JSON; nothing is empty text."""
    if value is None:
        return ""
    try:
        return text(value if isinstance(value, str) else canonical(value), at)
    except (TypeError, ValueError, RecursionError) as error:
        raise TaskDataError(
            f"{at}: {kind_of(value)} is neither text nor JSON: mend the file"
        ) from error


def number(value: Any, at: str) -> float | None:
    """A finite number; nothing and NaN are None. A truth value is 0 or 1."""
    if value is None:
        return None
    if not isinstance(value, bool | int | float):
        raise TaskDataError(
            f"{at}: {kind_of(value)} ({shown(value)}) where a number is needed: mend the file, or "
            "map another column with --map"
        )
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if math.isnan(found):
        return None
    if math.isinf(found):
        raise TaskDataError(f"{at}: {shown(value)} is not finite: mend the file")
    return found


def token_ids(value: Any, at: str) -> tuple[int, ...]:
    """A list of token ids."""
    if not isinstance(value, list | tuple):
        raise TaskDataError(
            f"{at}: {kind_of(value)} ({shown(value)}) where a list of token ids is needed: mend "
            "the file, or map another column with --map"
        )
    for item in value:
        if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < 2**31:
            raise TaskDataError(
                f"{at}: {shown(item)} is no token id (an integer from 0, below 2^31): mend the file"
            )
    return tuple(value)


def logprobs(value: Any, tokens: tuple[int, ...] | None, at: str) -> tuple[float, ...] | None:
    """One finite log-probability for each token; nothing is None."""
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise TaskDataError(
            f"{at}: {kind_of(value)} ({shown(value)}) where a list of log-probabilities is needed"
        )
    found = tuple(number(item, at) for item in value)
    if any(item is None for item in found):
        raise TaskDataError(f"{at}: a log-probability is missing: mend the file")
    if tokens is None or len(tokens) != len(found):
        count = "no token ids" if tokens is None else f"{len(tokens)} token ids"
        raise TaskDataError(
            f"{at}: {len(found)} log-probabilities for {count}: one for each is needed; mend the "
            "file, or leave them out with --map logprobs="
        )
    return found  # type: ignore[return-value]


def content(value: Any, at: str) -> str:
    """The text of a message's content; NotSayable for pictures and the like."""
    if isinstance(value, list | tuple):
        parts = []
        for part in value:
            if not isinstance(part, dict) or part.get("type") != "text":
                raise NotSayable("a message holds more than text")
            parts.append(text(part.get("text"), at))
        return "\n".join(parts)
    return text(value, at)


def messages(value: Any, at: str) -> tuple[Message, ...]:
    """Chat messages of text; NotSayable for tool calls, pictures and the like."""
    found = []
    for item in value:
        if not isinstance(item, dict) or "role" not in item:
            raise TaskDataError(
                f"{at}: {kind_of(item)} ({shown(item)}) where a chat message (role, content) is "
                "needed: mend the file"
            )
        if item.get("tool_calls"):
            raise NotSayable("a message calls a tool")
        found.append(Message(text(item["role"], at), content(item.get("content"), at)))
    return tuple(found)


def prompt(value: Any, at: str) -> str | tuple[Message, ...]:
    """Text, or chat messages."""
    if isinstance(value, list | tuple):
        if not value:
            raise NotSayable("the prompt is empty")
        return messages(value, at)
    if not isinstance(value, str):
        raise TaskDataError(
            f"{at}: {kind_of(value)} ({shown(value)}) where text or chat messages are needed: mend "
            "the file, or map another column with --map"
        )
    return text(value, at)


def said(value: Any, at: str) -> str:
    """A completion: text, or one chat message."""
    if isinstance(value, list | tuple):
        found = messages(value, at)
        if len(found) != 1:
            raise NotSayable(f"the completion is {len(found)} messages, not one")
        return found[0].content
    return text(value, at)


def as_question(asked: str | tuple[Message, ...]) -> str:
    """The text of a prompt: one user's message alone, or all with their roles."""
    if isinstance(asked, str):
        return asked
    if len(asked) == 1 and asked[0].role == "user":
        return asked[0].content
    return "\n\n".join(f"{message.role}: {message.content}" for message in asked)


def an_object(value: Any, at: str) -> dict[str, Any]:
    """A JSON object: names and values."""
    if not isinstance(value, dict):
        raise TaskDataError(
            f"{at}: {kind_of(value)} ({shown(value)}) where an object is needed: JSONL has one "
            "object on each line"
        )
    return value
