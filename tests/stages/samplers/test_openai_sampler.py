# SPDX-License-Identifier: Apache-2.0
"""`openai`: a client for servers, against a server with scripted faults."""

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from openai_server import EOS, Answer, Server, as_json, draw, serving, spoilt, status, text_of
from pydantic import ValidationError

from stages import ids
from stages.errors import SamplerError
from stages.policies.checkpoint import load_tokenizer, model_id_of
from stages.samplers import Completion, Engine, Request, SamplingConfig, openai
from stages.settings import identity

WARM = SamplingConfig(temperature=0.8, max_tokens=12)
SECRET = "sk-0f1e2d3c4b5a"


@pytest.fixture
def server(tiny_folder: Path) -> Iterator[Server]:
    before = threading.active_count()
    with serving(str(tiny_folder)) as running:
        yield running
    wait_for(lambda: threading.active_count() <= before)


def wait_for(condition: Any) -> None:
    until = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def engine(folder: Path, *servers: Server, **settings: Any) -> Engine:
    quick: dict[str, Any] = {"retries": 3, "backoff_s": 0.01, "timeout_s": 20.0}
    urls = tuple(server.url for server in servers)
    return openai.Config(type="openai", **{"urls": urls, **quick, **settings}).build(folder)


def requests(count: int) -> list[Request]:
    """Slots with a prompt of their own each, so that a pair that is mixed up shows."""
    return [
        Request(ids.mint("t", n), (1, 4 + n % 30, 5 + n // 30), 2**62 + n, (("user", f"ask {n}"),))
        for n in range(count)
    ]


def expected(request: Request, sampling: SamplingConfig) -> tuple[tuple[int, ...], str]:
    token_ids, finish = draw(list(request.prompt_ids), request.seed, sampling.max_tokens)
    return tuple(token_ids), finish


def assert_paired(asked: list[Request], replies: list[Completion]) -> None:
    """Every request has the reply to its own prompt and seed."""
    found = {r.trajectory_id: (r.token_ids, r.finish_reason) for r in replies}
    assert found == {r.trajectory_id: expected(r, WARM) for r in asked}
    assert len(replies) == len(asked)


# ── what is asked and what comes back ───────────────────────────────────────────────────────


def test_tokens_go_out_and_come_back_with_every_parameter_said(
    server: Server, tiny_folder: Path
) -> None:
    sampler = engine(tiny_folder, server, extra_body={"priority": 1})
    sampling = SamplingConfig(temperature=0.7, top_p=0.9, top_k=5, max_tokens=12, stop=("#",))
    (request,) = requests(1)
    (reply,) = sampler.sample([request], sampling)
    token_ids, finish = expected(request, sampling)
    assert (reply.token_ids, reply.finish_reason) == (token_ids, finish)
    assert (reply.text, reply.from_text) == (text_of(list(token_ids)), False)
    assert reply.logprobs == (-1.25,) * len(token_ids)
    assert server.asked[-1] == {
        "model": "served",
        "prompt": list(request.prompt_ids),
        "seed": 2**62,
        "n": 1,
        "stream": False,
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 5,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "max_tokens": 12,
        "stop": ["#"],
        "logprobs": 0,
        "return_token_ids": True,
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        "priority": 1,
    }


def test_greedy_is_temperature_0_with_nothing_cut(server: Server, tiny_folder: Path) -> None:
    sampling = SamplingConfig(temperature=0.0, top_p=0.5, top_k=3, max_tokens=2)
    list(engine(tiny_folder, server).sample(requests(1), sampling))
    sent = server.asked[-1]
    assert (sent["temperature"], sent["top_p"], sent["top_k"]) == (0.0, 1.0, 0)


def test_a_server_without_ids_is_asked_by_messages(server: Server, tiny_folder: Path) -> None:
    server.tokens = False
    sampler = engine(tiny_folder, server)
    assert sampler.version == "1.2 (chat)"
    tokenizer = load_tokenizer(tiny_folder)
    for request, reply in by_slot(requests(20), list(sampler.sample(requests(20), WARM))):
        messages = [{"role": "user", "content": request.messages[0][1]}]
        token_ids, finish = draw(messages, request.seed % 2**31, WARM.max_tokens)
        assert (reply.text, reply.finish_reason) == (text_of(token_ids), finish)
        assert (reply.logprobs, reply.from_text) == (None, True)
        # one character is one token here, so the reading of the text gives the ids again
        assert list(reply.token_ids) == token_ids
        assert tokenizer.decode(reply.token_ids, skip_special_tokens=True) == reply.text
    assert {"top_k", "prompt", "logprobs"} & server.asked[-1].keys() == set()


def by_slot(
    asked: list[Request], replies: list[Completion]
) -> Iterator[tuple[Request, Completion]]:
    found = {reply.trajectory_id: reply for reply in replies}
    assert len(found) == len(replies) == len(asked)
    return ((request, found[request.trajectory_id]) for request in asked)


def test_a_chat_that_hit_a_stop_string_sampled_no_end(server: Server, tiny_folder: Path) -> None:
    sampler = engine(tiny_folder, server, api="chat")
    stopped = {"message": {"content": "a1"}, "finish_reason": "stop", "stop_reason": "#"}
    server.script.extend([spoilt(lambda c: c.update(stopped))] * 2)
    server.script.append(spoilt(lambda c: c.update({**stopped, "stop_reason": None})))
    ends = [
        reply.token_ids[-1] == EOS
        for n in range(3)
        for reply in sampler.sample(requests(3)[n : n + 1], WARM)
    ]
    assert ends == [False, False, True]


def test_a_slot_without_messages_cannot_be_asked_as_a_chat(
    server: Server, tiny_folder: Path
) -> None:
    sampler = engine(tiny_folder, server, api="chat")
    with pytest.raises(SamplerError, match="has no messages"):
        list(sampler.sample([Request(ids.mint("t", 1), (1, 2), 3)], WARM))


def test_api_tokens_refuses_a_server_that_gives_none(server: Server, tiny_folder: Path) -> None:
    plain = spoilt(lambda choice: choice.pop("token_ids"))
    server.script.append(plain)
    with pytest.raises(SamplerError, match=r"sampler\.api: .*use `api: chat`"):
        engine(tiny_folder, server, api="tokens")
    server.script.append(plain)
    assert engine(tiny_folder, server).version == "1.2 (chat)"


def test_replies_that_come_in_another_order_stay_with_their_prompts(
    server: Server, tiny_folder: Path
) -> None:
    rng = random.Random(0)
    server.takes_s = lambda body: rng.uniform(0, 0.05)
    asked = requests(80)
    replies = list(engine(tiny_folder, server, concurrency=16).sample(asked, WARM))
    assert [r.trajectory_id for r in replies] != [r.trajectory_id for r in asked]
    assert_paired(asked, replies)


def test_replies_are_given_as_they_come(server: Server, tiny_folder: Path) -> None:
    sampler = engine(tiny_folder, server, concurrency=2)
    held = threading.Event()
    server.takes_s = lambda body: float(body["prompt"][1] == 4 and not held.wait(10))
    replies = sampler.sample(requests(2), WARM)
    first = next(replies)
    assert first.trajectory_id == requests(2)[1].trajectory_id
    held.set()
    assert next(replies).trajectory_id == requests(2)[0].trajectory_id


def test_a_chat_is_rendered_by_the_server_where_it_can(server: Server, tiny_folder: Path) -> None:
    sampler = engine(tiny_folder, server)
    assert sampler.render((("system", "abc"), ("user", "de"))) == (3, 2)
    server.tokens = False
    assert sampler.render((("user", "de"),)) is None


# ── log-probabilities ───────────────────────────────────────────────────────────────────────

RAW_FITS = [
    (0.0, 0.5, 3, True),
    (1.0, 1.0, 0, True),
    (0.8, 1.0, 0, False),
    (1.0, 0.9, 0, False),
    (1.0, 1.0, 5, False),
]


@pytest.mark.parametrize(("temperature", "top_p", "top_k", "fits"), RAW_FITS)
def test_raw_log_probabilities_are_taken_only_where_they_are_those_drawn_from(
    server: Server, tiny_folder: Path, temperature: float, top_p: float, top_k: int, fits: bool
) -> None:
    sampling = SamplingConfig(temperature=temperature, top_p=top_p, top_k=top_k, max_tokens=4)
    assert len(list(engine(tiny_folder, server).sample(requests(1), sampling))) == 1
    server.processed = False
    sampler = engine(tiny_folder, server)
    assert sampler.version == "1.2 (tokens, raw log-probabilities)"
    if fits:
        assert len(list(sampler.sample(requests(1), sampling))) == 1
    else:
        with pytest.raises(SamplerError, match="--logprobs-mode processed_logprobs"):
            list(sampler.sample(requests(1), sampling))


def test_raw_log_probabilities_know_nothing_of_an_extra_body(
    server: Server, tiny_folder: Path
) -> None:
    server.processed = False
    sampler = engine(tiny_folder, server, extra_body={"min_p": 0.1})
    with pytest.raises(SamplerError, match="raw"):
        list(sampler.sample(requests(1), SamplingConfig(temperature=1.0)))


# ── what a server serves ────────────────────────────────────────────────────────────────────


def test_the_only_model_is_taken_and_one_of_several_must_be_named(
    server: Server, tiny_folder: Path
) -> None:
    server.models = ["first", "second"]
    with pytest.raises(SamplerError, match=r"sampler\.model: .* 'first', 'second': name one"):
        engine(tiny_folder, server)
    with pytest.raises(SamplerError, match="does not serve 'third' but 'first', 'second'"):
        engine(tiny_folder, server, model="third")
    list(engine(tiny_folder, server, model="second").sample(requests(1), WARM))
    assert server.asked[-1]["model"] == "second"


def test_other_weights_than_the_policys_are_refused(server: Server, tiny_folder: Path) -> None:
    policy, other = str(model_id_of(tiny_folder)), str(ids.mint("m", 1))
    assert engine(tiny_folder, server).weight_version == policy
    server.weight_version = other
    with pytest.raises(SamplerError, match=f"serves model {other}, but the policy is {policy}"):
        engine(tiny_folder, server)
    server.weight_version, server.root = "default", f"/elsewhere/models/{other}"
    with pytest.raises(SamplerError, match=f"serves model {other}"):
        engine(tiny_folder, server, weight_version="mine")
    server.root = f"/elsewhere/models/{policy}"
    assert engine(tiny_folder, server).weight_version == policy


def test_weights_that_a_server_does_not_show_are_declared(
    server: Server, tiny_folder: Path
) -> None:
    server.root = "some-model"
    with pytest.raises(SamplerError, match=r"does not show which weights.*sampler\.weight_version"):
        engine(tiny_folder, server)
    assert engine(tiny_folder, server, weight_version="v1").weight_version == "v1"
    with pytest.raises(SamplerError, match="is not the policy's id"):
        engine(tiny_folder, server, weight_version=str(ids.mint("m", 1)))


# ── bad replies ─────────────────────────────────────────────────────────────────────────────

WRONG: dict[str, tuple[Any, str]] = {
    "too few choices": (lambda asked, reply: as_choices(reply, []), "0 choices"),
    "too many choices": (
        lambda asked, reply: as_choices(reply, reply["choices"] * 2),
        "2 choices",
    ),
    "another index": (spoilt(lambda c: c.update(index=1)), "index 1"),
    "another prompt": (
        spoilt(lambda c: c.update(prompt_token_ids=[1, 2])),
        "reply is to another prompt",
    ),
    "no prompt": (spoilt(lambda c: c.pop("prompt_token_ids")), "reply is to another prompt"),
    "no ids": (spoilt(lambda c: c.pop("token_ids")), "no token ids"),
    "null ids": (spoilt(lambda c: c.update(token_ids=None)), "no token ids"),
    "empty": (spoilt(lambda c: c.update(token_ids=[], text="")), "0 token ids"),
    "too long": (spoilt(lambda c: c.update(token_ids=[5] * 13)), "13 token ids"),
    "out of range": (spoilt(lambda c: c["token_ids"].__setitem__(0, 999)), "token id 999"),
    "negative id": (spoilt(lambda c: c["token_ids"].__setitem__(0, -1)), "token id -1"),
    "id as a truth value": (spoilt(lambda c: c["token_ids"].__setitem__(0, True)), "token id True"),
    "no logprobs": (spoilt(lambda c: c.update(logprobs=None)), "no log-probabilities"),
    "short logprobs": (
        spoilt(lambda c: c["logprobs"]["token_logprobs"].pop()),
        "log-probabilities for",
    ),
    "null logprob": (
        spoilt(lambda c: c["logprobs"]["token_logprobs"].__setitem__(0, None)),
        "not a number",
    ),
    "NaN logprob": (
        spoilt(lambda c: c["logprobs"]["token_logprobs"].__setitem__(0, float("nan"))),
        "not a number",
    ),
    "positive logprob": (
        spoilt(lambda c: c["logprobs"]["token_logprobs"].__setitem__(0, 0.5)),
        "not a number",
    ),
    "aborted": (spoilt(lambda c: c.update(finish_reason="abort")), "finish_reason is 'abort'"),
    "text of another type": (spoilt(lambda c: c.update(text=7)), "text is int"),
    "half a body": (lambda asked, reply: Answer(b"x" * 90, cut=60), "RemoteProtocolError"),
    "not JSON": (lambda asked, reply: Answer(b"<html>oh no</html>"), "no JSON but '<html>"),
    "a JSON list": (lambda asked, reply: Answer(b"[]"), "no JSON object"),
    "status 500": (status(500), "status 500: no luck"),
    "status 502": (status(502), "status 502: no luck"),
    "status 503": (status(503), "status 503: no luck"),
    "status 504": (status(504), "status 504: no luck"),
    "status 429": (status(429), "status 429: no luck"),
}


def as_choices(reply: Any, choices: list[Any]) -> Answer:
    return as_json({**reply, "choices": choices})


@pytest.mark.parametrize("name", WRONG)
def test_a_bad_reply_is_asked_for_again_and_never_taken(
    server: Server, tiny_folder: Path, name: str
) -> None:
    fault, said = WRONG[name]
    asked = requests(6)
    sampler = engine(tiny_folder, server, concurrency=2)
    server.script.extend([fault] * 2)
    assert_paired(asked, list(sampler.sample(asked, WARM)))
    server.always = fault
    with pytest.raises(SamplerError, match=f"(?s){server.url}.*{said}"):
        list(sampler.sample(asked, WARM))


def test_an_empty_chat_reply_is_an_error_unless_the_model_ended_it(
    server: Server, tiny_folder: Path
) -> None:
    sampler = engine(tiny_folder, server, api="chat")
    (request,) = requests(1)
    empty = {"message": {"content": None}, "finish_reason": "stop"}
    server.always = spoilt(lambda c: c.update(empty))
    (reply,) = sampler.sample([request], WARM)
    assert (reply.text, reply.token_ids) == ("", (EOS,))
    server.always = spoilt(lambda c: c.update({**empty, "finish_reason": "length"}))
    with pytest.raises(SamplerError, match="no text"):
        list(sampler.sample([request], WARM))


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        (400, "sampling.max_tokens"),
        (401, "set OPENAI_API_KEY in the environment"),
        (403, "set OPENAI_API_KEY in the environment"),
        (404, "sampler.urls and sampler.model"),
        (302, "see the server's log"),
    ],
)
def test_a_refusal_ends_it_at_once_and_says_why(
    server: Server, tiny_folder: Path, code: int, fix: str
) -> None:
    sampler = engine(tiny_folder, server, concurrency=1)
    server.asked.clear()
    server.always = status(code, "too\nlong" + "g" * 1000)
    with pytest.raises(SamplerError) as error:
        list(sampler.sample(requests(5), WARM))
    said = str(error.value)
    assert f"{server.url}/v1/completions answered with status {code}: too long" in said
    assert fix in said and "\n" not in said and len(said) < 600
    assert len(server.asked) == 1


