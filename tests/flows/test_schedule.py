# SPDX-License-Identifier: Apache-2.0
"""Schedules: firings on a real Prefect server, by a real worker and by `starloop schedule`."""

import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from running import ROOT, TRY, ask, clean_environment, starloop

NIGHTLY = "0 2 * * *"
POOL = "here"
FINAL = {"COMPLETED", "FAILED", "CANCELLED", "CRASHED"}


# ── what a firing works up to ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("done", "begun", "rounds", "until", "only_cut", "expected"),
    [
        (None, None, 1, None, False, 1),  # base and round 1
        (0, 0, 1, None, False, 1),
        (3, 3, 2, None, False, 5),
        (3, 4, 1, None, False, 4),  # round 4 was cut: it is the firing's one round
        (3, 4, 2, None, False, 5),
        (3, 3, 2, 4, False, 4),
        (3, 3, 1, 3, False, None),
        (5, 5, 1, 3, False, None),
        (None, 0, 1, None, True, 1),  # the base was cut
        (3, 4, 2, None, True, 4),
        (3, 3, 2, None, True, None),
    ],
)
def test_a_firing_works_up_to_its_rounds_and_a_cut_round_is_the_first_of_them(
    done: int | None,
    begun: int | None,
    rounds: int,
    until: int | None,
    only_cut: bool,
    expected: int | None,
) -> None:
    from flows.firing import Standing, target

    assert target(Standing(done, begun), rounds, until, only_cut=only_cut) == expected


def test_a_run_stands_where_its_last_whole_round_is(finished: Path) -> None:
    from flows.firing import Standing, standing
    from store.db import Store

    assert standing(Store(finished), "try", 1) == Standing(2, 2)
    assert standing(Store(finished), "another", 1) == Standing()
    assert standing(Store(finished.with_name("none.duckdb")), "try", 1) == Standing()


def test_problems_are_new_that_the_run_has_not_sampled(finished: Path) -> None:
    from configs.load import load
    from flows.firing import new_problems
    from store.db import Store

    (sampled,) = ask(
        finished, "select count(distinct problem_id) from trajectory where purpose = 'train'"
    )
    assert new_problems(Store(finished), "try", load(TRY)) == 200 - sampled[0] > 0
    assert new_problems(Store(finished), "another", load(TRY)) == 200


@pytest.mark.parametrize(
    ("name", "key"), [("star", "star"), ("Star_2.b", "star-2-b"), ("-x-", "x")]
)
def test_an_artifact_key_has_lower_case_letters_digits_and_dashes(name: str, key: str) -> None:
    from flows.artifacts import artifact_key

    assert artifact_key(name) == key


# ── what is refused ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--cron", "every night"], "--cron: 'every night' is no cron line: write minute"),
        (["--cron", "0 2 30 2 *"], "--cron: '0 2 30 2 *' names a day that never comes"),
        (["--cron", NIGHTLY, "--timezone", "Europe/Berlni"], "did you mean Europe/Berlin?"),
        (["--cron", NIGHTLY, "--rounds-per-firing", 0], "--rounds-per-firing: 0 is not allowed"),
        (["--cron", NIGHTLY, "--until", 2], "--until: 2 is not above 2, the rounds that run try"),
        (["--cron", NIGHTLY, "generate.m=3"], "generate.m: unknown key"),
    ],
)
def test_a_plan_that_cannot_be_kept_is_refused_in_one_line(
    command: Any, finished: Path, options: list[object], says: str
) -> None:
    for subcommand in (["schedule"], ["deploy", "--pool", POOL]):
        ended = command(*subcommand, TRY, *options, "--store", finished)
        assert (ended.code, len(ended.err.splitlines())) == (2, 1)
        assert says in ended.err


@pytest.mark.parametrize(
    ("address", "code", "says"),
    [
        ({}, 2, "PREFECT_API_URL is not set: start a server with `prefect server start`"),
        (
            {"PREFECT_API_URL": "http://127.0.0.1:9/api"},
            1,
            "no Prefect server answers at http://127.0.0.1:9/api",
        ),
    ],
)
def test_a_deployment_needs_a_server_that_answers(
    tmp_path: Path, address: dict[str, str], code: int, says: str
) -> None:
    given = ["--pool", POOL, "--cron", NIGHTLY, "--store", tmp_path / "runs" / "store.duckdb"]
    ended = starloop("deploy", TRY, *given, **address)
    assert (ended.code, len(ended.err.splitlines())) == (code, 1)
    assert says in ended.err


