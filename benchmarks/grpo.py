# SPDX-License-Identifier: Apache-2.0
"""Figures of policy gradients: tiny policy on addition, arms at about equal generated tokens.

    python -m benchmarks.grpo [learning arms throughput]

`learning` runs `configs/grpo.yaml`; `arms` adds GRPO, dynamic sampling and none, RLOO,
rejection sampling and the control arms, which reward something else, in the same store;
`throughput` sets the updater beside TRL's own trainer on the same rollouts. Results go to
`benchmarks/results/grpo.json`.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from benchmarks.figures import Figure, show_and_write
from benchmarks.rollouts import grpo_ratio
from configs.load import load
from report.pages import paired
from report.text import text_table
from store.db import Store
from store.transaction import read

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "configs" / "grpo.yaml"
ROUNDS, MINUTES = load(CONFIG).rounds, 10
MAIN = "dapo"
SFT = "{type: sft, learning_rate: 3.0e-4, batch_size: 64, warmup_steps: 0}"
ARMS: dict[str, list[str]] = {
    MAIN: [],
    "dapo, dynamic": ["generate.problems.per_round=100", "mix.groups.wanted=100",
                      "mix.groups.tries=3"],
    "dapo, none": ["mix.groups.equal=keep"],
    "grpo": ["mix.groups.equal=keep", "update.updater.loss=grpo",
             "update.updater.epsilon_high=0.2"],
    "rloo": ["mix.groups={baseline: leave_one_out, scale: none, equal: keep}",
             "update.updater.loss=dr_grpo", "update.updater.length=48"],
    "rejection": ["recipe=rejection", f"update.updater={SFT}", "mix.groups={}"],
}  # fmt: skip
CONTROLS = {
    reward: ["mix.groups.equal=keep", f"reward.type={reward}"]
    for reward in ("random", "incorrect", "format_only")
}


def main() -> None:
    """Run the parts named, print and write their figures."""
    with tempfile.TemporaryDirectory(prefix="grpo-") as folder:
        store = Store(Path(folder) / "runs" / "store.duckdb")
        parts: dict[str, Callable[[], dict[str, Figure]]] = {
            "learning": lambda: learning(store),
            "arms": lambda: arms(store),
            "throughput": lambda: grpo_ratio(base_of(store)),
        }
        figures: dict[str, Figure] = {}
        for name in sys.argv[1:] or parts:
            figures |= parts[name]()
            show_and_write("grpo", figures)


def run(store: Store, arm: str) -> float:
    """Run an arm to its last round; seconds."""
    starloop = Path(sys.executable).parent / "starloop"
    begun = time.monotonic()
    subprocess.run(
        [
            str(starloop), "run", str(CONFIG), "--name", arm.replace(", ", "-"),
            "--store", str(store.path), *(ARMS | CONTROLS)[arm],
        ],
        check=True,
    )  # fmt: skip
    return time.monotonic() - begun


def learning(store: Store) -> dict[str, Figure]:
    """The rise from base to the last round, and its time."""
    run(store, MAIN)
    with store.reader() as connection:
        (loop,) = read(connection, "loop_time", run=MAIN)
    minutes = loop["loop_s"] / 60
    outside = 1 - loop["work_s"] / loop["loop_s"]
    value, rise = risen(store, MAIN)
    holds = rise is not None and rise[0] >= 0.10 and rise[1] > 0
    return {
        "rise of pass@1": Figure(value, "pass@1", "≥ +0.10, interval above 0", holds, "base"),
        "loop": Figure(f"{minutes:.1f}", "min", f"≤ {MINUTES}", minutes <= MINUTES),
        "outside sampling, verifying, training": Figure(f"{outside:.1%}", "of the loop"),
    }


def risen(store: Store, arm: str) -> tuple[str, tuple[float, float, float, int] | None]:
    """The paired difference of the last round and the base, as text and as numbers."""
    found = paired(store, (arm, 0), (arm, ROUNDS))
    if found is None:
        return "nothing measured", None
    return f"{found[0]:+.3f} ({found[1]:+.3f} – {found[2]:+.3f})", found


def arms(store: Store) -> dict[str, Figure]:
    """Every arm from the same base; prints their table."""
    seconds = {arm: run(store, arm) for arm in [*ARMS, *CONTROLS]}
    head = ["arm", "pass@1", "rise, paired", "pass@8", "effective", "groups", "kept", "tokens",
            "rise per M tokens", "time"]  # fmt: skip
    rows: list[list[str]] = []
    figures: dict[str, Figure] = {}
    for arm, taken in seconds.items():
        name = arm.replace(", ", "-")
        with store.reader() as connection:
            last = read(connection, "round_table", run=name)[-1]
            (said,) = read(connection, "answers_of_run", run=name)
            seen = read(connection, "monitor_history", run=name, round=ROUNDS, refresh=10**6)
        text, rise = risen(store, name)
        per_token = rise[0] / (said["tokens"] / 1e6) if rise else 0.0

        def mean(reading: str, seen: list[dict[str, object]] = seen) -> float | None:
            found = [float(str(row["value"])) for row in seen if row["name"] == reading]
            return fmean(found) if found else None

        effective, groups, kept = (mean(n) for n in ("effective", "groups", "groups_kept"))
        rows.append(
            [
                arm,
                f"{last['pass_at_1']:.3f}",
                text,
                f"{last['pass_at_k']:.3f}",
                "–" if effective is None else f"{effective:.2f}",
                "–" if groups is None else f"{groups:.0f}",
                "–" if kept is None else f"{kept:.0f}",
                f"{said['tokens']:,}",
                f"{per_token:+.3f}",
                f"{taken:.0f} s",
            ]
        )
        figures[f"{arm}: rise per million tokens"] = Figure(f"{per_token:+.3f}", "pass@1")
        if arm in CONTROLS:
            low = rise is not None and rise[1] <= 0
            figures[f"{arm}: rise of a control"] = Figure(text, "pass@1", "low end ≤ 0", low)
    print(text_table(head, rows), end="\n\n")
    return figures


def base_of(store: Store) -> Path:
    """The base's folder, trained now where no run has done so."""
    return load(CONFIG).policy.build().prepare(store.folder / "models", lambda done, total: None)


if __name__ == "__main__":
    main()
