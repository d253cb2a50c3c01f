# SPDX-License-Identifier: Apache-2.0
"""Events of a run: the file that has them, who follows it, and how they are shown."""

import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from running import ROOT

from flows import progress, screen, views
from flows.progress import FIELDS, Log, Tail, glance, made, parsed
from flows.screen import Screen
from flows.views import Live, Plain
from report.progress import (
    Standing,
    ended_line,
    fitting,
    line_of,
    place_of,
    resuming,
    table_lines,
)
from report.text import json_line
from stages.errors import HeldError, LoopError

HEAD = ["round", "pass@1", "95 %", "pass@4", "maj@4", "d1", "d2", "kept", "rationalized", "leaks",
        "tokens", "time"]  # fmt: skip


def recorded(folder: Path, lines: list[str] | None = None) -> Screen:
    """A screen of plain lines."""
    folder.mkdir(exist_ok=True)
    return Screen(view=Plain((lines if lines is not None else []).append), command="starloop run x")


def standing(*events: Any) -> Standing:
    at = Standing()
    for event in events:
        at.take(event)
    return at


def events_of(folder: Path) -> list[Any]:
    return parsed((folder / progress.FILE).read_bytes())


# ── the file ────────────────────────────────────────────────────────────────────────────────


def test_events_of_a_run_are_in_its_file_in_order_with_version_and_number(tmp_path: Path) -> None:
    with recorded(tmp_path) as told, told.recording(tmp_path, "one", "star", 3):
        told.in_round(1, 3)
        with told.stage("generate", total=10) as stage:
            stage.advance(10)
        told.alarm(1, 0, "warn", "length rises")
    found = events_of(tmp_path)
    kinds = ["begun", "round", "stage", "stage_done", "alarm", "ended"]
    assert [event["event"] for event in found] == kinds
    assert [event["n"] for event in found] == list(range(1, 7))
    assert {event["v"] for event in found} == {progress.VERSION}
    assert found[0]["pid"] == os.getpid() and found[0]["command"] == "starloop run x"
    assert (found[-1]["outcome"], found[-1]["code"]) == ("done", 0)


@pytest.mark.parametrize(
    ("error", "outcome", "code"),
    [(HeldError("x"), "held", 3), (KeyboardInterrupt(), "interrupted", 130),
     (ValueError("x"), "failed", 1), (LoopError("x"), "failed", 1)],
)  # fmt: skip
def test_the_last_event_says_how_the_run_ended(
    tmp_path: Path, error: BaseException, outcome: str, code: int
) -> None:
    told = recorded(tmp_path)
    with pytest.raises(type(error)), told, told.recording(tmp_path, "one", "star", 3):
        raise error
    *_, last = events_of(tmp_path)
    assert (last["event"], last["outcome"], last["code"]) == ("ended", outcome, code)
    assert [event["event"] for event in events_of(tmp_path)].count("ended") == 1


def test_a_torn_last_line_is_left_out_and_read_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / progress.FILE
    first, second = (json_line(made("said", n, {"text": "x" * n})) for n in (1, 2))
    path.write_text(f"{first}\n{second[:9]}")
    tail = Tail(path)
    assert [event["n"] for event in tail.read()] == [1]
    assert [event["n"] for event in glance(path)] == [1]
    path.write_text(f"{first}\n{second}\n")
    assert [event["n"] for event in tail.read()] == [2]
    assert tail.read() == []


@pytest.mark.parametrize(
    "line",
    [b"", b"\x00\x00", b"[]", b"7", b'{"v": 1}', b'{"v":2,"n":1,"at":"x","event":"said","text":""}',
     b'{"v":1,"n":1,"at":"x","event":"new"}', b'{"v":1,"n":1,"at":"x","event":"said"}', b"\xff"],
)  # fmt: skip
def test_lines_that_are_no_event_of_this_version_are_left_out(line: bytes) -> None:
    good = json_line(made("said", 1, {"text": "x"})).encode()
    assert [event["n"] for event in parsed(line + b"\n" + good + b"\n")] == [1]


def test_a_long_run_keeps_its_file_small_and_readers_see_each_event_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LIMIT", 16 * 1024)
    seen, tail = [], Tail(tmp_path / progress.FILE)
    told = recorded(tmp_path)
    with told.recording(tmp_path, "one", "star", 9):
        for number in range(1, 10):
            told.in_round(number, 9)
            told.row(number, {"round": str(number)}, {})
            for n in range(100):
                told.say(f"{number}: {n}")
                seen += tail.read()
    seen += tail.read()
    assert (tmp_path / progress.FILE).stat().st_size <= 16 * 1024 + 500
    assert [event["n"] for event in seen] == list(range(1, 1 + 9 * 102 + 2))
    late = standing(*Tail(tmp_path / progress.FILE).read())
    assert (late.run, late.round, late.rounds, sorted(late.rows)) == (
        "one",
        9,
        9,
        list(range(1, 10)),
    )
    assert late.ended is not None
    assert [path.name for path in tmp_path.iterdir()] == [progress.FILE]


