# SPDX-License-Identifier: Apache-2.0
"""Figures of the report: seconds, memory and bytes at ten rounds of 100,000 trajectories each.

    python -m benchmarks.report             1 M trajectories (minutes, 2 GB of disk)
    python -m benchmarks.report --scale 0.1 a tenth of them: shows the shape
    python -m benchmarks.report --folder F  keep the made history in F and use the one there

Where Chromium and its driver are installed, the page is opened too, until all is drawn. Beside it:
what reading the same trajectories from JSONL with pandas takes, before a figure is drawn.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from benchmarks.figures import Figure, show_and_write
from benchmarks.history import write_history
from configs.files import FOLDER
from configs.load import load
from store.db import Store

ROUNDS = 10
READ = "import sys, pandas; pandas.read_json(sys.argv[1], lines=True)"


def main() -> None:
    """Take every figure, print the table, write the figures."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--folder", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-report-") as temporary:
        kept = chosen.folder or Path(temporary)
        kept.mkdir(parents=True, exist_ok=True)
        store = history(kept / "report.duckdb", int(100_000 * chosen.scale))
        show_and_write("report", figures(store, Path(temporary)))


def history(path: Path, size: int) -> Path:
    """A store of one run of ten rounds of `size` trajectories, made now unless it is there."""
    if not path.exists():
        draft = path.with_suffix(".tmp")
        config = load(FOLDER / "star.yaml").model_dump_json(by_alias=True)
        write_history(draft, 1, ROUNDS, size, words=26, tokens=34, config=config)
        draft.rename(path)
    Store(path).snapshot()
    return path


def figures(store: Path, folder: Path) -> dict[str, Figure]:
    """The report written by the command, as people run it, and opened."""
    page, rows = folder / "report.html", folder / "rows.jsonl"
    command = [str(Path(sys.executable).with_name("starloop")), "report", "--store", str(store)]
    seconds, memory = took([*command, "--out", str(page)])
    write_jsonl(store, rows)
    reading, their_memory = took([sys.executable, "-c", READ, str(rows)])
    size = page.stat().st_size / 1e6
    found = {
        "report of the run": Figure(
            round(seconds, 1), "s", "≤ 20 s", seconds <= 20,
            f"pandas {reading:.1f} s to read the rows",
        ),
        "peak memory": Figure(
            round(memory, 2), "GB", "≤ 2 GB", memory <= 2, f"pandas {their_memory:.2f} GB"
        ),
        "size of the page": Figure(round(size, 2), "MB", "≤ 5 MB", size <= 5),
    }  # fmt: skip
    opening = opened(page)
    if opening is not None:
        found["opens, all drawn"] = Figure(round(opening, 2), "s", "≤ 2 s", opening <= 2)
    return found


def took(command: list[str]) -> tuple[float, float]:
    """Seconds and peak memory (GB) of a command that must end well."""
    begun = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, bytes
    return time.monotonic() - begun, usage.ru_maxrss * unit / 1e9


def write_jsonl(store: Path, file: Path) -> None:
    """The run's trajectories with their fate, a line each."""
    with duckdb.connect(str(store), read_only=True) as connection:
        connection.execute(f"copy (from trajectory_fate) to '{file}' (format json)")


def opened(page: Path) -> float | None:
    """Seconds until every chart of the page is drawn; None without a Chromium to drive."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        return None
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    chromium = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        begun = time.monotonic()
        chromium.get(page.as_uri())
        while chromium.execute_script("return document.documentElement.dataset.drawn") != "yes":
            time.sleep(0.01)
        return time.monotonic() - begun
    finally:
        chromium.quit()


if __name__ == "__main__":
    main()
