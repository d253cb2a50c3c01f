# SPDX-License-Identifier: Apache-2.0
"""`hub`: one pinned commit, from a cache of this machine or with an error that says what helps."""

import os
from pathlib import Path

import huggingface_hub
import pytest
from policy_files import COMMIT, write_hub_cache
from pydantic import ValidationError

from flows.environment import settle
from stages.errors import ConfigError
from stages.policies import hub
from stages.policies.checkpoint import model_id_of


@pytest.fixture
def user_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's Hub cache, empty."""
    cache = tmp_path / "user"
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
    return cache


def prepare(models: Path, revision: str = COMMIT) -> Path:
    policy = hub.Config(type="hub", name="some/tiny", revision=revision).build()
    policy.check()
    return policy.prepare(models, lambda done, total: None)


def test_a_commit_in_the_users_cache_is_used_from_there(
    user_cache: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    there = write_hub_cache(user_cache, "some/tiny", tiny_folder)
    assert prepare(tmp_path / "models") == there
    assert model_id_of(there) == model_id_of(tiny_folder)
    assert not (tmp_path / "models").exists()


def test_a_commit_that_was_downloaded_before_is_used(
    user_cache: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    there = write_hub_cache(tmp_path / "models" / "hub", "some/tiny", tiny_folder)
    assert prepare(tmp_path / "models") == there


def test_a_cache_with_a_part_of_the_files_does_not_count(
    user_cache: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    (write_hub_cache(user_cache, "some/tiny", tiny_folder) / "model.safetensors").unlink()
    there = write_hub_cache(tmp_path / "models" / "hub", "some/tiny", tiny_folder)
    assert prepare(tmp_path / "models") == there


def test_another_commit_is_another_model(
    user_cache: Path, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    write_hub_cache(user_cache, "some/tiny", tiny_folder)
    with pytest.raises(ConfigError, match="is in no cache of this machine"):
        prepare(tmp_path / "models", revision="f" * 40)


def test_a_user_who_forbids_the_hub_is_told_the_other_ways(
    user_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv(hub.OFFLINE_BY_DEFAULT, raising=False)
    with pytest.raises(ConfigError) as refused:
        prepare(tmp_path / "models")
    said = str(refused.value)
    assert "unset HF_HUB_OFFLINE" in said and "make smollm2" in said and "folder" in said
    assert len(said.splitlines()) == 1


@pytest.mark.slow
def test_a_hub_that_cannot_be_reached_is_an_error_in_one_line(
    user_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ConfigError) as refused:
        prepare(tmp_path / "models")
    said = str(refused.value)
    assert "cannot be downloaded" in said and "make smollm2" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("revision", ["main", "v1.0", COMMIT[:7], COMMIT.upper(), COMMIT + "0", ""])
def test_only_a_full_commit_is_taken(revision: str) -> None:
    with pytest.raises(ValidationError, match="pin it"):
        hub.Config(type="hub", name="some/tiny", revision=revision)


@pytest.mark.parametrize("name", ["tiny", "/some/tiny", "../some", "a/b/c", "some/"])
def test_a_name_is_an_owner_and_a_model(name: str) -> None:
    with pytest.raises(ValidationError, match="name"):
        hub.Config(type="hub", name=name, revision=COMMIT)


@pytest.mark.parametrize(("given", "forbidden"), [(None, False), ("0", False), ("1", True)])
def test_only_the_user_can_forbid_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, forbidden: bool
) -> None:
    for name in list(os.environ):
        monkeypatch.setenv(name, os.environ[name])
    monkeypatch.delenv(hub.OFFLINE_BY_DEFAULT, raising=False)
    monkeypatch.delenv(hub.OFFLINE)
    if given is not None:
        monkeypatch.setenv(hub.OFFLINE, given)
    with monkeypatch.context():
        settle(tmp_path / "store.duckdb")
        settle(tmp_path / "store.duckdb")
        assert os.environ[hub.OFFLINE] == (given or "1")
        assert hub.offline() is forbidden
        os.environ.pop(hub.OFFLINE_BY_DEFAULT, None)
