# SPDX-License-Identifier: Apache-2.0
"""`starloop describe`: every updater, and what a config of one's own trains with."""

import pytest
from typer.testing import CliRunner

from configs.files import FOLDER
from configs.load import load
from flows.cli import app
from report.describe import describe, describe_all
from report.rewards import reward_said
from stages.updaters import CONFIGS, dpo

TINY = FOLDER / "tiny" / "dpo.yaml"
WEIGHTED = (
    "verifier={type: weighted, parts: [{type: exact}, {type: format}, {type: length, l_max: 96, "
    "l_cache: 40}], weights: [1, 0.2, 0]}"
)


def test_every_updater_and_loss_has_its_line() -> None:
    page = describe_all()
    for config in CONFIGS:
        for loss in config.VIEWS:
            assert any(line.split()[1:2] == [loss] for line in page.splitlines()), loss
    for heading in ("data source", "reward", "level", "coefficient of ∇ log π"):
        assert heading in page
    assert "c, r: log π/π_ref" in page and "w: σ(β * Δ / 0.05)" in page


def test_a_config_is_described_with_its_numbers_and_its_losses_alone() -> None:
    updater = "{type: dpo, losses: [sigmoid, sft], weights: [1, 0.25], beta: 0.05}"
    config = load(FOLDER / "dpo.yaml", [f"update.updater={updater}"])
    page = describe("mine", config)
    assert page.startswith("mine\n  recipe  dpo, 4 answers to 1000 problems a round")
    assert "  loss    1 × sigmoid + 0.25 × sft\n" in page
    assert "  β       0.05\n" in page
    assert "ipo" not in page and "DiscoPOP" not in page


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "exact"),
        ([WEIGHTED], "1 × exact + 0.2 × format (metrics: length (rule soft_overlong, l_max 96, "
                     "l_cache 40))"),
        (["verifier={type: all, parts: [{type: exact}, {type: numeric}]}"],
         "all of exact, numeric"),
        (["reward={type: random, p: 0.25, seed: 3}"],
         "random (p 0.25, seed 3) in place of exact: a control arm"),
        (["reward.type=incorrect"], "incorrect in place of exact: a control arm"),
    ],
)  # fmt: skip
def test_the_reward_is_said_with_parts_weights_and_arm(given: list[str], said: str) -> None:
    config = load(TINY, ["update.updater.takes=rollout", *given])
    assert reward_said(config) == said
    assert f"  reward  {said}; " in describe("tiny", config)


def test_the_command_takes_files_and_keys_or_nothing() -> None:
    whole = CliRunner().invoke(app, ["describe"])
    assert whole.exit_code == 0 and all(loss in whole.output for loss in dpo.Config.VIEWS)
    some = CliRunner().invoke(app, ["describe", str(TINY), str(FOLDER / "star.yaml"), "seed=3"])
    assert some.exit_code == 0
    assert [line for line in some.output.splitlines() if line.endswith(".yaml")] == [
        str(TINY), str(FOLDER / "star.yaml"),
    ]  # fmt: skip
