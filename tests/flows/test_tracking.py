# SPDX-License-Identifier: Apache-2.0
"""A run in a tracker: what the store has arrives there once, and no tracker stops a run."""

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from running import TRY, ask, starloop

from configs.load import load
from flows import tracking
from flows.screen import Screen
from flows.tracking import Tracking
from stages import ids
from stages.trackers import Tracked
from store.db import Store

REFRESH = "refresh/length"


class Kept:
    """A tracker that keeps what it is sent."""

    def __init__(self) -> None:
        self.begun: list[Tracked] = []
        self.sent: list[tuple[int, dict[str, float]]] = []
        self.alarms: list[tuple[int, str]] = []
        self.fails_at: int | None = None

    def begin(self, name: str, tracked: Tracked) -> "Kept":
        self.begun.append(tracked)
        return self

    def log(self, step: int, values: Mapping[str, float]) -> None:
        if self.fails_at == step:
            raise ConnectionError("gone")
        self.sent.append((step, dict(values)))

    def alarm(self, step: int, text: str) -> None:
        self.alarms.append((step, text))

    def close(self) -> None:
        pass


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    found = Kept()
    monkeypatch.setattr(tracking, "begin", found.begin)
    return found


def tracked(store: Path, *more: str, name: str = "try") -> tuple[Tracking, StringIO]:
    config, screen = load(TRY, ["tracking=tensorboard", *more]), StringIO()
    said = Screen(Console(width=400, file=screen))
    return Tracking(name, ids.run_id(name), config, Store(store), said), screen


def test_each_refresh_and_round_is_sent_once_with_what_the_store_has(
    copied: Path, kept: Kept
) -> None:
    for _ in range(2):
        one, screen = tracked(copied)
        one.catch_up(rounds=True)
        one.close()
    assert screen.getvalue() == ""
    assert len(kept.begun) == 1  # the second has nothing to say
    seen = Counter((step, name) for step, values in kept.sent for name in values)
    assert set(seen.values()) == {1}
    assert [step for step, _ in kept.sent] == [0, 1, 1, 2, 2]
    summaries = [values for _, values in kept.sent if "round" in values]
    rows = ask(copied, "select round, pass_at_1, low, tokens from round_summary order by round")
    names = ("round", "round/pass_at_1", "round/low", "round/tokens")
    assert [tuple(values[name] for name in names) for values in summaries] == rows
    lengths = ask(copied, "select value from round_monitors where name = 'length' and "
                          "slice = 'all' and round > 0 order by round")  # fmt: skip
    assert [(values[REFRESH],) for _, values in kept.sent if REFRESH in values] == lengths


def test_the_config_is_sent_once_and_without_addresses(copied: Path, kept: Kept) -> None:
    one, _ = tracked(copied, "notify={webhook: 'https://example.org/secret'}")
    one.catch_up(rounds=True)
    (begun,) = kept.begun
    assert begun.config["recipe"] == "star"
    assert "secret" not in json.dumps(begun.config)
    assert begun.id.startswith(str(ids.run_id("try")))
    assert begun.name == "try"


def test_a_refresh_that_is_not_watched_yet_waits(copied: Path, kept: Kept) -> None:
    import duckdb

    with duckdb.connect(str(copied)) as connection:
        connection.execute("delete from step_run where round = 2 and step in ('watch', 'evaluate')")
    one, _ = tracked(copied)
    one.catch_up(rounds=True)
    assert [step for step, _ in kept.sent] == [0, 1, 1]


def test_an_alarm_goes_out_with_its_refresh(copied: Path, kept: Kept) -> None:
    with Store(copied).transaction() as tx:
        tx.append(
            "add_event", run_id=ids.run_id("try"), round=2, refresh=0, kind="alarm",
            message="length is 12", detail="{}",
        )  # fmt: skip
    one, _ = tracked(copied)
    one.catch_up(rounds=True)
    assert kept.alarms == [(2, "length is 12")]


def test_a_tracker_that_fails_is_one_warning_and_what_follows_is_sent_later(
    copied: Path, kept: Kept
) -> None:
    kept.fails_at = 1
    one, screen = tracked(copied)
    for _ in range(3):
        one.catch_up(rounds=True)
    one.close()
    (warning,) = screen.getvalue().splitlines()
    assert "warning: tracking: tensorboard failed: ConnectionError: gone" in warning
    found = ask(copied, "select message from event where kind = 'tracking_failed'")
    assert found == [("tensorboard failed: ConnectionError: gone",)]
    assert [step for step, _ in kept.sent] == [0]
    kept.fails_at = None
    other, _ = tracked(copied)
    other.catch_up(rounds=True)
    # the point that failed was marked before it was sent: it is lost there, not sent twice
    assert [step for step, _ in kept.sent] == [0, 1, 2, 2]