def test_a_run_that_goes_on_begins_its_file_anew_and_a_reader_goes_on_too(tmp_path: Path) -> None:
    tail = Tail(tmp_path / progress.FILE)
    for rounds in (2, 3):
        with recorded(tmp_path).recording(tmp_path, "one", "star", rounds):
            pass
        assert [event["event"] for event in tail.read()] == ["begun", "ended"]
    assert [event["event"] for event in events_of(tmp_path)] == ["begun", "ended"]
    (tmp_path / progress.FILE).unlink()
    with recorded(tmp_path).recording(tmp_path, "one", "star", 4):
        pass
    assert [event["event"] for event in tail.read()] == ["begun", "ended"]


def test_a_glance_knows_where_a_run_stands_without_reading_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "EVERY_S", 0.0)
    with recorded(tmp_path) as told, told.recording(tmp_path, "one", "star", 3):
        told.in_round(2, 3)
        with told.stage("generate", total=2000) as stage:
            for _ in range(900):
                stage.advance(1)
            found = glance(tmp_path / progress.FILE)
    assert len(found) < 200
    at = standing(*found)
    assert (at.run, at.rounds, at.round, at.stage, at.done) == ("one", 3, 2, "generate", 900)


def test_a_file_that_cannot_be_written_is_a_warning_and_stops_no_run(tmp_path: Path) -> None:
    lines: list[str] = []
    told = recorded(tmp_path, lines)
    with told.recording(tmp_path, "one", "star", 3):
        told._log.close()  # type: ignore[union-attr]
        os.close(os.open(os.devnull, os.O_RDONLY))
        told._log._file = os.open(os.devnull, os.O_RDONLY)  # type: ignore[union-attr]
        told.say("on it goes")
    assert any(line.startswith("warning: progress.jsonl cannot be written") for line in lines)
    assert lines[-1] == "on it goes"


def test_a_run_without_a_folder_for_its_file_is_told_all_the_same(tmp_path: Path) -> None:
    lines: list[str] = []
    told = Screen(view=Plain(lines.append))
    with told.recording(tmp_path / "not" / "there", "one", "star", 3):
        told.say("on it goes")
    assert lines == ["on it goes"]


def test_every_event_and_field_is_documented() -> None:
    page = (ROOT / "docs" / "terminal.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.M))
    told = {kind: tuple(re.findall(r"`(\w+)`", rows[kind])) for kind in FIELDS if kind in rows}
    assert told == FIELDS
    assert f"`v` {progress.VERSION}" in page


# ── how it is shown ─────────────────────────────────────────────────────────────────────────


def test_a_stage_tells_rate_and_time_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "EVERY_S", 0.0)
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(screen.time, "monotonic", lambda: float(next(clock)))
    told = recorded(tmp_path)
    with told.recording(tmp_path, "one", "star", 3), told.stage("generate", total=100) as stage:
        stage.advance(20)
        stage.advance(20)
    found = [event for event in events_of(tmp_path) if event["event"] == "progress"][-1]
    assert (found["done"], found["total"]) == (40, 100)
    assert found["left_s"] == pytest.approx(60 / found["rate"], abs=0.1)


def test_a_stage_that_does_not_advance_shows_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "BEAT_S", 0.05)
    monkeypatch.setattr(views, "LINE_S", 0.5)
    lines: list[str] = []
    with recorded(tmp_path, lines) as told, told.recording(tmp_path, "one", "star", 3):
        told.in_round(1, 3)
        with told.stage("hand-over"):
            time.sleep(0.4)
    beats = [event for event in events_of(tmp_path) if event["event"] == "progress"]
    assert 1 <= len(beats) <= 5
    assert [line for line in lines if line == "round 1 of 3  hand-over: for 0:00"]


