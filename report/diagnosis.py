# SPDX-License-Identifier: Apache-2.0
"""Why DPO may not improve: what the store has on data, hyper-parameters, reference, capacity."""

from collections.abc import Mapping, Sequence
from typing import Any

from store.db import Store
from store.transaction import read

TITLE = "Why DPO may not improve"
HEAD = ("where", "what", "found", "what to try")
LAST = 2**31 - 1
EVERYTHING: dict[str, Any] = {"round": LAST, "refresh": LAST}

RESET = "more rounds between them give each reference time: update.resets"

Rows = list[list[str]]


def diagnosis(
    store: Store, run: str, config: Any, gain: Sequence[float]
) -> tuple[str, Sequence[str], Rows]:
    """Text, head and rows; `gain` is last against first: difference, low, high, questions."""
    with store.reader() as connection:
        pairs = read(connection, "pairs_by_round", run=run)
        history = read(connection, "monitor_history", run=run, **EVERYTHING)
        ends = read(connection, "training_ends", run=run, **EVERYTHING)
        timing = read(connection, "timing_of", run=run)
        trained = read(connection, "last_trained", run=run)
        resets = [str(row["round"]) for row in read(connection, "resets", run=run, round=LAST)]
    monitors: dict[str, list[float]] = {}
    for row in history:
        if row["slice"] == "all":
            monitors.setdefault(row["name"], []).append(row["value"])
    curves = {row["name"]: (row["began"], row["ended"]) for row in ends}  # of the last update
    value, low, high = gain[:3]
    text = (
        f"Held-out pass@1 of the last round against the first: {value:+.3f} ({low:+.3f} – "
        f"{high:+.3f}, paired): no improvement is shown. What the store knows of the causes:"
    )
    rows = [
        *_data(pairs, monitors),
        *_hyper_parameters(config, timing),
        *_reference(config, monitors, resets),
        *_capacity(config, trained, curves),
    ]
    return text, HEAD, rows


def _data(pairs: Sequence[Mapping[str, Any]], monitors: Mapping[str, Sequence[float]]) -> Rows:
    mixed = monitors.get("mixed", ())
    count = sum(row["pairs"] for row in pairs)

    def mean(name: str) -> float | None:
        known = [row for row in pairs if row[name] is not None]
        weight = sum(row["pairs"] for row in known)
        return sum(row[name] * row["pairs"] for row in known) / weight if weight else None

    chosen, rejected = mean("chosen"), mean("rejected")
    gap = None if chosen is None or rejected is None else chosen - rejected
    return [
        [
            "data",
            "problems with right and wrong answers",
            f"{mixed[0]:.0%} at first, {mixed[-1]:.0%} at last" if mixed else "–",
            "few give few pairs: problems it solves sometimes (generate.problems.band), a larger "
            "generate.n, a higher temperature",
        ],
        [
            "data",
            "pairs a round",
            ", ".join(str(row["pairs"]) for row in pairs) or "–",
            f"{count} in all: more problems a round, or mix.pairs.rule: all_capped(m)",
        ],
        [
            "data",
            "chosen longer than rejected, tokens",
            _number(gap, "+.1f"),
            "far from 0 the loss teaches length: mix.pairs.max_length_gap",
        ],
        [
            "data",
            "updates since a pair's policy",
            _number(mean("age"), ".2f"),
            "old pairs are another policy's: mix.history: new_only, mix.max_policy_age, refresh "
            "more often",
        ],
    ]


def _hyper_parameters(config: Any, timing: Sequence[Mapping[str, Any]]) -> Rows:
    updater = config.update.updater
    steps = timing[0]["steps"] if timing else None
    s = timing[0]["s"] if timing else None
    refreshed = "never refreshed" if s is None else f"s = {s:g}"
    return [
        [
            "hyper-parameters",
            "β",
            _number(getattr(updater, "beta", None), "g"),
            "large holds the policy at the reference, small lets it drift",
        ],
        [
            "hyper-parameters",
            "learning rate",
            _number(getattr(updater, "learning_rate", None), "g"),
            "margins that stay at 0: raise it; chosen log-probabilities that fall: lower it",
        ],
        [
            "hyper-parameters",
            "optimizer steps",
            "–" if steps is None else f"{steps:,} ({refreshed})",
            "too few teach nothing; more between refreshes are further off policy",
        ],
        [
            "hyper-parameters",
            "loss",
            " + ".join(getattr(updater, "losses", (updater.type,))),
            "sigmoid alone may lower chosen answers too: losses: [sigmoid, sft] holds them up",
        ],
    ]


def _reference(config: Any, monitors: Mapping[str, Sequence[float]], resets: Sequence[str]) -> Rows:
    kl = monitors.get("kl_reference_k3", (None,))[-1]
    return [
        [
            "reference",
            "which",
            str(config.update.reference),
            "base holds for ever; round_start or synced(every r) moves along",
        ],
        [
            "reference",
            "KL to it at last, nats a token",
            _number(kl, ".4f"),
            "near 0 nothing moved; large, the policy left what the reference knows",
        ],
        *([["reference", "rounds that reset it", ", ".join(resets), RESET]] if resets else []),
    ]


def _capacity(
    config: Any, trained: Sequence[Mapping[str, Any]], curves: Mapping[str, tuple[float, float]]
) -> Rows:
    model = trained[0] if trained else {"parameters": None, "adapter": False}
    lora = getattr(config.update.updater, "lora", None)
    adapter = model["adapter"] or lora is not None
    kind = "an adapter (LoRA)" if adapter else "all weights trained"
    count = model["parameters"]
    return [
        [
            "capacity",
            "parameters",
            f"{'–' if count is None else format(count, ',')}, {kind}",
            "a small model may have no more to give: compare pass@k with pass@1",
        ],
        [
            "capacity",
            "train loss of the last update",
            _moved(curves.get("loss")),
            "at its start value (ln 2 for sigmoid) the pairs are not learned",
        ],
        [
            "capacity",
            "margins of the last update",
            _moved(curves.get("rewards/margins")),
            "growing margins without a gain: the pairs teach something else than right answers",
        ],
        [
            "capacity",
            "chosen log-probability of the last update",
            _moved(curves.get("logps/chosen")),
            "falling: right answers grow less likely too; add sft to the losses, or lower the "
            "learning rate",
        ],
    ]


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _moved(ends: tuple[float, float] | None) -> str:
    return "–" if ends is None else f"{ends[0]:.4g} → {ends[1]:.4g}"