def test_without_tracking_nothing_is_marked(copied: Path, kept: Kept) -> None:
    one, _ = tracked(copied, "tracking=null")
    one.catch_up(rounds=True)
    one.close()
    assert kept.begun == []
    assert ask(copied, "select count(*) from event where kind = 'tracked'") == [(0,)]


# ── the real ones, by real runs ─────────────────────────────────────────────────────────────


def run_twice(folder: Path, tracker: str, **environment: str) -> Path:
    """One round, then the same run to the second, each in a process of its own; its store."""
    store = folder / "runs" / "store.duckdb"
    for rounds in (1, 2):
        ended = starloop("run", TRY, "--rounds", rounds, "--store", store, f"tracking={tracker}",
                         **environment)  # fmt: skip
        assert (ended.code, ended.err) == (0, ""), ended.err
        assert "warning" not in ended.out
    return store


def summary(store: Path) -> list[tuple[int, float]]:
    return ask(store, "select round, pass_at_1 from round_summary order by round")  # type: ignore[return-value]


@pytest.mark.slow
def test_tensorboard_has_every_round_of_a_run_that_went_on(tmp_path: Path) -> None:
    store = run_twice(tmp_path, "tensorboard")
    script = (
        "import json, sys\n"
        "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
        "found = EventAccumulator(sys.argv[1]); found.Reload()\n"
        "print(json.dumps([[e.step, e.value] for e in found.Scalars('round/pass_at_1')]))\n"
        "print(json.dumps(found.Tags()['tensors']))"
    )
    folder = store.parent / "try" / "tensorboard"
    done = subprocess.run([sys.executable, "-c", script, str(folder)],
                          capture_output=True, text=True, check=True)  # fmt: skip
    points, texts = map(json.loads, done.stdout.splitlines()[-2:])
    assert [step for step, _ in points] == [0, 1, 2]
    assert [value for _, value in points] == pytest.approx([v for _, v in summary(store)], abs=1e-6)
    assert texts == ["config/text_summary"]


@pytest.mark.slow
def test_trackio_has_one_run_with_each_step_once(tmp_path: Path) -> None:
    place = tmp_path / "trackio"
    store = run_twice(tmp_path, "trackio", TRACKIO_DIR=str(place))
    with sqlite3.connect(place / "starloop.db") as connection:
        rows = connection.execute("select run_name, step, metrics from metrics").fetchall()
        configs = connection.execute("select config from configs").fetchall()
    connection.close()
    (name,) = {name for name, _, _ in rows}
    assert name.startswith(str(ids.run_id("try")))
    values: list[tuple[int, dict[str, Any]]] = [
        (step, json.loads(found)) for _, step, found in rows
    ]
    points = sorted((s, v["round/pass_at_1"]) for s, v in values if "round" in v)
    rounds, shares = zip(*summary(store), strict=True)
    assert [number for number, _ in points] == [*rounds]
    assert [value for _, value in points] == pytest.approx([*shares])
    assert sorted(step for step, found in values if REFRESH in found) == [1, 2]
    assert {json.loads(config)["recipe"] for (config,) in configs} == {"star"}


@pytest.mark.slow
def test_wandb_stays_offline_where_it_is_told_to(tmp_path: Path) -> None:
    home = {"WANDB_MODE": "offline", "HOME": str(tmp_path)}
    store = run_twice(tmp_path, "wandb", **home)
    files = sorted((store.parent / "try" / "wandb").glob("offline-run-*/run-*.wandb"))
    assert len(files) == 2  # a process each
    assert len({path.name for path in files}) == 1  # of one run
    told = [path.read_bytes().count(b"round/maj_at_k") for path in files]
    assert told[0] >= 2 and told[1] >= 1


@pytest.mark.slow
def test_wandb_without_a_key_is_a_warning_and_the_run_is_done(tmp_path: Path) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    kept_out = {"HOME": str(tmp_path), "NETRC": str(tmp_path / "none"), "WANDB_API_KEY": ""}
    ended = starloop("run", TRY, "--rounds", 1, "--store", store, "tracking=wandb", **kept_out)
    assert ended.code == 0, ended.err
    (line,) = [line for line in ended.out.splitlines() if "warning: tracking" in line]
    assert "wandb has no key" in line
    assert ask(store, "select count(*) from round_summary") == [(2,)]
