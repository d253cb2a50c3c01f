# SPDX-License-Identifier: Apache-2.0
"""Every config that is shipped loads, and what a run saves of it loads again."""

import json
from pathlib import Path

import pytest

from configs.load import check, load

FOLDER = Path(__file__).resolve().parents[2] / "configs"
# Files that others `use`, and prompt and launch files, are no run configs.
SHIPPED = sorted(
    path
    for path in FOLDER.rglob("*.yaml")
    if not {"tasks", "prompts", "launch"} & set(path.relative_to(FOLDER).parts)
)


def test_configs_are_shipped() -> None:
    assert FOLDER / "star.yaml" in SHIPPED


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_shipped_config_loads_and_its_dump_is_the_same_config(path: Path) -> None:
    config = load(path)
    assert check(config.model_dump()) == config
    assert check(json.loads(config.model_dump_json())) == config
