# SPDX-License-Identifier: Apache-2.0
"""Rewards that can teach nothing are refused, with the fix; those that can are taken."""

from pathlib import Path
from typing import Any

import pytest

from configs.files import FOLDER
from configs.load import load
from configs.schema import Config
from flows.commands.common import named_run
from stages.errors import ConfigError
from stages.settings import identity

STAR, DPO, GRPO = (FOLDER / "tiny" / f"{name}.yaml" for name in ("try", "dpo", "grpo"))
ROLLOUT = "update.updater.takes=rollout"
FORM = "verifier={type: weighted, parts: [{type: format}, {type: length, rule: among(4)}], " \
       "weights: [1, 1]}"  # fmt: skip
SHAPED = "verifier={type: weighted, parts: [{type: exact}, {type: length, rule: among(4)}], " \
         "weights: [1, 0.5]}"  # fmt: skip


@pytest.mark.parametrize(
    ("file", "given", "said"),
    [
        (STAR, ["verifier={type: format}"],
         "verifier.type is 'format', which tells no right answer from a wrong one, and updater "
         "'tally' trains by right answers: use verifier.type: weighted, with a part such as "
         "{type: numeric}"),
        (DPO, ["verifier={type: length, l_max: 9, l_cache: 3}"], "updater 'tally' trains by right"),
        (DPO, [ROLLOUT, FORM], "'weighted', which tells no right answer from a wrong one, and rule "
                               "among(4) asks which answers are right"),
        (DPO, [ROLLOUT, "verifier={type: format}", "reward.type=incorrect"],
         "a run with reward 'incorrect' is measured by right answers"),
        (DPO, [ROLLOUT, SHAPED, "generate.n=8"],
         "verifier has rule among(4) and generate.n is 8: all answers to a problem are compared, "
         "write among(8)"),
        (STAR, ["reward.type=random"], "reward is 'random', and updater 'tally' reads none, only "
                                       "what is right: leave it out, or use an updater"),
        (DPO, ["reward.type=random"], "reward is 'random', and updater 'tally' reads none"),
        (GRPO, ["reward.type=random"], "reward is 'random' and mix.groups.equal is drop"),
        (DPO, [ROLLOUT, "reward={type: random, p: 1.5}"], "reward.p: 1.5 is not allowed"),
        (DPO, [ROLLOUT, "reward={type: random, p: -0.1}"], "reward.p: -0.1 is not allowed"),
        (DPO, [ROLLOUT, "reward={type: random, p: .nan}"], "reward.p: nan is not allowed"),
        (DPO, [ROLLOUT, "reward.type=randm"],
         "reward.type: 'randm' is unknown; allowed: format_only, incorrect, random; did you mean "
         "'random'?"),
        (DPO, [ROLLOUT, "reward={type: random, q: 1}"], "reward.q: unknown key (value 1); known "
                                                        "here: type, p, seed"),
        (DPO, ["verifier={type: all, parts: [{type: exact, marks: x}]}"],
         "verifier.parts.0.marks: unknown key (value 'x'); did you mean 'mark'?"),
        (DPO, ["verifier={type: weighted, parts: [{type: vibes}], weights: [1]}"],
         "verifier.parts.0.type: 'vibes' is unknown; allowed: "),
        (DPO, ["verifier={type: weighted, parts: [{type: exact}, {type: format}], "
               "weights: [0, 0]}"], "every reward is 0 and nothing can be learned"),
        (DPO, ["verifier={type: length, l_max: 96, l_cache: 96}"],
         "verifier: l_cache is 96, l_max is 96: the penalty begins at"),
        (DPO, ["verifier={type: weighted, parts: [{type: exact}], weights: [.inf]}"],
         "verifier.weights.0: inf is not allowed"),
    ],
)  # fmt: skip
def test_what_cannot_teach_is_refused_with_the_fix(file: Path, given: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(file, given)
    assert said in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("file", "given"),
    [
        (STAR, ["verifier={type: any, parts: [{type: format}, {type: exact}]}"]),
        (STAR, ["verifier={type: distance, wanted: 5}"]),
        (DPO, [ROLLOUT, SHAPED]),
        (DPO, [ROLLOUT, "verifier={type: format}"]),
        (DPO, [ROLLOUT, "reward={type: random, p: 0, seed: 7}"]),
        (DPO, [ROLLOUT, "reward=null"]),
    ],
)  # fmt: skip
def test_what_can_teach_is_taken_and_outlives_the_store(file: Path, given: list[str]) -> None:
    config = load(file, given)
    assert Config.model_validate_json(config.model_dump_json()) == config


def test_a_run_without_an_arm_keeps_its_identity() -> None:
    assert "reward" not in identity(load(STAR))
    armed = load(DPO, [ROLLOUT, "reward.type=random"])
    assert identity(armed)["reward"] == {"type": "random", "p": 0.5, "seed": 0}


@pytest.mark.parametrize(
    ("arm", "given", "named"),
    [
        (None, None, "dpo"),
        (None, "grpo", "grpo"),
        ("random", None, "dpo-random"),
        ("random", "grpo", "grpo-random"),
        ("random", "grpo-random", "grpo-random"),
        ("random", "random", "random"),
        ("random", "grpo_random.2", "grpo_random.2"),
        ("random", "randomised", "randomised-random"),
        ("format_only", "grpo", "grpo-format_only"),
        ("format_only", "grpo-format_only-2", "grpo-format_only-2"),
        ("incorrect", "grpo-random", "grpo-random-incorrect"),
    ],
)
def test_a_run_with_an_arm_has_it_in_its_name(arm: str | None, given: Any, named: str) -> None:
    config = load(DPO, [ROLLOUT, *([f"reward.type={arm}"] if arm else [])])
    assert named_run(given, DPO, config) == named
    assert named_run(named, DPO, config) == named
