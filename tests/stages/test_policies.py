# SPDX-License-Identifier: Apache-2.0
"""Every policy through the same cases. A new one needs a line in `files`."""

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import huggingface_hub
import pytest
from plug_ins import in_folder, in_union, type_of
from policy_files import COMMIT, write_adapter, write_gguf, write_hub_cache
from pydantic import ValidationError
from transformers import AutoModelForCausalLM, AutoTokenizer

from stages import policies
from stages.errors import ConfigError
from stages.policies import folder, tiny
from stages.policies.checkpoint import is_complete, model_id_of
from stages.settings import identity

POLICIES = in_folder(policies)
TRAINED = {
    "digits": 2, "hidden_size": 16, "layers": 1, "heads": 1, "steps": 3, "batch_size": 4,
    "two_digit_examples": 20, "warmup_steps": 1,
}  # fmt: skip
SETTINGS: dict[str, dict[str, Any]] = {}
each_policy = pytest.mark.parametrize("name", POLICIES)


@pytest.fixture(scope="module", autouse=True)
def files(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What `settings_of` names: a GGUF file, an adapter, a Hub cache as the user's own."""
    folder = tmp_path_factory.mktemp("files")
    write_gguf(folder / "toy.gguf")
    write_adapter(tiny_folder, folder / "adapter")
    write_hub_cache(folder / "hub", "some/tiny", tiny_folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(folder / "hub"))
        SETTINGS.update(
            tiny=TRAINED,
            folder={"path": str(tiny_folder)},
            gguf={"path": str(folder / "toy.gguf")},
            lora={"base": str(tiny_folder), "adapter": str(folder / "adapter")},
            hub={"name": "some/tiny", "revision": COMMIT},
        )
        yield folder


def settings_of(name: str) -> dict[str, Any]:
    return SETTINGS[name]


def prepare(name: str, models: Path) -> Path:
    policy = POLICIES[name](type=name, **settings_of(name)).build()
    policy.check()
    prepared: Path = policy.prepare(models, lambda done, total: None)
    return prepared


def test_every_policy_file_is_in_the_union() -> None:
    assert set(POLICIES.values()) == in_union(policies.PolicyConfig)


@each_policy
def test_a_config_is_strict_frozen_and_named_by_its_file(name: str) -> None:
    settings = settings_of(name)
    config = POLICIES[name](type=name, **settings)
    assert type_of(type(config)) == (name,)
    with pytest.raises(ValidationError, match="frozen"):
        config.type = name
    with pytest.raises(ValidationError, match="Extra inputs"):
        type(config)(type=name, **settings, unheard_of=1)


@each_policy
def test_a_prepared_policy_is_an_ordinary_checkpoint_that_can_chat(
    name: str, tmp_path: Path
) -> None:
    made = prepare(name, tmp_path / "models")
    tokenizer = AutoTokenizer.from_pretrained(made, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(made, local_files_only=True)
    assert model.get_input_embeddings().num_embeddings >= len(tokenizer)
    assert tokenizer.eos_token_id is not None and tokenizer.pad_token_id is not None
    asked = [{"role": "user", "content": "a1+a2="}]
    text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    assert "a1+a2=" in text


@each_policy
def test_preparing_twice_gives_the_same_model(name: str, tmp_path: Path) -> None:
    one = prepare(name, tmp_path / "one")
    again = prepare(name, tmp_path / "one")
    other = prepare(name, tmp_path / "other")
    assert one == again
    assert model_id_of(one) == model_id_of(other)


# tiny


def test_tiny_leaves_one_complete_folder_and_a_note_of_it(tmp_path: Path) -> None:
    made = prepare("tiny", tmp_path / "models")
    assert is_complete(made) and made.name == str(model_id_of(made))
    (note,) = set((tmp_path / "models").iterdir()) - {made}
    assert json.loads(note.read_text()) == {"model_id": made.name}


def test_tiny_trains_once_and_says_how_far_it_is(tmp_path: Path) -> None:
    policy, said = tiny.Config(type="tiny", **TRAINED).build(), []
    policy.prepare(tmp_path, lambda done, total: said.append((done, total)))
    policy.prepare(tmp_path, lambda done, total: said.append((done, total)))
    assert said == [(1, 3), (2, 3), (3, 3)]


def test_tiny_is_made_again_where_its_folder_was_spoilt(tmp_path: Path) -> None:
    made = prepare("tiny", tmp_path / "models")
    before = model_id_of(made)
    (made / "config.json").unlink()
    again = prepare("tiny", tmp_path / "models")
    assert again == made and is_complete(again) and str(before) == again.name


@pytest.mark.parametrize("change", [{"seed": 1}, {"steps": 2}, {"learning_rate": 1e-3}])
def test_another_training_makes_another_tiny(tmp_path: Path, change: dict[str, Any]) -> None:
    one = prepare("tiny", tmp_path / "models")
    config = tiny.Config(type="tiny", **{**TRAINED, **change})
    other = config.build().prepare(tmp_path / "models", lambda done, total: None)
    assert other != one and is_complete(one) and is_complete(other)


def test_tiny_refuses_heads_that_do_not_fit_before_it_trains() -> None:
    # 3 heads of an even size need a multiple of 6
    config = tiny.Config(type="tiny", **{**TRAINED, "heads": 3})
    with pytest.raises(ConfigError, match=r"policy\.hidden_size: 16 is not a multiple"):
        config.build().check()


# folder


def refusal(path: Path) -> str:
    """The line with which a folder is refused."""
    policy = folder.Config(type="folder", path=str(path)).build()
    with pytest.raises(ConfigError) as at_once:
        policy.check()
    with pytest.raises(ConfigError) as refused:
        policy.prepare(path.parent, lambda done, total: None)
    assert str(at_once.value) == str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    assert str(path) in str(refused.value)
    return str(refused.value)


def test_the_path_of_a_folder_is_not_its_identity(tiny_folder: Path) -> None:
    assert identity(folder.Config(type="folder", path=str(tiny_folder))) == {"type": "folder"}


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("config.json", "config.json is missing"),
        ("model.safetensors", "has no *.safetensors"),
        ("tokenizer.json", "has no tokenizer.json"),
        ("chat_template.jinja", "chat template"),
    ],
)
def test_a_folder_without_its_parts_is_refused(
    tiny_folder: Path, tmp_path: Path, missing: str, said: str
) -> None:
    copy = copytree(tiny_folder, tmp_path / "copy")
    (copy / missing).unlink()
    assert said in refusal(copy)


@pytest.mark.parametrize("token", ["eos_token", "pad_token"])
def test_a_folder_without_an_end_or_a_pad_token_is_refused(
    tiny_folder: Path, tmp_path: Path, token: str
) -> None:
    copy = copytree(tiny_folder, tmp_path / "copy")
    settings = json.loads((copy / "tokenizer_config.json").read_text())
    del settings[token]
    (copy / "tokenizer_config.json").write_text(json.dumps(settings))
    assert f"has no {token}: set it in tokenizer_config.json" in refusal(copy)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "is no checkpoint folder" in refusal(tmp_path / "none")
