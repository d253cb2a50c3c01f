# SPDX-License-Identifier: Apache-2.0
"""Answers that stand after a mark in a completion, and texts that show nothing."""

MAX_CHARS = 200  # an answer that is longer is not read


def has_text(text: str) -> bool:
    """Whether a text has a character that can be seen: blanks and control characters cannot."""
    return any(letter.isprintable() and not letter.isspace() for letter in text)


def after(completion: str, mark: str) -> list[str]:
    """What follows each mark, trimmed: to the end of its line or to the next mark.

    After a mark that ends with `{` the answer ends at the matching brace, and is empty where none
    follows within MAX_CHARS.
    """
    if mark.endswith("{"):
        return _braced(completion, mark)
    return [part.split("\n", 1)[0].strip() for part in completion.split(mark)[1:]]


def _braced(completion: str, mark: str) -> list[str]:
    answers = []
    at = completion.find(mark)
    while at >= 0:
        start = at + len(mark)
        answers.append(_to_brace(completion[start : start + MAX_CHARS + 1]))
        at = completion.find(mark, start)
    return answers


def _to_brace(text: str) -> str:
    depth = 1
    for place, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if depth == 0:
            return text[:place].strip()
    return ""
