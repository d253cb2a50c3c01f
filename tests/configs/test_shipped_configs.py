# SPDX-License-Identifier: Apache-2.0
"""Every config that is shipped loads, and what a run saves of it loads again."""

import json
import re
from pathlib import Path

import pytest
import yaml

from configs.load import check, load
from configs.schema import Config
from report.rounds import header
from stages.equations import equation_key, equations_hold
from stages.errors import ConfigError
from stages.groups import GroupsConfig
from stages.prompts import PromptsConfig, fill_template
from stages.rationalize import hint_shows, template_marks
from stages.update import StepsConfig
from stages.updaters import dpo, grpo
from stages.verifiers import Judgement, judge_text

FOLDER = Path(__file__).resolve().parents[2] / "configs"
SUMS = FOLDER.parent / "tests" / "stages" / "tasks" / "data" / "sums.jsonl"
# Files that others `use`, and prompt and launch files, are no run configs.
SHIPPED = sorted(
    path
    for path in FOLDER.rglob("*.yaml")
    if not {"tasks", "prompts", "launch"} & set(path.relative_to(FOLDER).parts)
)
# Recipes that name no model and no data of their own.
BASES = ("star-gsm8k", "rejection-gsm8k", "star-commonsenseqa", "star-gptj-paper")
GRADIENTS = ("grpo-deepseekmath", "dr-grpo", "dapo", "gspo", "rloo", "prorl", "reinforce")
TO_BE_NAMED = (*BASES, "dpo-irpo-gsm8k", "dpo-online-rlhflow", "dpo-semi-online", *GRADIENTS)
GIVEN = [f"policy.path={FOLDER}", f"task.files={{train: {SUMS}}}"]
PROMPTS = sorted((FOLDER / "prompts").glob("*.yaml"))


def shipped(name: str) -> Config:
    return load(FOLDER / f"{name}.yaml", GIVEN)


def test_configs_are_shipped() -> None:
    assert FOLDER / "star.yaml" in SHIPPED
    assert {path.stem for path in SHIPPED} >= set(TO_BE_NAMED)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_shipped_config_loads_and_its_dump_is_the_same_config(path: Path) -> None:
    config = load(path, GIVEN if path.stem in TO_BE_NAMED else [])
    assert check(config.model_dump()) == config
    assert check(json.loads(config.model_dump_json())) == config


@pytest.mark.parametrize("name", TO_BE_NAMED)
def test_a_recipe_asks_for_its_model_and_its_data(name: str) -> None:
    with pytest.raises(ConfigError, match=r"policy\.path: missing"):
        load(FOLDER / f"{name}.yaml", GIVEN[1:])
    with pytest.raises(ConfigError, match=r"name local copies, task\.files\.train=FILE"):
        load(FOLDER / f"{name}.yaml", GIVEN[:1])


@pytest.mark.parametrize("name", BASES)
def test_a_recipe_stops_where_its_examples_do_and_shows_them_all(name: str) -> None:
    config = shipped(name)
    assert config.prompts is not None and not config.prompts.chat and config.prompts.shots is None
    assert config.prompts.plain.startswith("Q:")
    assert config.generate.sampling.stop == config.evaluate.sampling.stop == ("\nQ:",)
    assert (config.sampler.type, config.update.init_from) == ("vllm", "base")


def test_rft_has_the_papers_numbers() -> None:
    config = shipped("rejection-gsm8k")
    sampling, updater = config.generate.sampling, config.update.updater
    assert (config.rounds, config.generate.n, sampling.temperature) == (1, 100, 0.7)
    assert (config.mix.dedup, config.mix.check_equations) == ("equations", True)
    assert config.mix.seed_rows == 7473
    assert config.task.type == "jsonl" and config.task.demonstrations == 7473
    assert updater.type == "sft" and (updater.learning_rate, updater.batch_size) == (2e-5, 128)
    assert config.update.steps == StepsConfig(epochs=3)
    steps = config.update.steps.of_round(1, 47_000 + 7_473, updater.batch_size)
    assert updater.warmup_steps == round(0.03 * steps)


def dpo_numbers(name: str) -> tuple[Config, dpo.Config]:
    config = shipped(name)
    updater = config.update.updater
    assert config.update.init_from == "round_start" and updater.type == "dpo"
    return config, updater


def test_iterative_rpo_has_the_papers_numbers() -> None:
    config, updater = dpo_numbers("dpo-irpo-gsm8k")
    assert (config.rounds, config.generate.n, config.mix.pairs.rule) == (4, 30, "all_capped(10)")
    assert (updater.losses, updater.weights) == (("sigmoid", "sft"), (1.0, 1.0))
    assert (updater.beta, updater.learning_rate, updater.batch_size) == (0.1, 7e-7, 16)
    assert (config.update.reference, config.update.steps.first) == ("round_start", 5000)


def test_online_iterative_dpo_has_the_papers_numbers() -> None:
    config, updater = dpo_numbers("dpo-online-rlhflow")
    assert (config.rounds, config.generate.n, config.mix.pairs.rule) == (3, 8, "best_worst")
    assert (updater.beta, updater.learning_rate, updater.batch_size) == (0.1, 5e-7, 128)
    assert (updater.schedule, config.update.steps.epochs) == ("cosine", 2)
    assert (config.update.reference, config.mix.history) == ("base", "accumulate")


