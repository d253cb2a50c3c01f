# SPDX-License-Identifier: Apache-2.0
"""`reasoning_gym`: problems drawn from generators of the reasoning-gym package.

The run's own verifier judges by the reference answer, never the package's scorers: choose
generators with one right answer. Those of `EVALUATES`, `OPEN` and `UNSTABLE` are refused by name.
"""

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from stages import ids
from stages.errors import ConfigError, TaskDataError
from stages.rows import Problem, PromptSet
from stages.settings import Settings
from stages.tasks.base import SPLITS, Demonstration, LeftOut, Split, Task, worked_prompts

# Scorers that evaluate text as a program; `composite` hands on to any generator's.
EVALUATES = frozenset(
    {
        *("binary_matrix", "bitwise_arithmetic", "composite", "countdown"),
        *("intermediate_integration", "n_queens", "number_sorting", "polynomial_multiplication"),
        *("puzzle24", "simple_integration", "spiral_matrix", "string_insertion"),
    }
)
# Generators without a reference answer.
OPEN = frozenset({"boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"})
# Generators whose problems differ from one process to the next.
UNSTABLE = frozenset({"codeio", "isomorphic_strings", "knight_swap", "ransom_note", "word_ladder"})
OWN = ("seed", "size")
DRAWS = 20
FEWEST_DRAWS = 200


class Generator(Settings):
    """A generator of the package by its name; `params` are the fields of its own config."""

    name: str = Field(..., min_length=1)
    weight: float = Field(1.0, gt=0, le=1e6)
    params: dict[str, Any] = Field(default_factory=dict)


