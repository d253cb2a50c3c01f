# SPDX-License-Identifier: Apache-2.0
"""Updaters side by side: data source, reward, gradient coefficient, token or sequence level."""

import re
from collections.abc import Sequence
from typing import Any, get_args

from report.rewards import reward_said, weighed
from report.rounds import refreshed
from report.text import text_table
from stages.updaters import CONFIGS
from stages.updaters.base import SYMBOLS, View

NUMBERS = {"β": "beta", "γ": "gamma", "ε": "label_smoothing"}
Line = tuple[str, str, View]  # updater, loss, what it does


def describe_all() -> str:
    """Every updater with every loss that it knows."""
    lines: list[Line] = [
        (*get_args(config.model_fields["type"].annotation), loss, view)
        for config in CONFIGS
        for loss, view in config.VIEWS.items()
    ]
    return f"{_sources(lines)}\n\n{_coefficients(lines)}"


def describe(name: str, config: Any) -> str:
    """What a config trains with: its own numbers beside its updater's lines."""
    updater, generate = config.update.updater, config.generate
    used = updater.losses_used
    lines: list[Line] = [(updater.type, loss, updater.VIEWS[loss]) for loss in used]
    view = lines[0][2]
    sampled = f"{generate.n} answers to {generate.problems.per_round} problems a round"
    told = [
        ("recipe", f"{config.recipe}, {sampled}, policy refreshed {refreshed(config.timing)}"),
        ("data", f"{view.data}; mix.history {config.mix.history}"),
        ("reward", f"{reward_said(config)}; {view.reward}"),
        ("loss", weighed(getattr(updater, "weights", None) or [1.0] * len(used), used)),
        *(
            (symbol, f"{getattr(updater, field):g}")
            for symbol, field in NUMBERS.items()
            if symbol in _texts(lines) and hasattr(updater, field)
        ),
    ]
    said = "\n".join(f"  {key:<7} {value}" for key, value in told)
    return f"{name}\n{said}\n\n{_coefficients(lines)}"


def _sources(lines: Sequence[Line]) -> str:
    """Data source and reward, once for the losses of an updater that share them."""
    shared: dict[tuple[str, str, str], list[str]] = {}
    for updater, loss, view in lines:
        shared.setdefault((updater, view.data, view.reward), []).append(loss)
    cells = [
        [updater, "all" if len(losses) > 1 else losses[0], data, reward]
        for (updater, data, reward), losses in shared.items()
    ]
    return text_table(("updater", "loss", "data source", "reward"), cells)


def _coefficients(lines: Sequence[Line]) -> str:
    """Coefficient and level of each loss and role, and what the letters stand for."""
    cells = [
        [updater, loss, view.level, role, text]
        for updater, loss, view in lines
        for role, text in (view.coefficients or {"–": "the command's own"}).items()
    ]
    head = ("updater", "loss", "level", "role", "coefficient of ∇ log π")
    used = set(re.findall(r"[^\W\d]\w*", _texts(lines)))
    said = [f"{names}: {what}" for names, what in SYMBOLS.items() if used & {*names.split(", ")}]
    return "\n".join([text_table(head, cells), *([""] if said else []), *said])


def _texts(lines: Sequence[Line]) -> str:
    return " ".join(text for *_, view in lines for text in view.coefficients.values())
