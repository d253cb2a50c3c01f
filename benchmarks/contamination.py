# SPDX-License-Identifier: Apache-2.0
"""Figures of decontamination: 100,000 problems against 20,000, with copies planted among them.

    python -m benchmarks.contamination [CANDIDATES EVALUATION]

A third of the problems begin with one stock sentence. Every kind of copy is planted 500 times:
the same text in other case and punctuation, other numbers, one word in ten changed, and the text
with 60 words of other text around it.
"""

import itertools
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from benchmarks.figures import Figure, show_and_write
from stages.decontaminate import DecontaminateConfig, Overlap
from stages.ids import Id, mint
from stages.shards import from_table
from store.decontaminate import find_overlaps, texts

PLANTED = 500
STOCK = "Solve this and give the final answer."
BARS = {
    "exact": "exact",
    "renumbered": "template",
    "one word in ten": "8-gram",
    "padded": "13-gram",
}
_WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("a", "e", "io", "u") for c in
          ("n", "r", "st", "lo", "ma", "ki", "tre", "ppe", "vor", "sh")]  # fmt: skip
VOCABULARY = [a + b for a in _WORDS for b in ("", "s", "ed", "ing", "al", "er", "y", "ful")]
_WEIGHTS = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(len(VOCABULARY))))


def problem(rng: random.Random) -> str:
    """A made-up problem of 45 to 60 words with four numbers."""
    words = rng.choices(VOCABULARY, cum_weights=_WEIGHTS, k=rng.randint(45, 60))
    for place in rng.sample(range(len(words)), 4):
        words[place] = str(rng.randint(2, 999))
    text = " ".join(words)
    stock = f"{STOCK} " if rng.random() < 1 / 3 else ""
    return f"{stock}{text[0].upper()}{text[1:]}?"


def _renumbered(text: str, rng: random.Random) -> str:
    return " ".join(str(rng.randint(1000, 9999)) if w.isdigit() else w for w in text.split(" "))


def _changed(text: str, rng: random.Random) -> str:
    words, begin = text.split(" "), rng.randrange(10)
    for place in range(begin, len(words), 10):
        words[place] = "zzz"
    return " ".join(words)


COPIES: Mapping[str, Callable[[str, random.Random], str]] = {
    "exact": lambda text, rng: text.upper().replace(" ", ", ", 3),
    "renumbered": _renumbered,
    "one word in ten": _changed,
    "padded": lambda text, rng: f"{problem(rng)} {text} {problem(rng)}",
}


def corpus(
    candidates: int, evaluation: int, seed: int = 0
) -> tuple[pa.Table, pa.Table, dict[str, dict[Id, Id]]]:
    """Candidates, evaluation items and the planted copies: kind → candidate → its item."""
    rng = random.Random(seed)
    items = [(mint("p", f"item{i}"), problem(rng)) for i in range(evaluation)]
    ours = [(mint("p", f"candidate{i}"), problem(rng)) for i in range(candidates)]
    planted: dict[str, dict[Id, Id]] = {kind: {} for kind in COPIES}
    places = rng.sample(range(candidates), min(PLANTED, candidates // 10) * len(COPIES))
    for place, (kind, copy) in zip(places, itertools.cycle(COPIES.items()), strict=False):
        item, text = rng.choice(items)
        ours[place] = (ours[place][0], copy(text, rng))
        planted[kind][ours[place][0]] = item
    return texts(ours), texts(items), planted


def _python_sets(candidates: pa.Table, evaluation: pa.Table) -> float:
    """Seconds of a plain script: 13-grams of words in Python sets, nothing else."""

    def grams(text: str) -> set[tuple[str, ...]]:
        words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
        return {tuple(words[i : i + 13]) for i in range(len(words) - 12)}

    begun = time.monotonic()
    theirs = set[tuple[str, ...]]()
    for text in evaluation.column("text").to_pylist():
        theirs |= grams(text)
    sum(not theirs.isdisjoint(grams(text)) for text in candidates.column("text").to_pylist())
    return time.monotonic() - begun


def measure(candidates: int = 100_000, evaluation: int = 20_000) -> dict[str, Figure]:
    """Seconds, peak memory, planted copies found by each rule, and problems wrongly flagged."""
    ours, items, planted = corpus(candidates, evaluation)
    config = DecontaminateConfig()
    before = _peak()
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        table = find_overlaps(
            ours, items, config.rules, config.containment, Path(folder), "4GB", threads=2
        )
        seconds = time.monotonic() - begun
    peak = _peak()
    found = {(o.problem_id, o.other_id, o.rule) for o in from_table(Overlap, table)}
    size = f"{candidates:,} against {evaluation:,}"
    figures = {
        f"decontamination, {size}": Figure(
            f"{seconds:.1f}", "s", "≤ 60 s", seconds <= 60,
            f"{_python_sets(ours, items):.1f} s, Python sets of 13-grams alone",
        ),
        "peak memory of the process": Figure(
            f"{peak / 1e9:.2f}", f"GB, {before / 1e9:.2f} of it before", "≤ 4 GB", peak <= 4e9
        ),
    }  # fmt: skip
    for kind, copies in planted.items():
        shares: dict[str, float] = {
            rule: sum((ours, other, rule) in found for ours, other in copies.items()) / len(copies)
            for rule in config.rules
        }
        told = ", ".join(f"{rule} {share:.1%}" for rule, share in shares.items())
        bar = BARS[kind]
        figures[f"found of copies, {kind}"] = Figure(told, "", f"{bar} ≥ 99 %", shares[bar] >= 0.99)
    all_copies = {id_ for kind in planted.values() for id_ in kind}
    wrong = len({candidate for candidate, _, _ in found} - all_copies)
    figures["problems flagged that are no copies"] = Figure(wrong, "", "0", wrong == 0)
    return figures


def _peak() -> int:
    """The most bytes of memory that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    show_and_write("contamination", measure(*map(int, sys.argv[1:3])))