class Config(Settings):
    """`train`, `dev`, `test` problems in all, shared out by weight, none twice.

    `split: generator` draws dev and test from the generators named in `held_out` alone, and train
    from the others.
    """

    type: Literal["reasoning_gym"]
    generators: Annotated[tuple[Generator, ...], Field(strict=False, min_length=1)]
    train: int = Field(2000, ge=1, le=10**7)
    dev: int = Field(200, ge=0, le=10**6)
    test: int = Field(200, ge=0, le=10**6)
    seed: int = Field(0, ge=0, lt=2**31)
    split: Literal["seed", "generator"] = "seed"
    held_out: Annotated[tuple[str, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _generators_fit(self) -> "Config":
        names = {generator.name for generator in self.generators}
        for name in names:
            _refuse(name)
        if (self.split == "generator") != bool(self.held_out):
            raise ValueError(
                f"split is {self.split!r} and held_out is {list(self.held_out)}: name generators "
                "in held_out with `split: generator`, and only then"
            )
        unknown = sorted(set(self.held_out) - names)
        if unknown:
            raise ValueError(
                f"held_out names {unknown[0]!r}, which is none of the generators: "
                f"{', '.join(sorted(names))}"
            )
        if names <= set(self.held_out):
            raise ValueError("held_out names every generator: leave one for train")
        return self

    def build(self) -> Task:
        _check(self.generators)
        return ReasoningGym(self)


class ReasoningGym:
    """The built task; problems are drawn when first asked for."""

    name = "reasoning_gym"

    def __init__(self, config: Config) -> None:
        self._config = config

    @cached_property
    def prompts(self) -> PromptSet:
        return worked_prompts("worked")

    def problems(self, split: Split) -> Sequence[Problem]:
        return self._drawn[split]

    def demonstrations(self) -> Sequence[Demonstration]:
        return ()

    def extra_slices(self) -> Mapping[str, Sequence[Problem]]:
        return {}

    def left_out(self) -> Sequence[LeftOut]:
        return ()

    @cached_property
    def _drawn(self) -> dict[Split, list[Problem]]:
        """Every split, evaluation first: a question that comes again is drawn anew."""
        seen: set[str] = set()
        drawn: dict[Split, list[Problem]] = {}
        for split in reversed(SPLITS):
            chosen = self._generators(split)
            counts = shares(getattr(self._config, split), [g.weight for g in chosen])
            found = [
                problem
                for place, (generator, count) in enumerate(zip(chosen, counts, strict=True))
                for problem in self._some(generator, place, split, count, seen)
            ]
            random.Random(f"order|{split}|{self._config.seed}").shuffle(found)
            drawn[split] = found
        return drawn

    def _generators(self, split: Split) -> list[Generator]:
        if self._config.split == "seed":
            return list(self._config.generators)
        held = self._config.held_out
        return [g for g in self._config.generators if (g.name in held) == (split != "train")]

    def _some(
        self, generator: Generator, place: int, split: Split, count: int, seen: set[str]
    ) -> Iterator[Problem]:
        if not count:
            return
        draws = DRAWS * count + FEWEST_DRAWS
        named = f"{generator.name}|{place}|{split}|{self._config.seed}"
        seed = int(hashlib.sha256(named.encode()).hexdigest()[:7], 16)
        made = 0
        for entry in _entries(generator, place, seed, draws):
            question, answer = entry["question"], entry["answer"]
            key = " ".join(question.split())
            if key not in seen and answer.strip():
                seen.add(key)
                made += 1
                yield self._problem(generator, split, question, answer, entry["metadata"])
            if made == count:
                return
        raise TaskDataError(
            f"task.generators.{place}: {generator.name} gave {made} new questions for {split} in "
            f"{draws} draws, {count} are asked for: ask for fewer, or widen its params"
        )

    def _problem(
        self,
        generator: Generator,
        split: Split,
        question: str,
        answer: str,
        metadata: Mapping[str, Any],
    ) -> Problem:
        return Problem(
            problem_id=ids.problem_id(self.name, question, answer),
            task=self.name,
            split=split,
            question=question,
            answer=answer,
            domain=generator.name,
            difficulty=difficulty_of(metadata),
        )


def shares(total: int, weights: Sequence[float]) -> list[int]:
    """Whole numbers in proportion to weights that sum to the total (largest remainder)."""
    exact = [total * weight / sum(weights) for weight in weights]
    counts = [int(share) for share in exact]
    rest = sorted(range(len(exact)), key=lambda i: (counts[i] - exact[i], i))
    for i in rest[: total - sum(counts)]:
        counts[i] += 1
    return counts


def difficulty_of(metadata: Mapping[str, Any]) -> float | None:
    """An entry's difficulty where it is a number, or the one field that its ranges let vary."""
    found = metadata.get("difficulty")
    number = _number(found)
    if number is not None:
        return number
    if not isinstance(found, Mapping):
        return None
    open_ = [
        name
        for name, range_ in found.items()
        if isinstance(range_, list | tuple) and len(range_) == 2 and range_[0] != range_[1]
    ]
    return _number(metadata.get(open_[0])) if len(open_) == 1 else None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def _refuse(name: str) -> None:
    if name in EVALUATES:
        raise ValueError(
            f"generator {name!r} needs a sandbox, which is not built yet: its scorer evaluates "
            "answers as programs; choose another"
        )
    if name in OPEN:
        raise ValueError(f"generator {name!r} gives no reference answer: choose another")
    if name in UNSTABLE:
        raise ValueError(
            f"generator {name!r} gives other problems in each process, so no run could go on with "
            "it: choose another"
        )


def _package() -> dict[str, tuple[type, type]]:
    """The package's generators: class and config class by name."""
    try:
        from reasoning_gym.factory import DATASETS
    except ImportError as error:
        raise ConfigError(
            "task.type: reasoning_gym needs the package reasoning-gym, which is not installed: "
            "pip install 'starloop[tasks]' (in a checkout: pip install -e '.[tasks]')"
        ) from error
    found: dict[str, tuple[type, type]] = DATASETS
    return found


def _check(generators: Sequence[Generator]) -> None:
    """ConfigError for a generator or a parameter that the package does not know."""
    known = _package()
    for place, generator in enumerate(generators):
        at = f"task.generators.{place}"
        if generator.name not in known:
            near = get_close_matches(generator.name, known, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
            raise ConfigError(f"{at}.name: {generator.name!r} is unknown; {hint}")
        _, settings = known[generator.name]
        allowed = [field.name for field in fields(settings) if field.name not in OWN]
        for name in generator.params:
            if name in OWN:
                raise ConfigError(
                    f"{at}.params.{name}: the task sets {name} itself: use task.seed, task.train, "
                    "task.dev and task.test"
                )
            if name not in allowed:
                near = get_close_matches(name, allowed, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(allowed)}"
                raise ConfigError(f"{at}.params.{name}: {generator.name} has no such field; {hint}")
        _dataset(generator, place, 0, 1)


def _dataset(generator: Generator, place: int, seed: int, size: int) -> Any:
    from reasoning_gym.factory import create_dataset

    try:
        return create_dataset(generator.name, seed=seed, size=size, **generator.params)
    except Exception as error:  # each generator has checks of its own
        said = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(
            f"task.generators.{place}.params: {generator.name} refuses {generator.params} ({said})"
        ) from error


def _entries(generator: Generator, place: int, seed: int, draws: int) -> Iterator[dict[str, Any]]:
    made = _dataset(generator, place, seed, draws)
    try:
        yield from (made[draw] for draw in range(draws))
    except (IndexError, ValueError, AssertionError, RuntimeError) as error:
        raise TaskDataError(
            f"task.generators.{place}: {generator.name} with {generator.params} fails "
            f"({' '.join(str(error).split())}): widen its params"
        ) from error