# ── on a server ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Server:
    """A Prefect server, and a folder for its files and those of its worker."""

    api: str
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PREFECT_API_URL": self.api,
            "PREFECT_HOME": str(self.home),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_WORKER_QUERY_SECONDS": "1",
            "PREFECT_SERVER_SERVICES_REPOSSESSOR_LOOP_SECONDS": "1",
            "DO_NOT_TRACK": "1",
        }

    def ask(self, method: str, path: str, **values: Any) -> Any:
        """The server's answer; one that is busy (503) is asked again, as Prefect's client does."""
        for _ in range(30):
            reply = httpx.request(method, f"{self.api}/{path}", timeout=30, **values)
            if reply.status_code != 503:
                break
            time.sleep(1)
        reply.raise_for_status()
        return reply.json() if reply.content else None

    def post(self, path: str, **values: Any) -> Any:
        return self.ask("POST", path, json=values)

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def fire(self, name: str, **parameters: Any) -> str:
        """A firing of a run's deployment, now; its id."""
        deployment = self.get(f"deployments/name/starloop/{name}")
        made = self.post(f"deployments/{deployment['id']}/create_flow_run", parameters=parameters)
        return str(made["id"])

    def state(self, firing: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"flow_runs/{firing}")["state"]
        return found

    def end_of(self, firing: str) -> tuple[str, str]:
        """How a firing ended: its state's type and message."""
        wait(
            lambda: self.state(firing)["type"] in FINAL, f"firing {firing} does not end", every=0.5
        )
        state = self.state(firing)
        return state["type"], state["message"] or ""


def wait(holds: Any, otherwise: str, seconds: float = 180.0, every: float = 0.05) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(every)


def prefect(server: Server, *arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("prefect")), *arguments]


def default_signals() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a background job ignores it


