# SPDX-License-Identifier: Apache-2.0
"""`lora`: base and adapter are merged; the id hashes both, the row names the base."""

import json
import sys
from pathlib import Path
from shutil import copytree

import pytest
import torch
from policy_files import write_adapter
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from stages.errors import ConfigError
from stages.policies import lora
from stages.policies.checkpoint import is_complete, model_id_of, model_row


@pytest.fixture
def adapter(tiny_folder: Path, tmp_path: Path) -> Path:
    write_adapter(tiny_folder, tmp_path / "adapter")
    return tmp_path / "adapter"


def prepare(base: Path, adapter: Path, models: Path) -> Path:
    policy = lora.Config(type="lora", base=str(base), adapter=str(adapter)).build()
    policy.check()
    return policy.prepare(models, lambda done, total: None)


def nudge(path: Path) -> None:
    weights = load_file(path)
    name = min(weights)
    weights[name] = weights[name] + 0.5
    save_file(weights, path, metadata={"format": "pt"})


def test_the_merged_model_says_what_base_and_adapter_say(tiny_folder: Path, tmp_path: Path) -> None:
    adapted = write_adapter(tiny_folder, tmp_path / "adapter")
    made = prepare(tiny_folder, tmp_path / "adapter", tmp_path / "models")
    merged, plain = map(AutoModelForCausalLM.from_pretrained, (made, tiny_folder))
    token_ids = torch.tensor([[1, 4, 5, 6, 30]])
    with torch.inference_mode():
        told = adapted(input_ids=token_ids).logits
        torch.testing.assert_close(merged(token_ids).logits, told, atol=1e-4, rtol=1e-4)
        assert (plain(token_ids).logits - told).abs().max() > 1e-3
    assert is_complete(made)


def test_the_row_names_the_base(tiny_folder: Path, adapter: Path, tmp_path: Path) -> None:
    row = model_row(prepare(tiny_folder, adapter, tmp_path / "models"), "outside", tmp_path)
    assert row.base_model_id == model_id_of(tiny_folder) != row.model_id
    assert model_row(tiny_folder, "outside", tmp_path).base_model_id is None


@pytest.mark.parametrize("file", ["adapter_model.safetensors", "adapter_config.json", "base"])
def test_base_weights_and_settings_of_the_adapter_change_the_id(
    tiny_folder: Path, adapter: Path, tmp_path: Path, file: str
) -> None:
    before = prepare(tiny_folder, adapter, tmp_path / "models")
    base = copytree(tiny_folder, tmp_path / "base")
    if file == "base":
        nudge(base / "model.safetensors")
    elif file == "adapter_config.json":
        settings = json.loads((adapter / file).read_text())
        (adapter / file).write_text(json.dumps({**settings, "lora_alpha": 6}))
    else:
        nudge(adapter / file)
    after = prepare(base, adapter, tmp_path / "models")
    assert model_id_of(after) != model_id_of(before)


def test_the_id_is_that_of_base_and_adapter_wherever_they_lie(
    tiny_folder: Path, adapter: Path, tmp_path: Path
) -> None:
    one = prepare(tiny_folder, adapter, tmp_path / "one")
    base, moved = copytree(tiny_folder, tmp_path / "b"), copytree(adapter, tmp_path / "a")
    assert prepare(base, moved, tmp_path / "two").name == one.name == str(model_id_of(one))


def test_merged_weights_that_were_changed_have_an_id_of_their_own(
    tiny_folder: Path, adapter: Path, tmp_path: Path
) -> None:
    made = prepare(tiny_folder, adapter, tmp_path / "models")
    nudge(made / "model.safetensors")
    row = model_row(made, "outside", tmp_path)
    assert str(row.model_id) != made.name and row.base_model_id is None


def refusal(base: Path, adapter: Path, models: Path) -> str:
    with pytest.raises(ConfigError) as refused:
        prepare(base, adapter, models)
    assert len(str(refused.value).splitlines()) == 1
    return str(refused.value)


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
def test_an_adapter_without_its_files_is_refused(
    tiny_folder: Path, adapter: Path, tmp_path: Path, name: str
) -> None:
    (adapter / name).unlink()
    said = refusal(tiny_folder, adapter, tmp_path / "models")
    assert said.startswith(f"policy.adapter: {adapter} has no {name}")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("{", "says no peft_type"),
        ("[]", "says no peft_type"),
        ("{}", "says no peft_type"),
        ('{"peft_type": "IA3"}', "is of peft_type 'IA3', not 'LORA'"),
    ],
)
def test_settings_that_are_not_loras_are_refused(
    tiny_folder: Path, adapter: Path, tmp_path: Path, settings: str, said: str
) -> None:
    (adapter / "adapter_config.json").write_text(settings)
    assert said in refusal(tiny_folder, adapter, tmp_path / "models")


def test_an_adapter_of_another_base_is_refused(
    tiny_folder: Path, adapter: Path, tmp_path: Path
) -> None:
    weights = load_file(adapter / "adapter_model.safetensors")
    wider = {name: torch.cat([value, value], dim=1) for name, value in weights.items()}
    save_file(wider, adapter / "adapter_model.safetensors", metadata={"format": "pt"})
    said = refusal(tiny_folder, adapter, tmp_path / "models")
    assert "does not fit the base" in said and str(tiny_folder) in said


def test_a_base_that_is_no_checkpoint_is_refused(adapter: Path, tmp_path: Path) -> None:
    said = refusal(tmp_path / "none", adapter, tmp_path / "models")
    assert said.startswith("policy.base: ") and "config.json is missing" in said


def test_the_extra_is_named_where_peft_is_missing(
    tiny_folder: Path, adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    assert "extra `lora`" in refusal(tiny_folder, adapter, tmp_path / "models")
