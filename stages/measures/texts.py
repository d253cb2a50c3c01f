# SPDX-License-Identifier: Apache-2.0
"""What the text of one answer looks like: reasoning against answer, and words that repeat."""

OPEN, CLOSE = "<think>", "</think>"
GRAM = 4


def parts(text: str, mark: str | None) -> tuple[str, str] | None:
    """Reasoning and answer of a text; None where nothing divides it.

    The `<think>` block and what follows it (a block that was begun in the prompt, or never ended,
    is one too), else what stands before and after the last answer mark.
    """
    before, closed, answer = text.rpartition(CLOSE)
    if closed:
        return before.partition(OPEN)[2] if OPEN in before else before, answer
    opened = text.partition(OPEN)
    if opened[1]:
        return opened[2], ""
    reasoning, marked, answer = text.rpartition(mark) if mark else ("", "", "")
    return (reasoning, answer) if marked else None


def repetition(text: str) -> float | None:
    """Share of the text's runs of four words that stand in it before; None under four words.

    Words are what blanks divide.
    """
    words = text.split()
    grams = [tuple(words[at : at + GRAM]) for at in range(len(words) - GRAM + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else None