# ── rests and retries ───────────────────────────────────────────────────────────────────────


def test_retry_after_is_waited_for(server: Server, tiny_folder: Path) -> None:
    sampler = engine(tiny_folder, server)
    server.script.append(status(429, Retry_After="1"))
    start = time.monotonic()
    assert_paired(requests(1), list(sampler.sample(requests(1), WARM)))
    assert 1.0 <= time.monotonic() - start < 5


def test_a_reply_that_takes_too_long_is_asked_for_again(server: Server, tiny_folder: Path) -> None:
    sampler = engine(tiny_folder, server, timeout_s=0.3)
    server.script.append(lambda asked, reply: Answer(b"{}", after_s=1.0))
    assert_paired(requests(3), list(sampler.sample(requests(3), WARM)))
    server.always = lambda asked, reply: Answer(b"{}", after_s=0.5)
    with pytest.raises(SamplerError, match=r"no reply within 0\.3 s"):
        list(sampler.sample(requests(1), WARM))


@pytest.mark.parametrize("concurrency", [1, 3, 8])
def test_no_more_requests_are_open_than_allowed_and_that_many_are(
    server: Server, tiny_folder: Path, concurrency: int
) -> None:
    sampler = engine(tiny_folder, server, concurrency=concurrency)

    def until_full(body: Any) -> float:
        wait_for(lambda: server.most_open >= concurrency)
        return 0.01

    server.takes_s = until_full
    assert_paired(requests(40), list(sampler.sample(requests(40), WARM)))
    assert server.most_open == concurrency