def test_plain_lines_come_at_a_calm_rhythm(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(views.time, "monotonic", lambda: clock[0])
    lines: list[str] = []
    view, at = Plain(lines.append), Standing(round=1, rounds=3)
    place = {"round": 1, "refresh": 0, "stage": "generate"}
    begin = made("stage", 1, {**place, "done": 0, "total": 1000})
    at.take(begin)
    view.take(begin, at)
    for second in range(1, 100):
        clock[0] = float(second)
        fields = {**place, "done": 10 * second, "total": 1000, "rate": 10.0, "left_s": 1.0}
        event = made("progress", second, fields)
        at.take(event)
        view.take(event, at)
    assert len(lines) == 3
    assert lines[0] == "round 1 of 3  generate: 300 of 1,000 · 10.0/s · 0:01 left"


def test_no_text_of_a_model_moves_the_cursor(tmp_path: Path) -> None:
    bad = "\x1b[2J\x9b1A\rmine\x07\u202e"
    lines: list[str] = []
    out = io.StringIO()
    live = Live(Console(file=out, force_terminal=True, width=100, color_system=None))
    for told in (recorded(tmp_path, lines), Screen(view=live)):
        with pytest.raises(LoopError), told, told.recording(tmp_path, "one", "star", 3):
            told.say(f"two lines\n{bad}")
            told.alarm(1, 0, "warn", bad)
            told.row(1, {"round": "1", "pass@1": bad}, {})
            with told.stage(bad, total=3):
                live._drawn()
            raise LoopError(bad)
        assert bad in events_of(tmp_path)[-1]["text"]
        assert bad not in ended_line(standing(*events_of(tmp_path)))
    shown = "\n".join(lines) + re.sub(r"\x1b\[\??[0-9;]*[a-zA-Z]", "", out.getvalue())
    assert r"\x1b[2J" in shown
    assert not {"\x9b", "\x07", "\u202e"} & set(shown)
    assert "\x1b[2J\x9b" not in out.getvalue()


@pytest.mark.parametrize(
    ("width", "kept"),
    [(200, HEAD), (60, ["round", "pass@1", "95 %", "pass@4", "maj@4", "kept", "time"]),
     (30, ["round", "pass@1", "95 %"])],
)  # fmt: skip
def test_a_narrow_terminal_keeps_the_most_telling_columns(width: int, kept: list[str]) -> None:
    found = fitting(HEAD, width)
    assert set(kept) <= set(found) and [name for name in HEAD if name in found] == found
    at = Standing(rows={1: dict.fromkeys(HEAD, "1")})
    assert max(map(len, table_lines(at, width))) <= width


@pytest.mark.parametrize("width", [40, 60, 120])
def test_the_live_screen_fits_its_terminal(width: int) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, height=24, color_system=None)
    live, at = Live(console), Standing(run="one", rounds=5, round=2, began_at=time.time())
    at.stage, at.total, at.done, at.rate, at.left_s = "rationalize", 120_000, 412, 18.2, 6000.0
    at.rows = {n: dict.fromkeys(HEAD, "0.5") for n in range(30)}
    at.alarms = ["length is " + "9" * 200]
    live._at = at
    console.print(live._drawn())
    drawn = out.getvalue().splitlines()
    assert max(map(len, drawn)) <= width
    assert len(drawn) <= 14
    assert drawn[0].startswith("run one · round 2 of 5") and "rationalize" in drawn[-1]


def test_where_a_run_stands_is_one_line() -> None:
    at = Standing(run="one", rounds=5, round=2, refresh=1, refreshes=3)
    assert place_of(at) == "round 2 of 5, refresh 2 of 3"
    at.stage, at.total, at.done, at.rate, at.left_s = "generate", 1000, 412, 18.24, 32.2
    said = "round 2 of 5, refresh 2 of 3 · generate · 412 of 1,000"
    assert line_of(at) == said
    at.stage_at = 100.0
    assert line_of(at, 190.0) == f"{said} · 18.2/s · 0:32 left · for 1:30"
    at.rate, at.left_s = 0.25, None
    assert line_of(at, 190.0) == f"{said} · 15.0/min · for 1:30"
    assert place_of(Standing(round=0)) == "base" and line_of(Standing()) == "beginning"


def test_the_next_command_names_the_folder_it_was_typed_in(tmp_path: Path) -> None:
    here = Standing(command="starloop run a.yaml", folder=str(Path.cwd()))
    assert resuming(here, "a") == "starloop run a.yaml"
    there = Standing(command="starloop run a.yaml", folder="/data/my runs")
    assert resuming(there, "a") == "cd '/data/my runs' && starloop run a.yaml"
    assert resuming(None, "a") == "starloop run CONFIG --name a"


def test_json_has_standard_output_for_itself(tmp_path: Path) -> None:
    code = f"""
import os, subprocess, sys
from pathlib import Path
from flows.screen import Screen
from flows.views import Json
with Screen(view=Json()) as told, told.recording(Path({str(tmp_path)!r}), "one", "star", 1):
    print("a library prints")
    os.system("echo a child prints")
    told.say("täxt \\x9b")
print("after")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    *lines, last = done.stdout.decode("ascii").splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["begun", "said", "ended"]
    assert last == "after"
    assert b"a library prints" in done.stderr and b"a child prints" in done.stderr


def test_a_run_goes_on_where_nobody_reads_its_json_any_more(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from flows.screen import Screen
from flows.views import Json
with Screen(view=Json()) as told, told.recording(Path({str(tmp_path)!r}), "one", "star", 1):
    for n in range(5000):
        told.say("x" * 100)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as run:  # fmt: skip
        assert run.stdout and run.stderr
        run.stdout.readline()
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait() == 0
    assert events_of(tmp_path)[-1]["outcome"] == "done"


def test_a_log_continues_the_numbers_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / progress.FILE
    first = Log(path)
    first.write(made("said", 7, {"text": "x"}))
    first.close()
    second = Log(path)
    assert (second.number, path.read_bytes()) == (7, b"")
    second.close()
