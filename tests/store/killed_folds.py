# SPDX-License-Identifier: Apache-2.0
"""Stores in children that are killed: a program, so that a child is a fork and not a start.

killed_folds.py steps STORE      a fold is killed before each of its file operations in turn, and
                                 what finishes it as well; a line of JSON for each
killed_folds.py together STORE   some processes find a fold that was cut short at once
killed_folds.py anywhere STORE   commits and snapshots without end, killed at random moments
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from store.db import Store

KILLS, TOGETHER, TIMES = 25, 4, 3
OPERATIONS = {"open", "os.rename", "os.remove", "os.link"}


def add(store: Store, message: str) -> None:
    with store.transaction() as tx:
        tx.append(
            "add_event",
            run_id=None, round=None, refresh=None, kind="x", message=message, detail=None,
        )  # fmt: skip


def forked(work: Callable[[], None]) -> int:
    """The process id of a child that does it."""
    pid = os.fork()
    if not pid:
        code = 70
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill_before(number: int, folder: Path) -> None:
    """From now on: this process is killed before its operation of that number on the folder."""
    seen = 0

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if event in OPERATIONS and str(arguments[0]).startswith(str(folder)):
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1

    sys.addaudithook(watch)


def found(path: Path) -> dict[str, object]:
    """What a child that opens the store then finds and says."""
    reading, writing = os.pipe()

    def look() -> None:
        said: list[str] = []
        with Store(path, said.append).transaction() as tx:
            (row,) = tx.ask("doctor_extent")
        names = sorted(one.name for one in path.parent.iterdir())
        os.write(writing, json.dumps({**row, "said": said, "names": names}).encode())

    code = ended(forked(look))
    os.close(writing)
    with os.fdopen(reading) as file:
        return {"code": code, **json.loads(file.read() or "{}")}


def cut(path: Path, pristine: Path, at: int) -> int:
    """A commit and a snapshot that is killed before its operation `at`; how the child ended."""
    shutil.rmtree(path.parent)
    shutil.copytree(pristine.parent, path.parent)

    def fold() -> None:
        add(Store(path), "one")
        kill_before(at, path.parent)
        Store(path).snapshot()

    return ended(forked(fold))


def finish(path: Path, at: int) -> int:
    """An opening that is killed before its operation `at`."""

    def begin() -> None:
        kill_before(at, path.parent)
        add(Store(path), "never")

    return ended(forked(begin))


def steps(path: Path, pristine: Path) -> None:
    at, tried = 0, False
    while cut(path, pristine, at):
        folded = path.with_name("store.folded.duckdb").exists()
        print(json.dumps({"at": at, "folded": folded, **found(path)}), flush=True)
        again = 0
        while folded and not tried:
            cut(path, pristine, at)
            if not finish(path, again):
                break
            print(json.dumps({"at": at, "again": again, **found(path)}), flush=True)
            again += 1
        at, tried = at + 1, tried or folded


def together(path: Path, pristine: Path) -> None:
    at = 0
    while cut(path, pristine, at) and not path.with_name("store.folded.duckdb").exists():
        at += 1
    for _ in range(TIMES):
        cut(path, pristine, at)
        children = [forked(lambda: add(Store(path), "more")) for _ in range(TOGETHER)]
        codes = [ended(pid) for pid in children]
        print(json.dumps({"codes": codes, **found(path)}), flush=True)


def anywhere(path: Path) -> None:
    rng, done = random.Random(7), 0

    def work(writing: int) -> None:
        store = Store(path)
        while True:
            add(store, "x" * rng.randrange(5000))
            os.write(writing, b".")
            store.snapshot()

    for _ in range(KILLS):
        reading, writing = os.pipe()
        pid = forked(lambda writing=writing: work(writing))  # type: ignore[misc]
        os.close(writing)
        os.read(reading, 1)  # it has begun
        time.sleep(rng.uniform(0, 0.15))
        os.kill(pid, signal.SIGKILL)
        ended(pid)
        with os.fdopen(reading, "rb") as file:
            done += 1 + len(file.read())
        there = found(path)
        print(json.dumps({"told": done, **there}), flush=True)
        done = int(str(there.get("events", done)))  # one that was not told may be there


if __name__ == "__main__":
    place = Path(sys.argv[2])
    kept = place.parent.with_name("pristine") / place.name
    shutil.copytree(place.parent, kept.parent)
    if sys.argv[1] == "anywhere":
        anywhere(place)
    else:
        {"steps": steps, "together": together}[sys.argv[1]](place, kept)