def test_a_server_that_is_gone_is_an_error_with_its_url(server: Server, tiny_folder: Path) -> None:
    sampler = engine(tiny_folder, server)
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(SamplerError, match=f"no server is left.*{server.url}.*ConnectError"):
        list(sampler.sample(requests(5), WARM))
    with pytest.raises(SamplerError, match="no server is left"):
        engine(tiny_folder, server)


def test_a_server_that_comes_back_is_used_again(server: Server, tiny_folder: Path) -> None:
    sampler = engine(tiny_folder, server, retries=8, backoff_s=0.05)
    server.script.extend([status(503)] * 5)
    assert_paired(requests(20), list(sampler.sample(requests(20), WARM)))


def test_requests_go_to_all_servers_and_those_of_a_dead_one_to_the_others(
    server: Server, tiny_folder: Path
) -> None:
    asked = requests(60)
    with serving(str(tiny_folder)) as second:
        sampler = engine(tiny_folder, server, second, concurrency=4)
        for each in (server, second):
            each.asked.clear()
            each.takes_s = lambda body: 0.01
        replies = sampler.sample(asked, WARM)
        early = list(islice(replies, 20))
        assert server.asked and second.asked
        second.always = lambda asked, reply: Answer(b"x" * 90, cut=90)
        assert_paired(asked, early + list(replies))
    # and one that takes no connection at all
    assert_paired(asked, list(sampler.sample(asked, WARM)))