def end(process: "subprocess.Popen[Any]") -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`prefect server start` on a free port of this machine."""
    home = tmp_path_factory.mktemp("server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = Server(f"http://127.0.0.1:{port}/api", home)
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            prefect(made, "server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-ui"),
            stdout=log,
            stderr=log,
            env=clean_environment(**made.environment),
            start_new_session=True,
        )
    try:
        wait(lambda: answers(made), (home / "server.log").read_text(), 120)
        made.post("work_pools/", name=POOL, type="process")
        yield made
    finally:
        end(process)


def answers(server: Server) -> bool:
    try:
        return httpx.get(f"{server.api}/health", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def start_worker(server: Server, pool: str) -> "subprocess.Popen[bytes]":
    """A process worker of a pool, started in a folder that is no checkout."""
    folder = server.home / "elsewhere"
    folder.mkdir(exist_ok=True)
    with (server.home / "worker.log").open("ab") as log:
        return subprocess.Popen(
            prefect(server, "worker", "start", "--pool", pool, "--type", "process"),
            stdout=log,
            stderr=log,
            cwd=folder,
            env=clean_environment(**server.environment),
            start_new_session=True,
        )


@pytest.fixture(scope="module")
def worker(server: Server) -> Iterator[None]:
    process = start_worker(server, POOL)
    yield
    end(process)


def deploy(server: Server, store: Path, name: str, *options: object, pool: str = POOL) -> None:
    given = ["--pool", pool, "--cron", NIGHTLY, "--name", name, "--store", store]
    ended = starloop("deploy", TRY, *given, *options, **server.environment)
    assert ended.code == 0, ended.err
    assert f"as starloop/{name}: run {name} is carried on by 1 round at each firing" in ended.out


def rounds_done(store: Path, name: str) -> list[int]:
    rows = ask(store, "select round from step_run where run = ? and step = 'evaluate'", name)
    return sorted(number for (number,) in rows)


def models(store: Path) -> list[tuple[Any, ...]]:
    """The models of run try by round: their ids hash what they hold."""
    return ask(store, "select round, model_id from round_summary where run = 'try' order by all")


def is_at_work(store: Path, name: str, number: int) -> bool:
    """Whether a round has begun, by the copy for readers and the step that has a folder."""
    copy = store.with_name("store.snapshot.duckdb")
    return (
        copy.exists()
        and rounds_done(copy, name) == list(range(number))
        and any((store.parent / name / "work").glob("*/*"))
    )


@pytest.mark.slow
def test_a_pool_that_is_none_is_refused_and_one_without_a_worker_is_told(
    server: Server, tmp_path: Path
) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    given = [TRY, "--cron", NIGHTLY, "--name", "pools", "--store", store]
    refused = starloop("deploy", *given, "--pool", "gpus", **server.environment)
    assert refused.code == 2
    assert f"--pool: 'gpus' is no work pool of the server, there are {POOL}" in refused.err
    server.post("work_pools/", name="idle", type="process")
    deployed = starloop("deploy", *given, "--pool", "idle", **server.environment)
    assert deployed.code == 0, deployed.err
    assert "start one with `prefect worker start --pool idle`" in deployed.out
    other = [*given[:-1], tmp_path / "other" / "store.duckdb", "--pool", "idle"]
    twice = starloop("deploy", *other, **server.environment)
    assert twice.code == 2
    assert f"a schedule of run pools of store {store} already" in twice.err


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_firings_do_each_round_once_though_one_is_killed_in_mid_round(
    server: Server, finished: Path, tmp_path: Path
) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    deploy(server, store, "try")
    killed = server.fire("try", rounds_per_firing=2)
    wait(lambda: is_at_work(store, "try", 2), "round 2 shows no sign of work")
    os.kill(int((store.parent / "try" / "lock").read_text()), signal.SIGKILL)
    assert server.end_of(killed)[0] == "CRASHED"
    assert rounds_done(store, "try") == [0, 1]

    assert server.end_of(server.fire("try")) == ("COMPLETED", "round 2 of run try is done")
    assert rounds_done(store, "try") == [0, 1, 2]
    assert running(server, killed) == []  # the round that was cut is not shown as running
    assert models(store) == models(finished)
    assert server.end_of(server.fire("try")) == ("COMPLETED", "round 3 of run try is done")
    assert rounds_done(store, "try") == [0, 1, 2, 3]
    sampled = ask(
        store,
        "select round, count(*) from step_output where step = 'generate' and kind = 'trajectory' "
        "group by all order by all",
    )
    assert sampled == [(1, 60), (2, 60), (3, 60)]


def is_running(server: Server, firing: str) -> bool:
    return bool(server.state(firing)["type"] == "RUNNING")


def running(server: Server, firing: str) -> list[str]:
    """The rounds of a firing that Prefect shows as running."""
    runs = {"parent_flow_run_id": {"any_": [firing]}, "state": {"type": {"any_": ["RUNNING"]}}}
    return [run["name"] for run in server.post("flow_runs/filter", flow_runs=runs)]


@dataclass(frozen=True)
class Killed:
    """A run whose firing was killed in round 1 with its worker; another worker is there now."""

    server: Server
    store: Path
    name: str
    firing: str

    def fire(self) -> tuple[str, str]:
        """How another firing ends."""
        return self.server.end_of(self.server.fire(self.name))

    def slots(self) -> int:
        """How many firings Prefect counts as being at work."""
        made = self.server.get(f"deployments/name/starloop/{self.name}")
        return int(made["global_concurrency_limit"]["active_slots"])


@pytest.fixture
def killed(server: Server, tmp_path: Path) -> Iterator[Killed]:
    name = f"gone-{tmp_path.name.strip('_0')[-4:]}"
    server.post("work_pools/", name=name, type="process")
    store = tmp_path / "runs" / "store.duckdb"
    first = start_worker(server, name)
    try:
        deploy(server, store, name, pool=name)
        firing = server.fire(name)
        wait(lambda: is_at_work(store, name, 1), "round 1 shows no sign of work")
        at_work = int((store.parent / name / "lock").read_text())
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    with suppress(ProcessLookupError):
        os.kill(at_work, signal.SIGKILL)
    second = start_worker(server, name)
    yield Killed(server, store, name, firing)
    end(second)


@pytest.mark.slow
def test_after_a_killed_worker_the_first_firing_past_the_lease_finishes_the_round(
    server: Server, killed: Killed
) -> None:
    """Prefect's client asks for five minutes each time; a minute is the least that it grants."""
    assert killed.fire()[0] == "CANCELLED"
    lease = server.state(killed.firing)["state_details"]["deployment_concurrency_lease_id"]
    server.post(f"v2/concurrency_limits/leases/{lease}/renew", lease_duration=60)
    assert killed.slots() == 1
    wait(lambda: killed.slots() == 0, "the dead firing keeps its slot", every=1.0)
    assert killed.fire() == ("COMPLETED", f"round 1 of run {killed.name} is done")
    assert rounds_done(killed.store, killed.name) == [0, 1]
    assert server.end_of(killed.firing)[0] == "CRASHED"
    assert running(server, killed.firing) == []


