# SPDX-License-Identifier: Apache-2.0
"""`gguf`: a file is unpacked into the model it was written from, or refused in one line."""

import json
from pathlib import Path

import pytest
import torch
from policy_files import SPECIAL, write_gguf
from transformers import AutoModelForCausalLM

from stages.errors import ConfigError
from stages.policies import gguf
from stages.policies.checkpoint import is_complete, load_tokenizer


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "toy.gguf"
    write_gguf(path)
    return path


def prepare(models: Path, **settings: str) -> Path:
    policy = gguf.Config(type="gguf", **settings).build()
    policy.check()
    return policy.prepare(models, lambda done, total: None)


def refusal(models: Path, path: Path) -> str:
    with pytest.raises(ConfigError) as refused:
        prepare(models, path=str(path))
    said = str(refused.value)
    assert len(said.splitlines()) == 1 and "policy" in said
    assert not models.exists() or not list(models.iterdir())
    return said


def test_the_checkpoint_is_the_model_that_was_written(tmp_path: Path) -> None:
    written = write_gguf(tmp_path / "toy.gguf")
    made = prepare(tmp_path / "models", path=str(tmp_path / "toy.gguf"), dtype="float32")
    read = AutoModelForCausalLM.from_pretrained(made)
    token_ids = torch.tensor([[1, 9, 40, 77, 200, 2]])
    assert is_complete(made)
    with torch.inference_mode():
        torch.testing.assert_close(read(token_ids).logits, written(token_ids).logits)


def test_weights_are_stored_in_the_type_that_is_asked_for(tmp_path: Path, file: Path) -> None:
    made = prepare(tmp_path, path=str(file))
    config = json.loads((made / "config.json").read_text())
    assert config["dtype"] == "bfloat16" and "quantization_config" not in config
    assert AutoModelForCausalLM.from_pretrained(made).dtype == torch.bfloat16


def test_the_tokenizer_is_the_files_own_and_pads_with_its_end_token(
    tmp_path: Path, file: Path
) -> None:
    tokenizer = load_tokenizer(prepare(tmp_path, path=str(file)))
    assert tokenizer.eos_token == tokenizer.pad_token == SPECIAL[2]
    asked = [{"role": "user", "content": "this"}]
    text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    assert text == "<|im_start|>this<|im_end|><|im_start|>"
    token_ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    # "th" is one token, the last of the list: 3 special ones, 256 bytes, then it
    assert token_ids[:2] == [1, 259] and tokenizer.decode(token_ids) == text


def test_a_tokenizer_of_another_folder_can_be_taken(
    tmp_path: Path, file: Path, tiny_folder: Path
) -> None:
    made = prepare(tmp_path, path=str(file), tokenizer=str(tiny_folder))
    assert (made / "tokenizer.json").read_bytes() == (tiny_folder / "tokenizer.json").read_bytes()


def test_a_moved_file_is_not_unpacked_again(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = prepare(tmp_path / "models", path=str(file))
    moved = tmp_path / "moved.gguf"
    moved.write_bytes(file.read_bytes())
    monkeypatch.setattr(gguf.Gguf, "unpack", None)
    assert prepare(tmp_path / "models", path=str(moved)) == made


def test_another_type_makes_another_checkpoint(tmp_path: Path, file: Path) -> None:
    one = prepare(tmp_path, path=str(file), dtype="float32")
    assert one != prepare(tmp_path, path=str(file), dtype="bfloat16")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "is not a file" in refusal(tmp_path / "models", tmp_path / "none.gguf")


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04 no model"])
def test_a_file_that_is_no_gguf_is_refused_at_once(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.gguf"
    path.write_bytes(content)
    assert "it is no GGUF file" in refusal(tmp_path / "models", path)


@pytest.mark.parametrize("share", [0.0003, 0.05, 0.5, 0.99])
def test_a_truncated_file_is_refused(tmp_path: Path, file: Path, share: float) -> None:
    whole, path = file.read_bytes(), tmp_path / "cut.gguf"
    path.write_bytes(whole[: int(len(whole) * share)])
    assert "cannot be unpacked" in refusal(tmp_path / "models", path)


def test_an_architecture_that_is_not_known_is_refused(tmp_path: Path) -> None:
    write_gguf(tmp_path / "odd.gguf", architecture="unheardof")
    assert "unheardof" in refusal(tmp_path / "models", tmp_path / "odd.gguf")


def test_a_type_that_is_not_known_is_refused(tmp_path: Path, file: Path) -> None:
    whole = file.read_bytes()
    # name, two dimensions (32, 260), then the number of the type: 8 is Q8_0
    at = whole.index(b"token_embd.weight") + len(b"token_embd.weight") + 4 + 8 + 8
    assert whole[at : at + 4] == (8).to_bytes(4, "little")
    path = tmp_path / "odd.gguf"
    path.write_bytes(whole[:at] + (99).to_bytes(4, "little") + whole[at + 4 :])
    assert "cannot be unpacked" in refusal(tmp_path / "models", path)


def test_a_file_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    write_gguf(tmp_path / "plain.gguf", template=None)
    assert "chat template" in refusal(tmp_path / "models", tmp_path / "plain.gguf")
