# SPDX-License-Identifier: Apache-2.0
"""`starloop publish`: a folder that is the model, says what it is, and holds what trained it."""

import base64
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from running import ROOT, Ended, ask, starloop

from stages.policies.checkpoint import MARKER, model_id_of

Command = Callable[..., Ended]


@pytest.fixture(scope="session")
def folder(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Round 2 of the finished run, published."""
    to = tmp_path_factory.mktemp("published") / "out"
    ended = starloop("publish", "try", "--to", to, "--yes", "--store", finished)
    assert ended.code == 0, ended.err
    return to


def section(folder: Path, title: str) -> str:
    """A section of the card by its heading."""
    (found,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", card_of(folder), re.M | re.S)
    return str(found)


def card_of(folder: Path) -> str:
    return (folder / "README.md").read_text()


def test_without_yes_it_lists_and_writes_nothing(
    command: Command, finished: Path, tmp_path: Path
) -> None:
    ended = command("publish", "try@1", "--to", tmp_path / "out", "--store", finished)
    assert ended.code == 0, ended.err
    for name in ("config.json", "model.safetensors", "README.md", "training_set/manifest.json"):
        assert re.search(rf"^{re.escape(name)}: [\d.]+ k?M?B$", ended.out, re.M)
    assert "try@1, " in ended.out
    assert "nothing was written; --yes" in ended.out
    assert list(tmp_path.iterdir()) == []


def test_a_hub_is_not_asked_without_yes(command: Command, finished: Path) -> None:
    ended = command("publish", "try", "--to", "hub:me/star", "--store", finished)
    assert ended.code == 0, ended.err
    assert "--yes publishes them to hub:me/star" in ended.out


def test_the_folder_is_the_model(folder: Path, finished: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    stored = ask(finished, "select model_id from round_summary where run = 'try' and round = 2")
    assert [(model_id_of(folder),)] == stored
    assert not (folder / MARKER).exists()
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    assert model.config.vocab_size >= len(tokenizer)
    assert [path.name for path in folder.parent.iterdir()] == ["out"]


def test_the_card_has_the_figures_of_the_store(folder: Path, finished: Path) -> None:
    figures = section(folder, "Figures")
    rows = ask(
        finished,
        "select pass_at_1, low, high, pass_at_k, maj_at_k from round_summary "
        "where run = 'try' and round in (0, 2) order by round",
    )
    for one, low, high, at_k, major in rows:
        assert f"| {one:.3f} | {low:.3f}–{high:.3f} | {at_k:.3f} | {major:.3f} |" in figures
    ((problems,),) = ask(
        finished,
        "select e.problems from step_output s join evaluation e on e.evaluation_id = s.id "
        "where s.round = 2 and s.kind = 'evaluation'",
    )
    assert f"{problems} problems of the dev split of `addition`, 8 answers each" in figures
    assert re.search(r"Against the base on the same \d+ problems: [+-]0\.\d{3} pass@1", figures)


def test_the_card_says_who_wrote_what_trained_it(folder: Path, finished: Path) -> None:
    trained = section(folder, "What trained it")
    # both updates start from the base; round 2's policy was round 1's model, so both count
    rows = ask(
        finished,
        "select t.origin, sum(v.visits) as visits, sum(visits) / sum(sum(visits)) over () as share "
        "from training_update u join training_visit v using (update_id) "
        "join training_row_trajectory x using (training_set_id, training_row_id) "
        "join trajectory t using (trajectory_id) group by t.origin",
    )
    assert {origin for origin, _, _ in rows} == {"seed", "self", "rationalized"}
    for origin, visits, share in rows:
        assert re.search(rf"\| {origin} \| \d+ \| {visits} \| {share:.1%} \|", trained)
    (seed,) = (share for origin, _, share in rows if origin == "seed")
    assert f"It may not be called self-improvement alone: of the visits, seed {seed:.1%}" in trained


def test_a_run_without_rows_from_elsewhere_may_be_called_self_improvement(
    command: Command, copied: Path, tmp_path: Path
) -> None:
    import duckdb

    with duckdb.connect(str(copied)) as connection:
        connection.execute("update trajectory set origin = 'self' where origin = 'seed'")
    copied.with_name("store.snapshot.duckdb").unlink()
    ended = command("publish", "try", "--to", tmp_path / "out", "--yes", "--store", copied)
    assert ended.code == 0, ended.err
    said = section(tmp_path / "out", "What trained it")
    assert "It may be called self-improvement" in said
    assert "may not" not in said


def test_the_card_of_a_made_up_student_says_so(folder: Path) -> None:
    assert "made-up student (`sampler.type: scripted`)" in section(folder, "Figures")


def test_the_card_says_what_was_not_measured(folder: Path) -> None:
    said = section(folder, "What was not measured")
    for part in (
        "test split as a whole: 3 measures",
        "seed 0",
        "safety",
        "had seen before",
        "k = 4",
    ):
        assert part in said


def test_the_card_counts_the_lineage_and_shows_the_config(folder: Path, finished: Path) -> None:
    ((updates, sets),) = ask(
        finished, "select count(*), count(distinct training_set_id) from training_update"
    )
    ((sampled,),) = ask(finished, "select count(*) from trajectory where model_id is not null")
    lineage = section(folder, "Lineage")
    assert f"{updates} updates with 66 optimizer steps, {sets} training sets" in lineage
    assert f"sampled {sampled:,} trajectories in all" in lineage
    (fence,) = re.findall(r"```yaml\n(.*?)```", section(folder, "Config"), re.S)
    config = yaml.safe_load(fence)
    ((identity,),) = ask(finished, "select identity from run")
    assert config == json.loads(identity)
    assert "starloop 0" in section(folder, "Made with")


def test_no_folder_of_this_machine_is_in_the_card() -> None:
    from report.card import _portable

    given = {"task": {"files": {"train": "/home/me/secret/train.jsonl", "dev": "data/dev.jsonl"}},
             "urls": ["~/x/y", "http://127.0.0.1:1"]}  # fmt: skip
    assert _portable(given) == {
        "task": {"files": {"train": "train.jsonl", "dev": "data/dev.jsonl"}},
        "urls": ["y", "http://127.0.0.1:1"],
    }


def test_the_training_set_has_its_ids(folder: Path, finished: Path) -> None:
    table = pq.read_table(folder / "training_set" / "training_set.parquet")
    stored = ask(
        finished,
        "select r.training_row_id::varchar from training_row r join step_output s "
        "on s.id = r.training_set_id and s.round = 2 order by r.position",
    )
    assert [str(id_) for id_ in table["training_row_id"].to_pylist()] == [id_ for (id_,) in stored]
    assert {"trajectory_ids", "problem_id", "prompt_id", "policy_id"} <= set(table.column_names)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_is_there_is_never_published_over(
    what: str, command: Command, finished: Path, tmp_path: Path
) -> None:
    to = tmp_path / "out"
    if what == "file":
        to.write_text("mine")
    else:
        to.mkdir()
        (to / "mine").write_text("mine")
    ended = command("publish", "try", "--to", to, "--yes", "--store", finished)
    assert ended.code == 2
    assert f"--to: {to} is there and not an empty folder: name another" in ended.err
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_checkpoint_that_is_gone_or_changed_is_not_published(
    command: Command, copied: Path, tmp_path: Path
) -> None:
    ((path,),) = ask(
        copied, "select path from round_summary join model using (model_id) where round = 2"
    )
    weights = copied.parent / path / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    words = ("publish", "try", "--to", tmp_path / "out", "--yes", "--store", copied)
    ended = command(*words)
    assert (ended.code, "is missing or torn" in ended.err) == (1, True)
    shutil.rmtree(weights.parent)
    assert command(*words).code == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("try@0", "try@0 is the base, which the run did not make"),
        ("try@7", "run try has no model of round 7"),
        ("tyr", "did you mean 'try'?"),
    ],
)
def test_only_what_a_run_made_can_be_published(
    at: str, said: str, command: Command, finished: Path, tmp_path: Path
) -> None:
    ended = command("publish", at, "--to", tmp_path / "out", "--store", finished)
    assert ended.code in (1, 2)
    assert said in ended.err
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_leaves_nothing(
    command: Command, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows import publish

    def full(path: Path) -> None:
        if path.name == "model.safetensors":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(publish, "sync_file", full)
    ended = command("publish", "try", "--to", tmp_path / "out", "--yes", "--store", finished)
    assert ended.code == 1
    assert "No space left on device" in ended.err
    assert list(tmp_path.iterdir()) == []


# ── the Hub's protocol, spoken by a server of ours ──────────────────────────────────────────


class FakeHub(BaseHTTPRequestHandler):
    """As much of the Hub's HTTP interface as a commit of ordinary files takes."""

    repositories: dict[str, dict[str, bytes]]
    asked: list[str]
    refuses: bool

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def _reply(self, code: int, body: Any, **headers: str) -> None:
        content = json.dumps(body).encode()
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        self.asked.append(self.path)
        name = "/".join(self.path.split("?")[0].split("/")[3:5])
        held = self.repositories.get(name)
        if held is None:
            self._reply(404, {"error": "not found"}, X_Error_Code="RepoNotFound")
            return
        if "/tree/" in self.path:
            self._reply(200, [
                {"type": "file", "path": file, "size": 1, "oid": "0" * 40}
                for file in (".gitattributes", *held)
            ])  # fmt: skip
            return
        files = [{"rfilename": file} for file in (".gitattributes", *held)]
        self._reply(200, {"id": name, "siblings": files, "sha": "0" * 40})

    def do_POST(self) -> None:
        self.asked.append(self.path)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/api/repos/create":
            given = json.loads(body)
            assert given.get("private") or given.get("visibility") == "private"
            name = f"{given['organization']}/{given['name']}"
            self.repositories[name] = {}
            self._reply(200, {"url": f"http://{self.headers['Host']}/{name}", "name": name})
        elif self.path == "/api/validate-yaml":
            self._reply(200, {"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            files = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False}
                for f in json.loads(body)["files"]
            ]
            self._reply(200, {"files": files})
        elif self.refuses:
            self._reply(403, {"error": "you may not write here"})
        else:
            name = "/".join(self.path.split("/")[3:5])
            parts = [json.loads(line) for line in body.decode().splitlines()]
            self.repositories[name] |= {
                part["value"]["path"]: base64.b64decode(part["value"]["content"])
                for part in parts
                if part["key"] == "file"
            }
            url = f"http://{self.headers['Host']}/{name}/commit/1"
            self._reply(200, {"commitUrl": url, "commitOid": "1" * 40, "pullRequestUrl": None})


@pytest.fixture
def hub() -> Iterator[ThreadingHTTPServer]:
    fresh: dict[str, Any] = {"repositories": {}, "asked": [], "refuses": False}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (FakeHub,), fresh))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def to_hub(hub: ThreadingHTTPServer, store: Path, name: str, **more: str) -> Ended:
    address = f"http://127.0.0.1:{hub.server_address[1]}"
    environment = {"HF_ENDPOINT": address, "HF_TOKEN": "hf_x", "HF_HUB_OFFLINE": "0", **more}
    words = ("publish", "try", "--to", f"hub:{name}", "--yes", "--store", store)
    return starloop(*words, **environment)


