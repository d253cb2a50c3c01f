# SPDX-License-Identifier: Apache-2.0
"""Figures of iterative DPO: tiny policy on addition, arms at equal generated tokens.

    python -m benchmarks.dpo [learning arms throughput]

`learning` runs `configs/dpo.yaml`; `arms` adds rejection sampling, offline, slower semi-online and
online DPO in the same store; `throughput` sets the updater beside a bare TRL script. Results go to
`benchmarks/results/dpo.json`.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import Figure, show_and_write
from benchmarks.training import dpo_ratio
from report.pages import paired
from report.text import text_table
from store.db import Store
from store.transaction import read

ROOT = Path(__file__).resolve().parents[1]
ROUNDS, MINUTES = 4, 10
MAIN = "semi-online"
SFT = "{type: sft, learning_rate: 3.0e-4, batch_size: 32, warmup_steps: 0}"
ARMS: dict[str, list[str]] = {
    "rejection": ["recipe=rejection", f"update.updater={SFT}", "update.reference=null",
                  "timing.policy_refresh=every_round"],
    "offline": ["timing.policy_refresh=never"],
    "semi-online-slow": ["timing.policy_refresh=every_round"],
    MAIN: [],
    "online": ["timing.policy_refresh=every(1)"],
}  # fmt: skip


def main() -> None:
    """Run the parts named, print and write their figures."""
    with tempfile.TemporaryDirectory(prefix="dpo-") as folder:
        store = Store(Path(folder) / "runs" / "store.duckdb")
        parts: dict[str, Callable[[], dict[str, Figure]]] = {
            "learning": lambda: learning(store),
            "arms": lambda: arms(store),
            "throughput": lambda: dpo_ratio(base_of(store)),
        }
        figures: dict[str, Figure] = {}
        for name in sys.argv[1:] or parts:
            figures |= parts[name]()
            show_and_write("dpo", figures)


def run(store: Store, arm: str) -> float:
    """Run an arm to its last round; seconds."""
    starloop = Path(sys.executable).parent / "starloop"
    begun = time.monotonic()
    subprocess.run(
        [
            str(starloop), "run", str(ROOT / "configs" / "dpo.yaml"), "--name", arm,
            "--rounds", str(ROUNDS), "--store", str(store.path), *ARMS[arm],
        ],
        check=True,
    )  # fmt: skip
    return time.monotonic() - begun


def learning(store: Store) -> dict[str, Figure]:
    """The rise from base to the last round, its time, and the time outside the work."""
    run(store, MAIN)
    with store.reader() as connection:
        (loop,) = read(connection, "loop_time", run=MAIN)
    found = paired(store, (MAIN, 0), (MAIN, ROUNDS))
    minutes = loop["loop_s"] / 60
    rise = (
        Figure("nothing measured", "", "≥ +0.10", False)
        if found is None
        else Figure(
            f"{found[0]:+.3f} ({found[1]:+.3f} – {found[2]:+.3f})",
            "pass@1",
            "≥ +0.10, interval above 0",
            found[0] >= 0.10 and found[1] > 0,
            "base",
        )
    )
    return {
        "rise of pass@1": rise,
        "loop": Figure(f"{minutes:.1f}", "min", f"≤ {MINUTES}", minutes <= MINUTES),
        **overhead(store, MAIN, bar=True),
    }


def overhead(store: Store, arm: str, bar: bool) -> dict[str, Figure]:
    """Share of the loop, and seconds a refresh, beside sampling, verifying and training."""
    with store.reader() as connection:
        (loop,) = read(connection, "loop_time", run=arm)
        (refresh,) = read(connection, "refresh_time", run=arm)
    outside = 1 - loop["work_s"] / loop["loop_s"]
    a_refresh = refresh["beside_s"]
    return {
        f"{arm}: outside sampling, verifying, training": Figure(
            f"{outside:.1%}", "of the loop", "≤ 15 %" if bar else None,
            outside <= 0.15 if bar else None,
        ),
        f"{arm}: a refresh costs": Figure(
            f"{a_refresh:.2f}", "s", "≤ 1", a_refresh <= 1.0
        ),
    }  # fmt: skip


def arms(store: Store) -> dict[str, Figure]:
    """Every arm at the same generated tokens; prints their table."""
    seconds = {arm: run(store, arm) for arm in ARMS}
    head = ["arm", "s", "pass@1", "95 %", "pass@8", "maj@8", "entropy", "length", "tokens", "time"]
    rows: list[list[str]] = []
    figures: dict[str, Figure] = {}
    for arm, taken in seconds.items():
        with store.reader() as connection:
            last = read(connection, "round_table", run=arm)[-1]
            (timing,) = read(connection, "run_timing", run=arm)
            (said,) = read(connection, "answers_of_run", run=arm)
        reached = "offline" if timing["s"] is None else f"{timing['s']:.1f}"
        rows.append(
            [
                arm,
                reached,
                f"{last['pass_at_1']:.3f}",
                f"{last['low']:.3f}–{last['high']:.3f}",
                f"{last['pass_at_k']:.3f}",
                f"{last['maj_at_k']:.3f}",
                f"{said['entropy']:.3f}",
                f"{said['length']:.1f}",
                f"{said['tokens']:,}",
                f"{taken:.0f} s",
            ]
        )
        figures |= overhead(store, arm, bar=False)
    print(text_table(head, rows), end="\n\n")
    return figures


def base_of(store: Store) -> Path:
    """The base's folder, trained now where no run has done so."""
    from configs.load import load

    policy = load(ROOT / "configs" / "dpo.yaml").policy.build()
    return policy.prepare(store.folder / "models", lambda done, total: None)


if __name__ == "__main__":
    main()