@pytest.mark.slow
def test_deploying_again_after_a_killed_worker_gives_back_the_slot_at_once(
    server: Server, killed: Killed
) -> None:
    deploy(server, killed.store, killed.name, pool=killed.name)
    assert server.end_of(killed.firing)[0] == "CRASHED"
    assert killed.slots() == 0
    assert killed.fire() == ("COMPLETED", f"round 1 of run {killed.name} is done")
    assert rounds_done(killed.store, killed.name) == [0, 1]


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_a_firing_is_cancelled_while_a_round_is_running(server: Server, tmp_path: Path) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    deploy(server, store, "busy")
    first = server.fire("busy", rounds_per_firing=3)
    wait(lambda: is_running(server, first), "the first firing does not begin", every=0.2)
    second = server.fire("busy")
    assert server.end_of(second) == ("CANCELLED", "Deployment concurrency limit reached.")
    assert server.end_of(first) == ("COMPLETED", "round 3 of run busy is done")
    assert rounds_done(store, "busy") == [0, 1, 2, 3]

    with (store.parent / "busy" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711")
        lock.flush()
        state, message = server.end_of(server.fire("busy"))
    assert state == "CANCELLED"
    assert message.startswith("run busy is being worked on by process 4711")


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_a_firing_needs_new_problems_where_it_is_told_so_and_a_schedule_ends_at_its_round(
    server: Server, tmp_path: Path
) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    deploy(
        server, store, "new", "--on-new-problems", "--until", 2, "generate.problems.per_round=all"
    )
    assert server.end_of(server.fire("new")) == ("COMPLETED", "round 1 of run new is done")
    state, message = server.end_of(server.fire("new"))
    assert state == "COMPLETED"
    assert "has sampled every train problem of its task" in message
    assert rounds_done(store, "new") == [0, 1]
    assert not server.get("deployments/name/starloop/new")["paused"]

    (store.parent / "report.md").write_text("# new")
    state, message = server.end_of(server.fire("new", on_new_problems=False))
    assert message == "round 2 of run new is done, the schedule was until round 2: it ends"
    assert server.get("deployments/name/starloop/new")["paused"]

    artifacts = server.post("artifacts/filter", artifacts={"key": {"like_": "new-"}})
    shown = {artifact["key"]: artifact for artifact in artifacts}
    assert set(shown) == {"new-rounds", "new-progress", "new-report-md"}
    tasks = {run["name"] for run in server.post("task_runs/filter", limit=200)}
    assert {"base · evaluate", "round 1 · generate", "round 2 · update"} <= tasks
    assert "pass@1" in str(shown["new-rounds"]["data"])
    logs = server.post("logs/filter", sort="TIMESTAMP_DESC", limit=200)
    assert any(re.search("begins: 1 round|going on with run new", log["message"]) for log in logs)


@pytest.mark.slow
def test_prefects_own_deploy_command_takes_the_file_at_the_top(server: Server) -> None:
    done = subprocess.run(
        prefect(server, "--no-prompt", "deploy", "--name", "star", "--pool", POOL),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=clean_environment(**server.environment, PWD=str(ROOT)),
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    made = server.get("deployments/name/starloop/star")
    (step,) = made["pull_steps"]
    assert step == {"prefect.deployments.steps.set_working_directory": {"directory": str(ROOT)}}
    assert made["entrypoint"] == "flows.firing.starloop"
    assert made["global_concurrency_limit"]["limit"] == 1
    assert made["concurrency_options"]["collision_strategy"] == "CANCEL_NEW"


def schedule(store: Path, *options: object, **environment: str) -> "subprocess.Popen[str]":
    """`starloop schedule` in the foreground of a session of its own."""
    with (store.parent.parent / "err").open("w") as err:
        return subprocess.Popen(
            [
                str(Path(sys.executable).with_name("starloop")),
                *("schedule", str(TRY), "--cron", NIGHTLY, "--store", str(store)),
                *map(str, options),
            ],
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
            cwd=ROOT,
            env=clean_environment(PYTHONUNBUFFERED="1", **environment),
            start_new_session=True,
            preexec_fn=default_signals,
        )


def line_of(process: "subprocess.Popen[str]", pattern: str) -> str:
    """The first line of its output that fits."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if re.search(pattern, line):
            return line
    raise AssertionError(f"no line fits {pattern!r} in {seen}")


@pytest.mark.slow
def test_a_served_schedule_says_what_fires_and_ctrl_c_ends_it(
    server: Server, tmp_path: Path
) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    zone = ["--timezone", "Europe/Berlin"]
    process = schedule(store, "--name", "served", *zone, **server.environment)
    try:
        assert "run served is carried on by 1 round at each firing" in line_of(process, "carried")
        assert re.search(r"02:00 CES?T$", line_of(process, "next firing").strip())
        firing = server.fire("served")
        assert "completed: round 1 of run served is done" in line_of(process, "^firing ")
        assert server.state(firing)["type"] == "COMPLETED"
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
    finally:
        end(process)
    said = (tmp_path / "err").read_text().splitlines()
    assert "the same command goes on with it" in said[-1]
    assert server.get("deployments/name/starloop/served")["paused"]
    assert rounds_done(store, "served") == [0, 1]


@pytest.mark.slow
def test_a_schedule_with_a_server_of_its_own_ends_at_its_last_round(tmp_path: Path) -> None:
    store = tmp_path / "runs" / "store.duckdb"
    process = schedule(store, "--name", "own", "--until", 1)
    try:
        page = line_of(process, "Prefect's page").split()[2].rstrip(";")
        line_of(process, "next firing")
        Server(f"{page}/api", tmp_path).fire("own")
        assert "the schedule ends" in line_of(process, "round 1 is done")
        assert process.wait(60) == 0
    finally:
        end(process)
    assert rounds_done(store, "own") == [0, 1]
