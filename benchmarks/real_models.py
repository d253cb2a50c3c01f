# SPDX-License-Identifier: Apache-2.0
"""Figures of real models: STaR with 135 M parameters, samplers, training, decontamination.

    python -m benchmarks.real_models [learning vllm transformers sft contamination]

Needs `make smollm2`, and `make vllm` for the figure of vLLM. Each part runs alone; all run by
default. Results go to `benchmarks/results/real_models.json`.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import contamination, sampling, training
from benchmarks.figures import Figure, show_and_write
from stages.measures import paired_difference
from store.db import Store
from store.transaction import read

ROOT = Path(__file__).resolve().parents[1]
MODEL = ROOT / "models" / "smollm2-135m-instruct"
ROUNDS, MINUTES = 2, 30


def main() -> None:
    """Run the parts named, print and write their figures."""
    parts: dict[str, Callable[[], dict[str, Figure]]] = {
        "learning": learning,
        "vllm": lambda: sampling.vllm_ratio(MODEL),
        "transformers": lambda: sampling.transformers_ratio(MODEL),
        "sft": lambda: training.sft_ratio(MODEL),
        "contamination": contamination.measure,
    }
    figures: dict[str, Figure] = {}
    for name in sys.argv[1:] or parts:
        figures |= parts[name]()
        show_and_write("real_models", figures)


def learning() -> dict[str, Figure]:
    """`make star-smollm2 ITER=2` in a store of its own: minutes, and pass@1 on chain_sum."""
    with tempfile.TemporaryDirectory(prefix="real-models-") as folder:
        store = Store(Path(folder) / "runs" / "store.duckdb")
        starloop = Path(sys.executable).parent / "starloop"
        command = [str(starloop), "run", "configs/star-smollm2.yaml", "--rounds", str(ROUNDS)]
        begun = time.monotonic()
        subprocess.run([*command, "--store", str(store.path)], cwd=ROOT, check=True)
        minutes = (time.monotonic() - begun) / 60
        return {
            "STaR, two rounds": Figure(
                f"{minutes:.1f}", "min", f"≤ {MINUTES} min", minutes <= MINUTES
            ),
            **climbed(store, "star-smollm2"),
        }


def climbed(store: Store, run: str) -> dict[str, Figure]:
    """Held-out pass@1 on chain_sum of base and last round, and the paired difference."""
    with store.reader() as connection:
        rows = read(connection, "outcomes_of_domain", run=run, domain="chain_sum")
    rates = [
        {row["problem_id"]: row["correct"] / row["n"] for row in rows if row["round"] == number}
        for number in (0, ROUNDS)
    ]
    found = paired_difference([rates[0]], [rates[1]])
    if found is None:
        return {"pass@1 on chain_sum": Figure("nothing measured", "", "× 3", False)}
    before, after = (sum(side.values()) / len(side) for side in rates)
    return {
        "pass@1 on chain_sum": Figure(
            f"{before:.3f} → {after:.3f}", f"× {after / before:.1f}", "× 3", after >= 3 * before
        ),
        "paired difference": Figure(
            f"{found.value:+.3f}", f"({found.low:+.3f} to {found.high:+.3f}), {found.n} problems",
            "excludes 0", found.low > 0,
        ),
    }  # fmt: skip


if __name__ == "__main__":
    main()
