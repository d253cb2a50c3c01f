# SPDX-License-Identifier: Apache-2.0
"""Checkpoint folders: what makes a model's id, when a folder is complete, and publishing."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from stages.errors import ConfigError, UpdaterError
from stages.policies.checkpoint import (
    MARKER,
    copy_tokenizer,
    is_complete,
    lacking,
    load_tokenizer,
    mark_complete,
    model_id_of,
    model_row,
    parameters,
    publish,
)


@pytest.fixture
def copy(tiny_folder: Path, tmp_path: Path) -> Path:
    """A copy of the tiny policy that a test may spoil."""
    return copytree(tiny_folder, tmp_path / "copy")


@pytest.fixture
def draft(copy: Path) -> Path:
    """A finished checkpoint that has no marker yet."""
    (copy / MARKER).unlink()
    return copy


def edit_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def nudge_a_weight(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"] += 1e-3
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


# The id.


@pytest.mark.parametrize(
    "change",
    [
        nudge_a_weight,
        lambda folder: edit_json(folder / "tokenizer.json", version="1.1"),
        lambda folder: edit_json(folder / "tokenizer_config.json", model_max_length=7),
        lambda folder: (folder / "chat_template.jinja").write_text("{{ messages }}"),
        lambda folder: (folder / "chat_template.jinja").unlink(),
        lambda folder: edit_json(folder / "config.json", rope_theta=7.0),
    ],
    ids=[
        "weights",
        "tokenizer",
        "tokenizer config",
        "chat template",
        "no chat template",
        "config",
    ],
)
def test_what_makes_a_model_changes_its_id(
    copy: Path, tiny_folder: Path, change: Callable[[Path], Any]
) -> None:
    change(copy)
    assert model_id_of(copy) != model_id_of(tiny_folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: None,
        lambda folder: edit_json(folder / "config.json", transformers_version="0.0.1"),
        lambda folder: edit_json(folder / "config.json", _name_or_path="/some/where/else"),
        lambda folder: (folder / "README.md").write_text("notes"),
        lambda folder: (folder / MARKER).unlink(),
        lambda folder: (folder / "config.json").write_text(
            json.dumps(json.loads((folder / "config.json").read_text()), indent=7)
        ),
    ],
    ids=["path", "transformers_version", "_name_or_path", "notes", "marker", "layout of config"],
)
def test_what_makes_no_model_keeps_the_id(
    copy: Path, tiny_folder: Path, change: Callable[[Path], Any]
) -> None:
    change(copy)
    assert model_id_of(copy) == model_id_of(tiny_folder)


def test_a_published_folder_is_named_by_its_id(tiny_folder: Path) -> None:
    assert tiny_folder.name == str(model_id_of(tiny_folder))


# The row.


def test_a_model_row_says_what_the_model_is(tiny_folder: Path) -> None:
    row = model_row(tiny_folder, "outside", tiny_folder.parent)
    model = AutoModelForCausalLM.from_pretrained(tiny_folder)
    assert row.model_id == model_id_of(tiny_folder)
    assert row.architecture == "LlamaForCausalLM"
    assert row.parameters == sum(p.numel() for p in model.parameters())
    assert row.path == tiny_folder.name


def test_a_path_outside_is_absolute(tiny_folder: Path, tmp_path: Path) -> None:
    assert model_row(tiny_folder, "outside", tmp_path).path == str(tiny_folder)


# Its parts.


def shard(folder: Path) -> list[str]:
    """Save a folder's weights again in shards of 4 kB, with their index."""
    (folder / MARKER).unlink(missing_ok=True)
    model = AutoModelForCausalLM.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="4KB")
    return sorted(path.name for path in folder.glob("*.safetensors"))


def test_shards_are_one_model(copy: Path, tiny_folder: Path) -> None:
    assert len(shard(copy)) > 1
    assert lacking(copy) is None
    assert parameters(copy) == parameters(tiny_folder)


def test_a_file_that_is_not_loaded_is_not_counted(copy: Path, tiny_folder: Path) -> None:
    (copy / "consolidated.safetensors").write_bytes((copy / "model.safetensors").read_bytes())
    assert parameters(copy) == parameters(tiny_folder)


def test_a_missing_shard_is_named(copy: Path) -> None:
    *_, last = shard(copy)
    (copy / last).unlink()
    assert f"lacks {last}, which model.safetensors.index.json names" in str(lacking(copy))


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"weight_map": 3}'])
def test_a_broken_index_is_named(copy: Path, text: str) -> None:
    (copy / "model.safetensors").rename(copy / "model-00001-of-00001.safetensors")
    (copy / "model.safetensors.index.json").write_text(text)
    assert "broken model.safetensors.index.json" in str(lacking(copy))