def test_semi_online_dpo_has_the_papers_numbers() -> None:
    config, updater = dpo_numbers("dpo-semi-online")
    assert (updater.adam_epsilon, updater.max_grad_norm, updater.batch_size) == (1e-4, 0.1, 64)
    assert (updater.beta, updater.learning_rate) == (0.1, 1e-6)
    assert (config.update.reference, config.timing.steps) == ("synced(every 1)", 10)
    assert (config.update.reset_optimizer, config.mix.pairs.rule) == ("never", "random")
    assert (config.generate.sampling.temperature, config.evaluate.n) == (1.0, 50)


def gradients(name: str) -> tuple[Config, grpo.Config, GroupsConfig]:
    config = shipped(name)
    assert config.update.updater.type == "grpo" and config.update.init_from == "round_start"
    assert config.update.updater.dtype == "auto" and config.mix.history == "new_only"
    return config, config.update.updater, config.mix.groups


def rollouts(config: Config) -> int:
    """What a round samples at first."""
    assert isinstance(config.generate.problems.per_round, int)
    return config.generate.problems.per_round * config.generate.n


def test_deepseekmath_holds_to_the_iterations_start_in_the_loss() -> None:
    config, updater, groups = gradients("grpo-deepseekmath")
    assert (config.generate.n, config.generate.sampling.max_tokens) == (64, 1024)
    assert (updater.beta, updater.batch_size, updater.learning_rate) == (0.04, 1024, 1e-6)
    assert (updater.loss, updater.kl_correction, config.timing.steps) == ("grpo", False, 1)
    assert config.refreshes_of(1) * updater.batch_size == rollouts(config)
    assert (groups.baseline, groups.scale, groups.equal) == ("group_mean", "group", "keep")
    assert (config.rounds, config.update.reference) == (2, "round_start")


def test_dr_grpo_divides_by_constants_alone() -> None:
    config, updater, groups = gradients("dr-grpo")
    assert (updater.loss, updater.length) == ("dr_grpo", config.generate.sampling.max_tokens)
    assert (updater.length, config.generate.n, groups.scale) == (3000, 8, "none")
    assert (updater.epsilon, updater.top, updater.beta) == (0.2, 0.2, 0.0)


def test_dapo_clips_higher_and_tries_until_its_groups_are_mixed() -> None:
    config, updater, groups = gradients("dapo")
    assert (updater.epsilon, updater.epsilon_high, updater.loss) == (0.2, 0.28, "dapo")
    assert (groups.wanted, config.generate.n, groups.equal) == (512, 16, "drop")
    assert groups.tries > 1 and updater.beta == 0
    assert config.update.steps.of_round(1, 512 * 16, updater.batch_size) == 16
    assert updater.warmup_steps == 20 * 16
    _, overlong = config.verifier.parts
    assert (overlong.rule, overlong.l_max, overlong.l_cache) == ("soft_overlong", 20480, 4096)
    assert config.verifier.weights == (1.0, 1.0)
    assert config.evaluate.n == 32 and config.evaluate.sampling.top_p == 0.7


def test_gspo_clips_the_whole_sequence() -> None:
    config, updater, _ = gradients("gspo")
    assert (updater.ratio, updater.epsilon, updater.epsilon_high) == ("sequence", 3e-4, 4e-4)
    assert (updater.loss, updater.beta) == ("grpo", 0.0)
    assert rollouts(config) == 4 * updater.batch_size


def test_rloo_has_its_kl_in_the_reward() -> None:
    config, updater, groups = gradients("rloo")
    assert (groups.baseline, groups.scale, groups.kl) == ("leave_one_out", "none", 0.03)
    assert (updater.beta, updater.ratio, config.update.reference) == (0.0, "none", "base")
    assert (config.generate.n, rollouts(config), updater.batch_size) == (4, 512, 256)


def test_prorl_keeps_a_kl_clips_at_two_fifths_and_lets_answers_grow() -> None:
    config, updater, groups = gradients("prorl")
    assert (updater.epsilon, updater.epsilon_high, updater.learning_rate) == (0.2, 0.4, 2e-6)
    assert updater.beta > 0 and config.update.reference == "base"
    assert (config.update.reset_optimizer, config.update.resets) == ("never", "on_plateau(60)")
    assert config.evaluate.every == 20  # three measures
    assert (config.generate.sampling.temperature, config.generate.n) == (1.2, 16)
    assert (groups.wanted, groups.equal) == (256, "drop")
    assert updater.batch_size == 64 * config.generate.n
    lengths = {n: config.generate.sampling_of(n).max_tokens for n in (1, 1800, 1801, 2000)}
    assert lengths == {1: 8192, 1800: 8192, 1801: 16384, 2000: 16384}
    assert config.evaluate.sampling.max_tokens == 16384