def test_a_slow_server_gets_fewer_requests(server: Server, tiny_folder: Path) -> None:
    with serving(str(tiny_folder)) as second:
        sampler = engine(tiny_folder, server, second, concurrency=2)
        server.asked.clear()
        second.asked.clear()
        second.takes_s = lambda body: 0.2
        server.takes_s = lambda body: 0.01
        assert_paired(requests(40), list(sampler.sample(requests(40), WARM)))
        assert len(server.asked) > 3 * len(second.asked) > 0


def test_servers_with_several_names_are_refused(server: Server, tiny_folder: Path) -> None:
    with serving(str(tiny_folder)) as second:
        second.models = ["other"]
        with pytest.raises(SamplerError, match="under one name"):
            engine(tiny_folder, server, second)


# ── the key ─────────────────────────────────────────────────────────────────────────────────


def test_the_key_is_sent_and_never_shown(
    server: Server, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    server.key = SECRET
    sampler = engine(tiny_folder, server, key_env="MY_KEY")
    assert_paired(requests(2), list(sampler.sample(requests(2), WARM)))
    assert server.headers[-1]["Authorization"] == f"Bearer {SECRET}"
    shown = [repr(sampler), repr(vars(sampler)), sampler.version]
    for fault in (status(403, f"{SECRET} is no good"), status(500, f"{SECRET}: no")):
        server.always = fault
        with pytest.raises(SamplerError) as error:
            list(sampler.sample(requests(1), WARM))
        shown.append(repr(error.value))
        shown.append(repr(error.value.__cause__))
    server.key = "other"
    with pytest.raises(SamplerError, match="set MY_KEY in the environment") as error:
        engine(tiny_folder, server, key_env="MY_KEY")
    assert [text for text in [*shown, str(error.value)] if SECRET in text] == []


@pytest.mark.parametrize("value", [f"{SECRET}\nX: y", f"{SECRET}ü"])
def test_a_key_that_no_header_takes_is_refused_without_showing_it(
    server: Server, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(SamplerError, match="the key in MY_KEY") as error:
        engine(tiny_folder, server, key_env="MY_KEY")
    assert SECRET not in str(error.value)


def test_a_key_over_plain_http_to_another_machine_is_warned_of(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    urls = ("http://nowhere.invalid:1",)
    with (
        pytest.warns(UserWarning, match=r"nowhere\.invalid.*MY_KEY unencrypted") as warned,
        pytest.raises(SamplerError, match="no server is left"),
    ):
        engine(tiny_folder, urls=urls, key_env="MY_KEY", retries=0)
    assert SECRET not in str(warned[0].message)


def test_a_proxy_is_not_asked_for_loopback(
    server: Server, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert_paired(requests(2), list(engine(tiny_folder, server).sample(requests(2), WARM)))


# ── leaving early ───────────────────────────────────────────────────────────────────────────


def http_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "starloop-http"]


def test_an_iterator_that_is_closed_leaves_no_thread_and_no_request(
    server: Server, tiny_folder: Path
) -> None:
    sampler = engine(tiny_folder, server, concurrency=4)
    server.takes_s = lambda body: 0.01
    replies = sampler.sample(requests(300), WARM)
    list(islice(replies, 3))
    assert len(http_threads()) == 1
    replies.close()  # type: ignore[attr-defined]
    assert http_threads() == []
    asked = len(server.asked)
    time.sleep(0.1)
    assert len(server.asked) <= asked + 4 < 300


def test_ctrl_c_ends_the_wait_and_leaves_no_thread(server: Server, tiny_folder: Path) -> None:
    sampler = engine(tiny_folder, server)
    server.takes_s = lambda body: 2.0
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        list(sampler.sample(requests(3), WARM))
    timer.join()
    assert http_threads() == [] and time.monotonic() - start < 1.5


def test_an_error_leaves_no_thread(server: Server, tiny_folder: Path) -> None:
    sampler = engine(tiny_folder, server)
    server.always = status(400)
    with pytest.raises(SamplerError):
        list(sampler.sample(requests(30), WARM))
    assert http_threads() == []
    sampler.close()


# ── the config ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "root"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1"),
        ("https://api.example.com/v1/", "https://api.example.com/v1"),
        ("https://example.com/openai/v4", "https://example.com/openai/v4"),
    ],
)
def test_a_url_is_an_api_root(given: str, root: str) -> None:
    assert openai.Config(type="openai", urls=(given,)).urls == (root,)


@pytest.mark.parametrize(
    "values",
    [
        {"urls": []},
        {"urls": ["127.0.0.1:8000"]},
        {"urls": ["ftp://host"]},
        {"urls": ["http://"]},
        {"urls": ["http://host:port"]},
        {"urls": ["http://a b"]},
        {"urls": ["http://host", "http://host/v1"]},
        {"urls": [f"http://user:{SECRET}@host"]},
        {"urls": [f"http://host/v1?key={SECRET}"]},
        {"concurrency": 0},
        {"timeout_s": 0.0},
        {"retries": -1},
        {"api": "text"},
        {"weight_version": ""},
        {"extra_body": {"x": float("nan")}},
        *({"extra_body": {name: 1}} for name in openai.OWNED),
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_used_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as error:
        openai.Config.model_validate({"type": "openai", "urls": ["http://host"], **values})
    said = [str(found.get("ctx", {}).get("error", found["msg"])) for found in error.value.errors()]
    assert said and not any(SECRET in text for text in said)


def test_where_and_how_fast_is_no_identity() -> None:
    one = openai.Config(type="openai", urls=("http://a",))
    two = openai.Config(type="openai", urls=("http://b",), concurrency=1, retries=0, key_env="K")
    assert identity(one) == identity(two)
    three = openai.Config(type="openai", urls=("http://a",), extra_body={"min_p": 0.1})
    assert identity(one) != identity(three)
