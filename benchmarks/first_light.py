# SPDX-License-Identifier: Apache-2.0
"""Figures of the first recipe: STaR on addition, and two arms that differ in one key each.

    python -m benchmarks.first_light             clone, set up, run, compare, print, write
    python -m benchmarks.first_light --installed the same with this environment, no clone
    python -m benchmarks.first_light --seeds 0 1 2 --installed    a table over seeds

Everything happens in a temporary folder. Results go to `benchmarks/results/first_light.json`.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, show_and_write
from report.pages import as_text, hint_sections, paired
from report.rounds import round_lines
from report.text import text_table
from store.db import Store
from store.transaction import read

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5
ARMS = {
    "star": [],
    "no-rationalization": ["rationalize.enabled=false"],
    "constant-steps": ["update.steps.growth=1.0"],
}


def main() -> None:
    """Run the arms, print the figures, write them."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--installed", action="store_true", help="use this environment")
    options.add_argument("--seeds", type=int, nargs="+", default=[0])
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="first-light-") as folder:
        place = Path(folder)
        figures: dict[str, Figure] = {}
        starloop = Path(sys.executable).parent / "starloop"
        if not chosen.installed:
            starloop = clone_and_set_up(place, figures)
        figures["help"] = help_time(starloop)
        for seed in chosen.seeds:
            store = Store(place / f"seed{seed}" / "runs" / "store.duckdb")
            seconds = run_arms(starloop, store, seed)
            label = "" if len(chosen.seeds) == 1 else f" (seed {seed})"
            found = learning(store, seed) | times(store, seconds, figures)
            figures |= {name + label: figure for name, figure in found.items()}
            print(arm_table(store), end="\n\n")
            print(as_text(hint_sections(store, "star")), end="\n\n")
    show_and_write("first_light", figures)


def clone_and_set_up(place: Path, figures: dict[str, Figure]) -> Path:
    """A clean clone with its own environment, an empty home and no cache; its `starloop`."""
    begun = time.monotonic()
    clone = place / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    (place / "home").mkdir()
    subprocess.run(["make", "setup"], cwd=clone, env=environment(place), check=True)
    seconds = time.monotonic() - begun
    size = subprocess.run(
        ["du", "-sm", str(clone / ".venv")], capture_output=True, text=True, check=True
    )
    figures["set-up"] = Figure(round(seconds), "s")
    figures["installed size"] = Figure(int(size.stdout.split()[0]), "MiB")
    return clone / ".venv" / "bin" / "starloop"


def environment(place: Path) -> dict[str, str]:
    """The environment of a new user: nothing but a path, the proxy settings of pip, a home."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG") or k.startswith("PIP_")}
    return {**kept, "HOME": str(place / "home")}


def help_time(starloop: Path) -> Figure:
    """Seconds of `starloop --help`: the median of five."""
    taken = []
    for _ in range(5):
        begun = time.monotonic()
        subprocess.run([starloop, "--help"], capture_output=True, check=True)
        taken.append(time.monotonic() - begun)
    median = sorted(taken)[2]
    return Figure(round(median, 2), "s", "< 0.5", median < 0.5)


def run_arms(starloop: Path, store: Store, seed: int) -> dict[str, float]:
    """Run every arm in one store; seconds of each, base training and set-up included."""
    seconds = {}
    for arm, changes in ARMS.items():
        begun = time.monotonic()
        subprocess.run(
            [
                starloop, "run", str(ROOT / "configs" / "star.yaml"), "--name", arm,
                "--rounds", str(ROUNDS), "--store", str(store.path),
                f"seed={seed}", f"policy.seed={seed}", *changes,
            ],
            check=True,
        )  # fmt: skip
        seconds[arm] = time.monotonic() - begun
    return seconds


def learning(store: Store, seed: int) -> dict[str, Figure]:
    """The rise from base to the last round, and what each arm's change costs."""
    figures = {}
    found = paired(store, ("star", 0), ("star", ROUNDS))
    if found is not None:
        value, low, high, _ = found
        figures["rise of pass@1"] = Figure(
            f"{value:+.3f} ({low:+.3f} – {high:+.3f})",
            "pass@1",
            "≥ +0.20, interval above 0",
            value >= 0.20 and low > 0,
            "base",
            (seed,),
        )
    for arm in list(ARMS)[1:]:
        found = paired(store, (arm, ROUNDS), ("star", ROUNDS))
        if found is not None:
            value, low, high, _ = found
            figures[f"star minus {arm}, round {ROUNDS}"] = Figure(
                f"{value:+.3f} ({low:+.3f} – {high:+.3f})", "pass@1", against=arm, seeds=(seed,)
            )
    return figures


def times(store: Store, seconds: dict[str, float], figures: dict[str, Figure]) -> dict[str, Figure]:
    """Wall-clock of the loop, and the share outside sampling, verifying and training."""
    with store.reader() as connection:
        (loop,) = read(connection, "loop_time", run="star")
    outside = 1 - loop["work_s"] / loop["loop_s"]
    result = {
        "rounds 0–5": Figure(round(loop["loop_s"]), "s", "≤ 420", loop["loop_s"] <= 420),
        "outside sampling, verifying, training": Figure(
            f"{outside:.1%}", "of the loop", "≤ 15 %", outside <= 0.15
        ),
        "base training and start": Figure(round(seconds["star"] - loop["loop_s"]), "s"),
    }
    if "set-up" in figures:
        total = float(figures["set-up"].value) + seconds["star"]
        result["clean clone to the fifth table"] = Figure(round(total), "s", "≤ 720", total <= 720)
    return result


def arm_table(store: Store) -> str:
    """Pass@1 by arm and round, overall and by length, with what was kept."""
    head = ["arm", "round", "pass@1", "d1", "d2", "d3", "d4", "d5", "kept", "rationalized"]
    rows: list[list[str]] = []
    for arm in ARMS:
        for line in round_lines(store, arm):
            s: Any = line.summary
            lengths = [f"{line.slices[f'difficulty={d}']:.2f}" for d in range(1, 6)]
            kept = [str(s["kept"]), str(s["rationalized"])]
            rows.append([arm, str(s["round"]), f"{s['pass_at_1']:.3f}", *lengths, *kept])
    return text_table(head, rows)


if __name__ == "__main__":
    main()
