# SPDX-License-Identifier: Apache-2.0
"""Whether a run's verifier and reward can teach what its recipe trains on."""

from typing import Any


def check_rewards(config: Any) -> None:
    """ValueError where nothing tells right from wrong, or nothing reads the reward."""
    verifier, reward, updater = config.verifier.build(), config.reward, config.update.updater
    rollouts = updater.rows == "rollout"
    asks = {
        f"a run with reward {reward.type!r} is measured by right answers" if reward else "": reward,
        f"updater {updater.type!r} trains by right answers": not rollouts,
        f"rule among({verifier.group}) asks which answers are right": verifier.group is not None,
    }
    why = next((why for why, holds in asks.items() if holds), None)
    if not verifier.decides and why:
        raise ValueError(
            f"verifier.type is {verifier.name!r}, which tells no right answer from a wrong one, "
            f"and {why}: use verifier.type: weighted, with a part such as {{type: numeric}}"
        )
    if verifier.group not in (None, config.generate.n):
        raise ValueError(
            f"verifier has rule among({verifier.group}) and generate.n is {config.generate.n}: all "
            f"answers to a problem are compared, write among({config.generate.n})"
        )
    if reward and not rollouts:
        raise ValueError(
            f"reward is {reward.type!r}, and updater {updater.type!r} reads none, only what is "
            "right: leave it out, or use an updater that trains on rollouts"
        )
    groups = config.mix.groups
    if reward and config.recipe == "grpo" and groups.equal == "drop":
        raise ValueError(
            f"reward is {reward.type!r} and mix.groups.equal is drop: a control arm takes the "
            "steps that teach nothing too, use mix.groups.equal: keep"
        )
