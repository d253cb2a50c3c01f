# SPDX-License-Identifier: Apache-2.0
"""Sampler against trainer on a checkpoint: each layer that differs is named, and only that."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stage_rows import a_problem

from stages import ids
from stages.chat import Messages
from stages.handover import Finding, Score, allowed_gap, compare, scorer
from stages.policies import tiny
from stages.policies.checkpoint import load_tokenizer, model_id_of
from stages.prompts import PromptsConfig, messages_of, write_prompts
from stages.samplers.base import Completion, Engine, Request, SamplingConfig
from stages.samplers.transformers import Config

THRESHOLD = 0.05


class Claiming:
    """An engine that says it holds another model than it does, and may change its replies."""

    def __init__(
        self,
        engine: Engine,
        version: str,
        changed: Callable[[int, Completion], Completion] = lambda place, reply: reply,
        renders: bool = True,
    ) -> None:
        self._engine, self._changed, self._renders = engine, changed, renders
        self.name, self.version, self.dtype = engine.name, engine.version, engine.dtype
        self.weight_version, self.deterministic = version, engine.deterministic

    def sample(self, requests: Sequence[Request], sampling: SamplingConfig) -> Iterator[Completion]:
        replies = list(enumerate(self._engine.sample(requests, sampling)))
        return iter([self._changed(*reply) for reply in replies[::-1]])  # any order will do

    def render(self, messages: Messages) -> tuple[int, ...] | None:
        return self._engine.render(messages) if self._renders else None

    def close(self) -> None:
        self._engine.close()


@pytest.fixture(scope="module")
def tokenizer(tiny_folder: Path) -> Any:
    return load_tokenizer(tiny_folder)


@pytest.fixture(scope="module")
def requests(tokenizer: Any) -> list[Request]:
    problems = [replace(a_problem(n), question=f"a{n}+a{n + 1}") for n in range(8)]
    prompts = write_prompts(problems, PromptsConfig(name="n").build(), tokenizer, hinted=False)
    return [
        Request(ids.mint("t", p.prompt_id), p.token_ids, place, messages_of(p))
        for place, p in enumerate(prompts)
    ]


@pytest.fixture(scope="module")
def score(tiny_folder: Path) -> Score:
    return scorer(tiny_folder, "cpu")


@pytest.fixture(scope="module")
def matching(tiny_folder: Path) -> Engine:
    return Config(type="transformers").build(tiny_folder)


@pytest.fixture
def find(
    requests: list[Request], tiny_folder: Path, tokenizer: Any, score: Score
) -> Callable[..., Finding]:
    def found(engine: Engine, threshold: float = THRESHOLD, dtype: str = "float32") -> Finding:
        model = model_id_of(tiny_folder)
        return compare(requests, engine, model, tokenizer, score, dtype, threshold)

    return found


def claiming(folder: Path, like: Path, **options: Any) -> Claiming:
    """The engine of a folder, which claims to hold the model of another."""
    return Claiming(Config(type="transformers").build(folder), str(model_id_of(like)), **options)


def changed(folder: Path, tmp_path: Path, name: str, change: Callable[[str], str]) -> Path:
    """A copy of a checkpoint folder with one text file changed."""
    copied = shutil.copytree(folder, tmp_path / "changed")
    before = (copied / name).read_text()
    (copied / name).write_text(change(before))
    assert (copied / name).read_text() != before
    return copied


def permuted(text: str) -> str:
    """A tokenizer whose characters stand for one another, its special tokens as they were."""
    told = json.loads(text)
    vocabulary = told["model"]["vocab"]
    characters = [token for token in vocabulary if len(token) == 1]
    places = [vocabulary[token] for token in characters]
    told["model"]["vocab"] |= dict(zip(characters, [*places[1:], places[0]], strict=True))
    return json.dumps(told)


def test_a_matching_engine_gives_no_suspect_and_next_to_no_gap(
    find: Callable[..., Finding], matching: Engine, requests: list[Request]
) -> None:
    found = find(matching)
    assert (found.suspect, found.seen) == (None, "")
    assert found.gap.mean < 1e-4
    assert found.gap.mean <= found.gap.most
    assert found.gap.tokens >= len(requests)


def test_another_order_of_replies_changes_nothing(
    find: Callable[..., Finding], matching: Engine, tiny_folder: Path
) -> None:
    assert find(claiming(tiny_folder, tiny_folder)) == find(matching)


def test_the_gap_is_the_mean_over_tokens_by_hand(
    find: Callable[..., Finding], tiny_folder: Path
) -> None:
    """Each token of the first reply is told 0.5 too high, each of the others as it is."""

    def shift(place: int, reply: Completion) -> Completion:
        told = tuple(x + 0.5 for x in reply.logprobs or ())
        return replace(reply, logprobs=told) if place == 0 else reply

    engine = claiming(tiny_folder, tiny_folder, changed=shift)
    found = find(engine, threshold=1.0)
    assert found.gap.most == pytest.approx(0.5, abs=1e-4)
    assert found.gap.mean == pytest.approx(0.5 * 16 / found.gap.tokens, abs=1e-4)


@pytest.mark.parametrize("claims", [True, False])
def test_stale_weights_are_found_by_their_numbers_and_by_their_name(
    find: Callable[..., Finding], tiny_folder: Path, tmp_path: Path, claims: bool
) -> None:
    other = tiny.Config(
        type="tiny", digits=3, hidden_size=16, layers=1, heads=1, steps=0, seed=1
    ).build()
    stale = other.prepare(tmp_path, lambda done, total: None)
    found = find(claiming(stale, tiny_folder if claims else stale))
    assert found.suspect == "weights"
    assert found.gap.mean > THRESHOLD
    said = f"differ by {found.gap.mean:.3f} nats a token" if claims else str(model_id_of(stale))
    assert said in found.seen


def test_a_checkpoint_of_another_name_is_found_where_its_numbers_are_near(
    find: Callable[..., Finding], tiny_folder: Path
) -> None:
    """One small step of training may leave every probability within the threshold."""
    engine = claiming(tiny_folder, tiny_folder)
    engine.weight_version = str(ids.mint("m", "the round before"))
    found = find(engine)
    assert found.suspect == "weights"
    assert found.gap.mean < 1e-4


def test_a_weight_version_that_is_no_model_id_says_nothing(
    find: Callable[..., Finding], tiny_folder: Path
) -> None:
    engine = claiming(tiny_folder, tiny_folder)
    engine.weight_version = "v1"
    assert find(engine).suspect is None


@pytest.mark.parametrize("claims", [True, False])
def test_another_chat_template_is_found(
    find: Callable[..., Finding], tiny_folder: Path, tmp_path: Path, claims: bool
) -> None:
    other = changed(
        tiny_folder, tmp_path, "chat_template.jinja", lambda text: text.replace("\\n", "=")
    )
    found = find(claiming(other, tiny_folder if claims else other))
    assert found.suspect == "template"
    assert "a0+a1=" in found.seen and "a0+a1\\n" in found.seen


@pytest.mark.parametrize("claims", [True, False])
def test_another_tokenizer_is_found(
    find: Callable[..., Finding], tiny_folder: Path, tmp_path: Path, claims: bool
) -> None:
    other = changed(tiny_folder, tmp_path, "tokenizer.json", permuted)
    found = find(claiming(other, tiny_folder if claims else other))
    assert found.suspect == "tokenizer"
    assert found.gap.mean < 1e-4  # the ids went in as they are


def test_special_tokens_may_be_written_out_or_left_out(
    find: Callable[..., Finding], tiny_folder: Path, tokenizer: Any
) -> None:
    def written_out(place: int, reply: Completion) -> Completion:
        ended = reply.token_ids[-1] == tokenizer.eos_token_id
        return replace(reply, text=tokenizer.decode(reply.token_ids[: -1 if ended else None]))

    specials = set(tokenizer.all_special_ids)
    seen: list[bool] = []

    def watched(place: int, reply: Completion) -> Completion:
        seen.append(bool(specials & set(reply.token_ids[:-1])))
        return written_out(place, reply)

    assert find(claiming(tiny_folder, tiny_folder, changed=watched)).suspect is None
    assert any(seen)


def spread(folder: Path, tmp_path: Path) -> Path:
    """A copy whose weights are larger, so that number formats matter."""
    from safetensors.torch import load_file, save_file

    copied = shutil.copytree(folder, tmp_path / "spread")
    weights = load_file(copied / "model.safetensors")
    save_file(
        {k: v * (8 if v.dim() > 1 else 1) for k, v in weights.items()},
        copied / "model.safetensors",
        {"format": "pt"},
    )
    return copied


@pytest.mark.parametrize(("sampler", "trainer"), [("bfloat16", "float32"), ("float32", "bfloat16")])
def test_number_formats_are_told_from_weights(
    requests: list[Request], tiny_folder: Path, tmp_path: Path, tokenizer: Any, sampler: Any,
    trainer: str,
) -> None:  # fmt: skip
    folder = spread(tiny_folder, tmp_path)
    engine, own = Config(type="transformers", dtype=sampler).build(folder), scorer(folder, "cpu")

    def found(dtype: str, threshold: float) -> Finding:
        return compare(requests, engine, model_id_of(folder), tokenizer, own, dtype, threshold)

    apart, same = found(trainer, 99.0).gap.mean, found(sampler, 99.0).gap.mean
    assert apart > 2 * same
    between = found(trainer, (apart + same) / 2)
    assert between.suspect == "dtype"
    assert between.gap.mean == pytest.approx(apart)
    assert f"{sampler} in the sampler, {trainer} in the trainer" in between.seen
    assert found(trainer, 1.01 * apart).suspect is None
    assert found(trainer, same / 2 if same else -1.0).suspect == "weights"


def silent(place: int, reply: Completion) -> Completion:
    return replace(reply, logprobs=None, from_text=True)


def test_an_engine_without_numbers_is_checked_as_far_as_it_can_be(
    find: Callable[..., Finding], tiny_folder: Path, tmp_path: Path
) -> None:
    quiet = claiming(tiny_folder, tiny_folder, changed=silent, renders=False)
    found = find(quiet)
    assert (found.suspect, found.gap.tokens, found.gap.mean) == (None, 0, 0.0)
    other = changed(
        tiny_folder, tmp_path, "chat_template.jinja", lambda text: text.replace("\\n", "=")
    )
    assert find(claiming(other, tiny_folder, changed=silent)).suspect == "template"
    assert find(claiming(other, tiny_folder, changed=silent, renders=False)).suspect is None
    quiet.weight_version = str(ids.mint("m", "another"))
    assert find(quiet).suspect == "weights"


def test_replies_with_numbers_are_compared_where_others_have_none(
    find: Callable[..., Finding], tiny_folder: Path
) -> None:
    def partly(place: int, reply: Completion) -> Completion:
        told = tuple(x + 0.5 for x in reply.logprobs or ())
        return replace(reply, logprobs=told) if place == 0 else silent(place, reply)

    found = find(claiming(tiny_folder, tiny_folder, changed=partly))
    assert (found.suspect, found.gap.tokens) == ("weights", 16)
    assert found.gap.mean == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize(
    ("dtypes", "allowed"),
    [
        (("float32", "float32"), 0.05),
        (("bfloat16", "bfloat16"), 0.15),
        (("float32", "bfloat16"), 0.15),
        (("float16", "float32"), 0.15),
        (("unknown", "float32"), 0.15),
    ],
)
def test_rounded_number_formats_may_differ_by_more(dtypes: tuple[str, str], allowed: float) -> None:
    assert allowed_gap(dtypes) == allowed
