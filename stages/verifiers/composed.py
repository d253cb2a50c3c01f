# SPDX-License-Identifier: Apache-2.0
"""Several verifiers as one: a status of those that tell right from wrong, a score of all.

Parts that decide are asked first; the others then see what they found. Where no part decides, all
take part in the status. Each part's score is a component under the part's type (`distance`, and
`distance_2` for the second of that type), with its weight in the sum: 1 in `all` and `any`, 0 for a
mere metric. The components of a part that is itself composed follow as metrics: `any.exact`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stages.settings import Settings
from stages.verifiers.base import Answer, Component, Judgement, VerifierPart


class ComposedConfig(Settings):
    """A verifier that has `parts`."""

    @property
    def mark(self) -> str | None:
        """What stands before the answer, for the first part that has such a mark."""
        parts: Sequence[Any] = self.parts  # type: ignore[attr-defined]
        return next((mark for part in parts if (mark := getattr(part, "mark", None))), None)


class Composed:
    """What the combinators share; each says how statuses and scores come together.

    `version` holds those of the parts: their judgements are its own.
    """

    name: str
    own_version = "1"

    def __init__(
        self, parts: Sequence[VerifierPart], weights: Sequence[float], config: str
    ) -> None:
        self.config = config
        self.version = f"{self.own_version}({','.join(part.version for part in parts)})"
        self._parts, self._weights = list(parts), list(weights)
        self._names = _numbered([part.name for part in parts])
        places = range(len(parts))
        self.decides = any(part.decides for part in parts)
        self._deciding = [n for n in places if parts[n].decides or not self.decides]
        self.group = next((part.group for part in parts if part.group is not None), None)
        self.isolation = "+".join(dict.fromkeys(part.isolation for part in parts))

    @property
    def trust(self) -> str:
        """As weak as the weakest part that decides."""
        weak = any(part.trust == "weak" for part in self.deciding)
        return "weak" if weak else "strong"

    @property
    def deciding(self) -> list[VerifierPart]:
        """The parts that the status is made of."""
        return [self._parts[place] for place in self._deciding]

    def judge(self, answers: Sequence[Answer]) -> list[Judgement]:
        found = {place: self._parts[place].judge(answers) for place in self._deciding}
        decided = [self.decide(list(said)) for said in zip(*found.values(), strict=True)]
        told = [
            replace(answer, status=judgement.status)
            for answer, judgement in zip(answers, decided, strict=True)
        ]
        for place, part in enumerate(self._parts):
            if place not in found:
                found[place] = part.judge(told)
        columns = [found[place] for place in range(len(self._parts))]
        rows = zip(*columns, strict=True)
        return [self._whole(one, row) for one, row in zip(decided, rows, strict=True)]

    def _whole(self, decided: Judgement, parts: Sequence[Judgement]) -> Judgement:
        score = None if decided.status == "unjudged" else self.combine(parts)
        stored = tuple(
            component
            for name, weight, part in zip(self._names, self._weights, parts, strict=True)
            for component in components(name, weight, part)
        )
        if score is None:
            unjudged = next(one for one in (decided, *parts) if one.status == "unjudged")
            return Judgement("unjudged", None, None, unjudged.reason, stored)
        return replace(decided, score=score, components=stored)

    def decide(self, judgements: Sequence[Judgement]) -> Judgement:
        """The judgement whose status, answer and reason count, among the deciding parts'."""
        raise NotImplementedError

    def combine(self, judgements: Sequence[Judgement]) -> float | None:
        """The score of the parts' judgements, None where one that counts is unjudged."""
        raise NotImplementedError


def components(name: str, weight: float, part: Judgement) -> list[Component]:
    """A part's score under its name, and its own components as metrics."""
    if part.score is None:
        return []
    below = [(f"{name}.{inner}", value, 0.0) for inner, value, _ in part.components]
    return [(name, part.score, weight), *below]


def _numbered(names: Sequence[str]) -> list[str]:
    """The names, each that stands there again with its number."""
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return numbered