def test_pickled_weights_alone_are_refused_with_the_fix(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    said = str(lacking(copy))
    assert "pytorch_model.bin but no *.safetensors" in said and "save_pretrained" in said


def test_a_tokenizer_of_sentencepiece_alone_is_refused_with_the_fix(copy: Path) -> None:
    (copy / "tokenizer.json").rename(copy / "tokenizer.model")
    with pytest.raises(
        ConfigError, match=r"tokenizer\.model but no tokenizer\.json.*AutoTokenizer"
    ):
        load_tokenizer(copy)


# The marker.


def test_the_marker_lists_every_file_with_size_and_hash(draft: Path) -> None:
    (draft / "below").mkdir()
    (draft / "below" / "more.bin").write_bytes(b"123")
    mark_complete(draft)
    listing = json.loads((draft / MARKER).read_text())
    files = {str(p.relative_to(draft)) for p in draft.rglob("*") if p.is_file()}
    assert listing.keys() == files - {MARKER}
    assert listing["below/more.bin"] == {"bytes": 3, "sha256": sha256(b"123").hexdigest()}
    assert is_complete(draft)


def test_the_marker_is_the_newest_file_and_the_only_trace(draft: Path) -> None:
    before = {path.name for path in draft.iterdir()}
    mark_complete(draft)
    times = {path.name: path.stat().st_mtime_ns for path in draft.iterdir()}
    assert times.keys() == before | {MARKER}
    assert max(times.values()) == times[MARKER]


def test_marking_again_takes_in_what_came_since(draft: Path) -> None:
    mark_complete(draft)
    (draft / "config.json").write_text("{}")
    assert not is_complete(draft)
    mark_complete(draft)
    assert is_complete(draft)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / MARKER).unlink(),
        lambda folder: (folder / "tokenizer.json").unlink(),
        lambda folder: (folder / "config.json").write_bytes(
            (folder / "config.json").read_bytes()[:-1]
        ),
        lambda folder: (folder / "config.json").write_bytes(
            (folder / "config.json").read_bytes().replace(b"llama", b"lLama")
        ),
        lambda folder: (folder / MARKER).write_text(""),
        lambda folder: (folder / MARKER).write_text("[]"),
        lambda folder: (folder / MARKER).write_text("null"),
        lambda folder: (folder / MARKER).write_text('{"config.json": 3}'),
        lambda folder: (folder / MARKER).write_text('{"config.json": {}}'),
        lambda folder: (folder / MARKER).write_bytes(b"\xff\xfe"),
    ],
    ids=[
        "no marker",
        "file missing",
        "file cut",
        "file altered",
        "marker empty",
        "marker a list",
        "marker null",
        "marker without sizes",
        "marker without entries",
        "marker binary",
    ],
)
def test_a_spoilt_folder_is_not_complete(copy: Path, spoil: Callable[[Path], Any]) -> None:
    assert is_complete(copy)
    spoil(copy)
    assert not is_complete(copy)


def test_a_torn_marker_is_not_complete(copy: Path) -> None:
    whole = (copy / MARKER).read_text()
    for end in range(0, len(whole), 7):
        (copy / MARKER).write_text(whole[:end])
        assert not is_complete(copy)


def test_a_folder_that_is_not_there_is_not_complete(tmp_path: Path) -> None:
    assert not is_complete(tmp_path / "none")


# Publishing.


def test_publishing_renames_the_draft_to_its_id(draft: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    expected = model_id_of(draft)
    folder = publish(draft, models)
    assert folder == models / str(expected)
    assert is_complete(folder) and not draft.exists()
    assert list(models.iterdir()) == [folder]


def test_an_equal_complete_folder_is_used_as_it_is(
    draft: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    there = copytree(tiny_folder, tmp_path / "models" / tiny_folder.name)
    (draft / "README.md").write_text("of the second draft")
    assert publish(draft, there.parent) == there
    assert not draft.exists() and not (there / "README.md").exists()


def test_a_spoilt_folder_of_that_name_is_replaced(
    draft: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    there = copytree(tiny_folder, tmp_path / "models" / tiny_folder.name)
    (there / "model.safetensors").write_bytes(b"")
    assert publish(draft, there.parent) == there
    assert is_complete(there) and model_id_of(there) == model_id_of(tiny_folder)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_draft_without_its_parts_is_refused(draft: Path, tmp_path: Path, missing: str) -> None:
    (draft / missing).unlink()
    with pytest.raises(UpdaterError, match=r"has no config\.json or no \*\.safetensors"):
        publish(draft, tmp_path)
    assert list(tmp_path.iterdir()) == [draft]


# The tokenizer.


def test_a_tokenizer_is_copied_byte_for_byte(tiny_folder: Path, tmp_path: Path) -> None:
    copy_tokenizer(tiny_folder, tmp_path)
    copied = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert copied.keys() == {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}
    assert all((tiny_folder / name).read_bytes() == content for name, content in copied.items())


def test_a_loaded_tokenizer_writes_and_reads_every_character(tiny_folder: Path) -> None:
    tokenizer = load_tokenizer(tiny_folder)
    text = "<bos>c4b7a8+c5b6a9 (hint 1047)=\na:8+9+0=17;#1047<eos>"
    token_ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(token_ids) == text
    assert tokenizer.unk_token_id not in token_ids