def test_reinforce_is_measured_by_earlier_rewards() -> None:
    config, updater, groups = gradients("reinforce")
    assert (config.generate.n, groups.baseline, groups.scale) == (1, "running_mean", "none")
    assert (updater.ratio, updater.loss, updater.length) == ("none", "dr_grpo", 1)
    assert rollouts(config) == updater.batch_size


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("grpo-deepseekmath", "KL k3 in the loss with β 0.04, clip 0.2/0.2 of each token's ratio"),
        ("dr-grpo", "advantage by group_mean, equal groups kept, loss dr_grpo"),
        ("dapo", "equal groups dropped, 512 groups in 10 tries, loss dapo, no reference, no KL, "
                 "clip 0.2/0.28 of each token's ratio"),
        ("gspo", "no KL, clip 0.0003/0.0004 of each sequence's ratio"),
        ("rloo", "reference base, KL k1 in the reward with β 0.03, no clipping"),
        ("prorl", "reference base, KL k3 in the loss with β 0.001, clip 0.2/0.4 of each token's"),
        ("reinforce", "advantage by running_mean, equal groups kept, loss dr_grpo, no reference, "
                      "no KL, no clipping"),
    ],
)  # fmt: skip
def test_a_header_names_advantage_kl_and_clip(name: str, said: str) -> None:
    assert said in header(shipped(name))


def test_gptj_has_the_papers_numbers() -> None:
    config = shipped("star-gptj-paper")
    sampling, updater, steps = config.generate.sampling, config.update.updater, config.update.steps
    assert (sampling.temperature, sampling.top_p, sampling.max_tokens) == (0.01, 0.9, 96)
    assert (config.generate.n, config.generate.problems.per_round) == (1, 10_000)
    assert [steps.of_round(n, 1, 1) for n in (1, 2, 16, config.rounds)] == [40, 48, 616, 7912]
    assert updater.type == "sft" and updater.dtype == "float32"
    assert (updater.learning_rate, updater.warmup_steps, updater.batch_size) == (1e-6, 100, 8)
    assert updater.weight_decay == 0
    assert (config.mix.history, config.mix.dedup) == ("new_only", "none")
    assert config.rationalize.enabled and not (config.prompts and config.prompts.keep_in_training)


def test_star_keeps_the_examples_in_training_where_the_paper_does() -> None:
    found = {name: shipped(f"star-{name}") for name in ("gsm8k", "commonsenseqa")}
    kept = {name: c.prompts and c.prompts.keep_in_training for name, c in found.items()}
    assert kept == {"gsm8k": False, "commonsenseqa": True}
    assert {c.mix.history for c in found.values()} == {"new_only"}


# ── prompt sets ─────────────────────────────────────────────────────────────────────────────


def prompt_set(path: Path) -> PromptsConfig:
    values = yaml.safe_load(path.read_text())
    assert list(values) == ["prompts"]
    return PromptsConfig.model_validate(values["prompts"])


def judge(name: str, completion: str, answer: str) -> Judgement:
    """By the verifier of the recipe that uses the prompt set of the same task."""
    return judge_text(shipped(f"star-{name}").verifier.build(), answer, completion)


def test_the_prompt_sets_have_eight_and_seven_examples() -> None:
    counts = {path.stem: len(prompt_set(path).examples) for path in PROMPTS}
    assert counts == {"gsm8k-few-shot": 8, "commonsenseqa-few-shot": 7}


@pytest.mark.parametrize("path", PROMPTS, ids=lambda path: path.stem)
def test_every_worked_example_is_right_and_one_that_could_train_itself(path: Path) -> None:
    found = prompt_set(path)
    assert found.name == path.stem and found.hint is not None
    for example in found.examples:
        judgement = judge(path.stem.removesuffix("-few-shot"), example.completion, example.answer)
        assert (judgement.status, example.question) == ("correct", example.question)
        assert not hint_shows(example.completion, example.answer, template_marks(found.hint))
        assert "\nQ:" not in example.completion
    assert len({e.question for e in found.examples}) == len(found.examples)


@pytest.mark.parametrize("path", PROMPTS, ids=lambda path: path.stem)
def test_a_hinted_question_has_the_answer_in_parentheses_at_its_end(path: Path) -> None:
    found = prompt_set(path)
    for example in found.examples:
        assert example.hinted is None
        shown = fill_template(found.hint or "", example.question, example.answer)
        assert shown.endswith(f"({example.answer})\nA:\n")
        plain = fill_template(found.plain, example.question, example.answer)
        assert f"({example.answer})" not in plain


def test_the_arithmetic_of_every_gsm8k_example_holds() -> None:
    for example in prompt_set(FOLDER / "prompts" / "gsm8k-few-shot.yaml").examples:
        assert len(equation_key(example.completion)) >= 2
        assert equations_hold(example.completion)


def test_the_letters_of_the_commonsenseqa_examples_are_spread_over_choices_of_five() -> None:
    examples = prompt_set(FOLDER / "prompts" / "commonsenseqa-few-shot.yaml").examples
    assert {e.answer for e in examples} == set("ABCDE")
    for example in examples:
        assert re.findall(r"^([A-E])\. \S", example.question, re.M) == list("ABCDE")
