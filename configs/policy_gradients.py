# SPDX-License-Identifier: Apache-2.0
"""What a run of recipe grpo must say, checked over its sections."""

from typing import Any


def check_policy_gradients(config: Any) -> None:
    """ValueError where the sections of a config do not make policy gradients together."""
    groups = config.mix.groups
    if config.recipe != "grpo":
        if groups != type(groups)():
            raise ValueError(
                f"mix.groups is set, and recipe {config.recipe} has no groups: leave it out, or "
                "use recipe: grpo"
            )
        return
    _check_group(config)
    _check_sampling(config)
    _check_age(config)


def _check_group(config: Any) -> None:
    groups, n = config.mix.groups, config.generate.n
    if n < groups.least:
        raise ValueError(
            f"generate.n is {n}: an answer is weighed against others to its problem, use 2 or "
            "more (8 is common), or mix.groups: {baseline: running_mean, scale: none, equal: keep}"
        )
    if groups.tries > 1 and config.generate.problems.per_round == "all":
        raise ValueError(
            f"generate.problems.per_round is all and mix.groups.tries {groups.tries}: there are no "
            "further problems to try, give a number"
        )


def _check_sampling(config: Any) -> None:
    """Rollouts must be drawn from the whole distribution, and after the prompt that is trained."""
    sampling, prompts = config.generate.sampling, config.prompts
    cuts = {"top_p": (sampling.top_p, 1.0), "top_k": (sampling.top_k, 0)}
    for name, (value, whole) in cuts.items():
        if value != whole:
            raise ValueError(
                f"generate.sampling.{name} is {value:g}: tokens that it cuts off have no ratio, "
                f"policy gradients need {whole:g}; evaluate.sampling may cut"
            )
    if not sampling.temperature:
        raise ValueError(
            "generate.sampling.temperature is 0: greedy answers are all alike, use 1.0"
        )
    if config.mix.groups.kl and sampling.temperature != 1.0:
        raise ValueError(
            f"generate.sampling.temperature is {sampling.temperature:g} and mix.groups.kl compares "
            "with the reference at temperature 1: use 1.0, or update.updater.beta (KL in the loss)"
        )
    if prompts is not None and prompts.examples and not prompts.keep_in_training:
        raise ValueError(
            "prompts.keep_in_training is false: policy gradients train on the prompt that was "
            "sampled from, with its examples; set it to true, or leave the examples out"
        )


def _check_age(config: Any) -> None:
    """A loss without a ratio takes what the policy itself sampled, and nothing older."""
    updater, mix = config.update.updater, config.mix
    never = config.timing.policy_refresh == "never"
    if getattr(updater, "ratio", "token") != "none" or not (mix.history != "new_only" or never):
        return
    if never or mix.max_policy_age != 0:
        asked = "timing.policy_refresh is never" if never else f"mix.history is {mix.history}"
        raise ValueError(
            f"{asked}, and update.updater.ratio none takes no older policy's rollouts: use "
            "mix.history: new_only, or ratio: token"
        )
