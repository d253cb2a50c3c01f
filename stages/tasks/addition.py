# SPDX-License-Identifier: Apache-2.0
"""`addition`: the sum of two numbers of equal length, with a digit-by-digit scratchpad.

At length n both numbers have exactly n digits (length 1: 0 to 9). Every digit carries a letter
for its place, `a` for the ones, in a form that a character model can follow:

    question    c4b7a8+c5b6a9
    completion  a:8+9+0=17;b:7+6+1=14;c:4+5+1=10;#1047

Each step reads place, digit, digit, carry, sum; the answer stands after `#`. The split hashes the
unordered pair, so no sum is in two splits.
"""

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar, Literal

from pydantic import Field

from stages import ids
from stages.rows import Problem, PromptSet
from stages.settings import Settings
from stages.tasks.base import Demonstration, LeftOut, Split, Task

PLACES = "abcdefghijklmnopqrst"
PLAIN = "{question}="
HINT = "{question} (hint {answer})="
SHORT = (1, 2)
LONG_EXAMPLES = 10


class Config(Settings):
    """Lengths 1 to `digits`; `train` problems in all, as even over the lengths as they last."""

    unit: ClassVar[str] = "digits"  # what difficulty counts

    type: Literal["addition"]
    digits: int = Field(5, ge=1, le=len(PLACES))
    train: int = Field(10_000, ge=1, le=10**8)
    held_out: int = Field(200, ge=1, le=10**6)
    demonstrations: int = Field(400, ge=0, le=10**6)
    seed: int = Field(0, ge=0, lt=2**31)

    def build(self) -> Task:
        return Addition(self)


def write_number(number: int) -> str:
    """A number with a place letter before each digit: 478 → `c4b7a8`."""
    digits = str(number)
    return "".join(PLACES[len(digits) - 1 - i] + digit for i, digit in enumerate(digits))


def question_of(a: int, b: int) -> str:
    """The question for a + b."""
    return f"{write_number(a)}+{write_number(b)}"


def operands(question: str) -> tuple[int, int]:
    """The two numbers of a question."""
    a, b = ("".join(c for c in side if c.isdigit()) for side in question.split("+"))
    return int(a), int(b)


def worked(a: int, b: int) -> str:
    """The scratchpad for a + b, digit by digit with carries, and the answer after `#`."""
    left, right, carry, steps = str(a)[::-1], str(b)[::-1], 0, ""
    for place, x, y in zip(PLACES, left, right, strict=False):
        total = int(x) + int(y) + carry
        steps += f"{place}:{x}+{y}+{carry}={total};"
        carry = total // 10
    return f"{steps}#{a + b}"


def split_of(a: int, b: int) -> Split:
    """train, dev or test (8 : 1 : 1), by a hash of the unordered pair."""
    pair = f"{min(a, b)}+{max(a, b)}"
    bucket = int(hashlib.sha256(pair.encode()).hexdigest()[:8], 16) % 10
    return "train" if bucket < 8 else "dev" if bucket == 8 else "test"


def pairs(length: int, split: Split, seed: int) -> Iterator[tuple[int, int]]:
    """Ordered pairs of a length and split, none twice, in an order that follows from the seed.

    Lengths 1 and 2 give every pair; longer ones at most a twentieth of all pairs.
    """
    low, high = (0, 9) if length == 1 else (10 ** (length - 1), 10**length - 1)
    rng = random.Random(f"addition|{length}|{split}|{seed}")
    if length <= len(SHORT):
        every = list(product(range(low, high + 1), range(low, high + 1)))
        rng.shuffle(every)
        yield from (pair for pair in every if split_of(*pair) == split)
        return
    seen: set[tuple[int, int]] = set()
    while len(seen) < (high - low + 1) ** 2 // 20:
        pair = (rng.randint(low, high), rng.randint(low, high))
        if pair not in seen and split_of(*pair) == split:
            seen.add(pair)
            yield pair


class Addition:
    """The built task."""

    name = "addition"

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lengths = range(1, config.digits + 1)

    @cached_property
    def prompts(self) -> PromptSet:
        set_id = ids.prompt_set_id("addition", PLAIN, HINT)
        return PromptSet(set_id, "addition", PLAIN, HINT)

    def problems(self, split: Split) -> Sequence[Problem]:
        if split == "train":
            return self._train
        count = self._config.held_out
        return [p for length in self._lengths for p in self._some(length, split, count)]

    @cached_property
    def _train(self) -> Sequence[Problem]:
        chosen: list[Problem] = []
        for length in self._lengths:
            share = (self._config.train - len(chosen)) // (self._config.digits - length + 1)
            chosen += self._some(length, "train", share)
        return chosen

    def demonstrations(self) -> Sequence[Demonstration]:
        """Ten worked examples of each length beyond 2, the rest of lengths 1 and 2."""
        wanted = self._config.demonstrations
        long = [length for length in self._lengths if length not in SHORT]
        shown = [p for n in long for p in self._some(n, "train", LONG_EXAMPLES, salt=1)]
        shown = shown[:wanted]
        for length in [length for length in self._lengths if length in SHORT]:
            last = length == min(len(SHORT), self._config.digits)
            share = wanted - len(shown) if last else (wanted - len(shown)) // 9
            shown += self._some(length, "train", share, salt=1)
        return [Demonstration(p, worked(*operands(p.question))) for p in shown]

    def extra_slices(self) -> Mapping[str, Sequence[Problem]]:
        """All 55 sums of length 1, whatever their split: its dev split alone is small."""
        sums = [(a, b) for a in range(10) for b in range(a, 10)]
        return {"difficulty=1 (all)": [_problem(a, b) for a, b in sums]}

    def left_out(self) -> Sequence[LeftOut]:
        return ()

    def _some(self, length: int, split: Split, count: int, salt: int = 0) -> list[Problem]:
        found = pairs(length, split, self._config.seed + salt)
        return [_problem(*pair) for pair, _ in zip(found, range(count), strict=False)]


@dataclass(frozen=True, slots=True)
class Example:
    """A base-training example: prompt text and completion."""

    prompt: str
    completion: str


def examples(length: int, count: int, hinted: bool, seed: int) -> list[Example]:
    """`count` worked examples of a length from the train split, repeated if there are fewer."""
    template = HINT if hinted else PLAIN
    found = [pair for pair, _ in zip(pairs(length, "train", seed), range(count), strict=False)]
    chosen = [found[i % len(found)] for i in range(count)]
    return [
        Example(
            template.replace("{question}", question_of(a, b)).replace("{answer}", str(a + b)),
            worked(a, b),
        )
        for a, b in chosen
    ]


def _problem(a: int, b: int) -> Problem:
    question, answer = question_of(a, b), str(a + b)
    return Problem(
        problem_id=ids.problem_id("addition", question, answer),
        task="addition",
        split=split_of(a, b),
        question=question,
        answer=answer,
        domain="arithmetic",
        difficulty=float(len(str(a))),
        template="a+b",
    )
