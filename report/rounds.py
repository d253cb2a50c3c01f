# SPDX-License-Identifier: Apache-2.0
"""The round table: one line per round, on the terminal while a run goes on and after it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from report.rewards import reward_said
from report.text import duration
from stages.rows import SELF_MADE
from store.db import Store
from store.transaction import read


@dataclass(frozen=True, slots=True)
class RoundLine:
    """A round's numbers as people read them."""

    summary: Mapping[str, Any]
    slices: Mapping[str, float]
    shares: Mapping[str, float]


def round_lines(store: Store, run: str) -> list[RoundLine]:
    """All rounds of a run that have a committed step."""
    with store.reader() as connection:
        summaries = read(connection, "round_table", run=run)
        slices = read(connection, "slices", run=run)
        shares = read(connection, "mix_shares", run=run)
    return [
        RoundLine(
            summary,
            {s["slice"]: s["value"] for s in slices if s["round"] == summary["round"]},
            {s["origin"]: s["share"] for s in shares if s["round"] == summary["round"]},
        )
        for summary in summaries
    ]


def header(config: Any) -> str:
    """What a run's rounds are, in one line: start, reference, updater and its numbers."""
    update, generate = config.update, config.generate
    steps = update.steps
    numbers = [
        f"steps {steps.first} × {steps.growth:g} a round"
        if steps.epochs is None
        else f"{steps.epochs:g} epochs a round"
    ]
    for name in ("learning_rate", "batch_size"):
        if hasattr(update.updater, name):
            numbers.append(f"{name.replace('_', ' ')} {getattr(update.updater, name):g}")
    if (lora := getattr(update.updater, "lora", None)) is not None:
        numbers.append(f"LoRA of rank {lora.rank}")
    answers = f"{generate.n} answer{'s' * (generate.n > 1)}"
    return (
        f"{config.recipe}: task {config.task.type}, policy {config.policy.type}, {answers} to "
        f"{generate.problems.per_round} problems a round at temperature "
        f"{generate.sampling.temperature:g}, reward {reward_said(config)}; update "
        f"{update.updater.type} from {update.init_from} ({', '.join(numbers)}), "
        f"{_weighed(config)}{_compared(config)}, policy refreshed {refreshed(config.timing)}"
        f"{'' if update.resets == 'never' else f', resets {update.resets}'}"
    )


def _weighed(config: Any) -> str:
    """How an answer is weighed against the others of its group."""
    if config.recipe != "grpo":
        return ""
    groups = config.mix.groups
    over = "" if groups.scale == "none" else f" over the {groups.scale}'s deviation"
    equal = "dropped" if groups.equal == "drop" else "kept"
    wanted = f", {groups.wanted} groups in {groups.tries} tries" if groups.wanted else ""
    return f"advantage by {groups.baseline}{over}, equal groups {equal}{wanted}, "


def _compared(config: Any) -> str:
    """What the loss compares with, how hard it holds to it, and how far a step may go."""
    updater, reference = config.update.updater, config.update.reference
    parts = []
    if config.recipe == "grpo":
        parts += [f"loss {updater.loss}"] if hasattr(updater, "loss") else []
    elif reference is not None:
        parts.append(f"loss {' + '.join(getattr(updater, 'losses', (updater.type,)))}")
    parts.append("no reference" if reference is None else f"reference {reference}")
    return ", ".join([*parts, _kl(config), _clip(updater)])


def _kl(config: Any) -> str:
    """Where the KL to the reference stands, its coefficient and its estimator."""
    beta, inside = getattr(config.update.updater, "beta", None), config.mix.groups.kl
    if config.recipe != "grpo":
        held = config.update.reference is not None and beta is not None
        return f"β {beta:g} (KL in the loss)" if held else "no KL"
    corrected = getattr(config.update.updater, "kl_correction", False)
    found = [
        f"KL k3{' times the ratio' * corrected} in the loss with β {beta:g}" if beta else "",
        f"KL k1 in the reward with β {inside:g}" if inside else "",
    ]
    return " and ".join(part for part in found if part) or "no KL"


def _clip(updater: Any) -> str:
    """The range of the ratio π/π_old, of what, and where it ends."""
    ratio = getattr(updater, "ratio", "none")
    if ratio == "none":
        return "no clipping"
    if updater.loss == "cispo":
        return f"token weights up to {updater.top:g}"
    return f"clip {updater.epsilon:g}/{updater.top:g} of each {ratio}'s ratio"


def refreshed(timing: Any) -> str:
    """How often the policy is refreshed, in words."""
    words = {"every_round": "every round", "never": "never (offline)"}
    refresh = timing.policy_refresh
    return words.get(refresh, f"every {timing.steps} steps (s = {timing.steps})")


def columns(lines: Sequence[RoundLine]) -> list[str]:
    """The table's headings; `d3` is pass@1 on problems of difficulty 3."""
    k = next((line.summary["k"] for line in lines if line.summary["k"]), "k")
    return [
        "round", "pass@1", "95 %", f"pass@{k}", f"maj@{k}",
        *(_heading(name) for name in slices_of(lines)),
        "kept", "rationalized", "leaks", "tokens", "time", "trained on",
    ]  # fmt: skip


def slices_of(lines: Sequence[RoundLine]) -> list[str]:
    """Slices that get a column: by difficulty, then by domain."""
    names = {name for line in lines for name in line.slices} - {"difficulty=none"}

    def order(name: str) -> tuple[bool, float, str]:
        number = re.match(r"difficulty=([-+.e\d]+)", name)
        return not name.startswith("difficulty"), float(number[1]) if number else inf, name

    return sorted(names, key=order)


def _heading(name: str) -> str:
    """`d3 all` for `difficulty=3 (all)`, a domain by its name."""
    kind, _, value = name.partition("=")
    return re.sub(r"[()]", "", f"d{value}" if kind == "difficulty" else value)


def cells(line: RoundLine, slices: Sequence[str]) -> list[str]:
    """A round's cells, in the order of `columns`."""
    s = line.summary
    interval = "–" if s["low"] is None else f"{s['low']:.3f}–{s['high']:.3f}"
    return [
        "base" if s["round"] == 0 else str(s["round"]),
        _pass_at_1(s),
        interval,
        _number(s["pass_at_k"]),
        _number(s["maj_at_k"]),
        *(_number(line.slices.get(name), 2) for name in slices),
        str(s["kept"]),
        _with_share(s["rationalized"], line.shares.get("rationalized")),
        str(s["hint_leaks"]),
        f"{s['tokens']:,}" if s["tokens"] < 10_000 else f"{s['tokens'] / 1000:,.0f}k",
        duration(s["wall_s"]),
        trained_on(line.shares),
    ]


def _with_share(rows: int, share: float | None) -> str:
    """This round's rationalized rows, and the share of all rationalized ones in the set."""
    return str(rows) if share is None else f"{rows} ({share:.0%})"


def trained_on(shares: Mapping[str, float]) -> str:
    """The origins of a training set with their shares."""
    return ", ".join(f"{origin} {share:.0%}" for origin, share in shares.items()) or "–"


def is_self_improvement(lines: Sequence[RoundLine]) -> bool:
    """Whether every trained row was made by the run's own policies."""
    return all(SELF_MADE.issuperset(line.shares) for line in lines)


def _pass_at_1(summary: Mapping[str, Any]) -> str:
    """Pass@1, with its lower bound where some answers could not be judged."""
    value, bound = summary["pass_at_1"], summary["bound"]
    unsure = value is not None and bound is not None and bound < value
    return f"{_number(value)} (≥ {_number(bound)})" if unsure else _number(value)


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