def test_all_goes_to_the_hub_in_one_commit(
    hub: ThreadingHTTPServer, finished: Path, folder: Path
) -> None:
    ended = to_hub(hub, finished, "me/star")
    assert ended.code == 0, ended.err
    assert "/me/star/commit/1" in ended.out
    handler: Any = hub.RequestHandlerClass
    held = handler.repositories["me/star"]
    there = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert set(held) == there
    assert held["model.safetensors"] == (folder / "model.safetensors").read_bytes()
    assert held["README.md"].decode() == card_of(folder)
    assert sum("/commit/" in path for path in handler.asked) == 1


def test_a_repository_with_files_is_refused(hub: ThreadingHTTPServer, finished: Path) -> None:
    handler: Any = hub.RequestHandlerClass
    handler.repositories["me/star"] = {"model.safetensors": b"another's"}
    ended = to_hub(hub, finished, "me/star")
    assert ended.code == 2
    assert "--to: hub:me/star holds 1 files (model.safetensors …)" in ended.err
    assert handler.repositories["me/star"] == {"model.safetensors": b"another's"}


def test_a_hub_that_refuses_is_one_line(hub: ThreadingHTTPServer, finished: Path) -> None:
    handler: Any = hub.RequestHandlerClass
    handler.refuses = True
    ended = to_hub(hub, finished, "me/star")
    assert ended.code == 2
    assert len(ended.err.splitlines()) == 1
    assert "nothing was published to hub:me/star; the repository was made and is empty" in ended.err
    assert handler.repositories["me/star"] == {}


def test_an_offline_user_stays_offline(hub: ThreadingHTTPServer, finished: Path) -> None:
    ended = to_hub(hub, finished, "me/star", HF_HUB_OFFLINE="1")
    assert ended.code == 2
    assert "--to: HF_HUB_OFFLINE=1 forbids the Hub" in ended.err
    handler: Any = hub.RequestHandlerClass
    assert handler.asked == []


def test_a_name_that_is_none_is_refused(command: Command, finished: Path) -> None:
    ended = command("publish", "try", "--to", "hub:star", "--store", finished)
    assert (ended.code, "write hub:OWNER/NAME" in ended.err) == (2, True)


def test_help_names_publish_without_loading_a_library() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import flows.cli"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert "huggingface_hub" not in done.stderr
