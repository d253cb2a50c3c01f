# SPDX-License-Identifier: Apache-2.0
"""Loading a config: what wins, and one line for everything that is wrong."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from configs.load import NOT_BUILT, check, differences, flat, load
from configs.schema import Config
from stages.errors import ConfigError
from stages.settings import identity

STAR = Path(__file__).resolve().parents[2] / "configs" / "star.yaml"
SMALL: dict[str, Any] = {
    "recipe": "star",
    "task": {"type": "addition"},
    "policy": {"type": "tiny"},
    "sampler": {"type": "scripted"},
    "verifier": {"type": "exact"},
    "update": {"updater": {"type": "tally"}},
}


def write(folder: Path, values: Any, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(values))
    return path


def refusal(path: Path, *overrides: str) -> str:
    """The one line with which a config is refused."""
    with pytest.raises(ConfigError) as refused:
        load(path, overrides)
    assert refused.value.exit_code == 2
    assert len(str(refused.value).splitlines()) == 1
    return str(refused.value)


def test_what_is_not_given_is_the_default(tmp_path: Path) -> None:
    config = load(write(tmp_path, SMALL))
    assert (config.rounds, config.seed, config.evaluate.n) == (5, 0, 16)


def test_the_file_beats_the_default_and_the_command_line_beats_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, {**SMALL, "rounds": 7, "evaluate": {"n": 9}})
    config = load(path, ["rounds=8"])
    assert (config.rounds, config.evaluate.n, config.evaluate.k) == (8, 9, 8)


def test_the_last_override_of_a_key_counts(tmp_path: Path) -> None:
    assert load(write(tmp_path, SMALL), ["rounds=8", "rounds=9"]).rounds == 9


def test_an_override_makes_the_sections_above_it(tmp_path: Path) -> None:
    config = load(write(tmp_path, SMALL), ["generate.sampling.max_tokens=7"])
    assert config.generate.sampling.max_tokens == 7
    assert config.generate.sampling.top_p == 1.0


def test_an_override_reads_its_value_as_yaml(tmp_path: Path) -> None:
    config = load(
        write(tmp_path, SMALL),
        ["generate.problems={band: [0.1, 0.9]}", "mix.cap_per_problem=null", 'verifier.mark="="'],
    )
    assert config.generate.problems.band == (0.1, 0.9)
    assert config.mix.cap_per_problem is None
    assert config.verifier.mark == "="


@pytest.mark.parametrize("text", ["1e-4", "1.0e-4", "0.0001", "1E-4"])
def test_a_number_may_be_written_with_an_exponent(text: str) -> None:
    config = load(STAR, [f"update.updater.learning_rate={text}"])
    assert flat(config)["update.updater.learning_rate"][0] == 0.0001


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("mix.seed_row=3", "mix.seed_row: unknown key (value 3); did you mean 'seed_rows'?"),
        (
            "generate.problms.n=5",
            "generate.problms: unknown key (value {'n': 5}); did you mean 'problems'?",
        ),
        ("policy.digit=3", "policy.digit: unknown key (value 3); did you mean 'digits'?"),
        (
            "update.updater.learning_rat=0.1",
            "update.updater.learning_rat: unknown key (value 0.1); did you mean 'learning_rate'?",
        ),
        (
            "gates.zzz=1",
            "gates.zzz: unknown key (value 1); known here: max_unjudged, max_gap, preflight",
        ),
        ("rounds=five", "rounds: 'five' is not allowed; input should be a valid integer"),
        ("rounds=5.0", "rounds: 5.0 is not allowed; input should be a valid integer"),
        ("rounds=true", "rounds: True is not allowed; input should be a valid integer"),
        ("rounds=", "rounds: None is not allowed; input should be a valid integer"),
        ("seed=-1", "seed: -1 is not allowed; input should be greater than or equal to 0"),
        (
            "generate.sampling.top_p=1.5",
            "generate.sampling.top_p: 1.5 is not allowed; input should be less than or equal to 1",
        ),
        (
            "generate.problems.order=random",
            "generate.problems.order: 'random' is not allowed; "
            "input should be 'seeded', 'split' or 'unsolved_first'",
        ),
        (
            "recipe=stars",
            "recipe: 'stars' is not allowed; input should be 'star', 'rejection', 'dpo' or 'grpo'",
        ),
        (
            "verifier.type=exactly",
            "verifier.type: 'exactly' is unknown; allowed: exact, numeric, choice, distance, "
            "format, length, all, any, weighted; did you mean 'exact'?",
        ),
        (
            "update.updater.type=sftt",
            "update.updater.type: 'sftt' is unknown; allowed: command, dpo, grpo, kto, sft, simpo, "
            "tally; did you mean 'sft'?",
        ),
        (
            "update.updater={type: command, command: [x], batch_size: 0}",
            "update.updater.batch_size: 0 is not allowed; "
            "input should be greater than or equal to 1",
        ),
        (
            "update.updater={type: command, command: 'x {data} {out}'}",
            "update.updater.command: 'x {data} {out}' is one text, and no shell reads it: "
            "write a list of a program and its arguments",
        ),
        (
            "update.updater={type: dpo}",
            "update.reference is missing: dpo compares with one; use base, round_start, "
            "synced(every r) or model:…",
        ),
        (
            "update.reference=base",
            "update.reference is 'base', and sft has none: leave it out",
        ),
        (
            "update.updater={type: simpo}",
            "update.updater.type is 'simpo', and recipe star does not make its rows: "
            "use one of sft, tally, or command with rows: sft",
        ),
        ("sampler={}", "sampler.type: missing; it has no default, add it to the config"),
        ("sampler=null", "sampler: None is not allowed; write a section with keys below it"),
        ("generate=3", "generate: 3 is not allowed; write a section with keys below it"),
        ("rounds.x=1", "rounds.x: 'rounds' is 5, not a section with keys below it"),
        (
            "generate.problems.band=[0.9, 0.1]",
            "generate.problems: band is [0.9, 0.1]: use [low, high] with 0 ≤ low ≤ high ≤ 1",
        ),
        (
            "evaluate.k=17",
            "evaluate: k is 17, n is 16: pass@k needs at least k samples",
        ),
        (
            "recipe=rejection",
            "rationalize.enabled is true, but recipe rejection never rationalizes: "
            "set it to false or use `recipe: star`",
        ),
        ("rounds", "'rounds' is not key=value: write for example update.steps.first=50"),
        ("=3", "'=3' is not key=value: write for example update.steps.first=50"),
        ("rounds=[", "rounds: '[' is not a YAML value: quote it"),
    ],
)
def test_a_bad_override_is_refused_in_one_line(override: str, line: str) -> None:
    assert refusal(STAR, override) == line


@pytest.mark.parametrize("value", ["none", "0", "1.5"])
def test_a_field_with_a_choice_of_types_is_named_as_the_reader_wrote_it(value: str) -> None:
    line = refusal(STAR, f"generate.problems.per_round={value}")
    assert line.startswith("generate.problems.per_round: ")
    assert "'all'" in line


def test_more_faults_than_one_are_counted() -> None:
    line = refusal(STAR, "rounds=0", "seed=-1", "evaluate.n=0")
    assert line.startswith("rounds: 0 is not allowed") and line.endswith("(and 2 more)")


@pytest.mark.parametrize("section", ["recipe", "task", "policy", "sampler", "verifier", "update"])
def test_a_missing_section_is_named(tmp_path: Path, section: str) -> None:
    left = {key: value for key, value in SMALL.items() if key != section}
    line = refusal(write(tmp_path, left))
    assert line == f"{section}: missing; it has no default, add it to the config"


@pytest.mark.parametrize(
    ("section", "part", "needs"),
    [
        (section, part, needs)
        for section, parts in NOT_BUILT.items()
        for part, needs in parts.items()
    ],
)
def test_a_part_that_is_not_built_says_what_it_needs(section: str, part: str, needs: str) -> None:
    line = refusal(STAR, f"{section}.type={part}")
    assert line.startswith(
        f"{section}.type: '{part}' is not built yet (it needs {needs}); allowed: "
    )


@pytest.mark.parametrize("section", list(NOT_BUILT))
def test_what_is_built_is_not_listed_as_missing(section: str) -> None:
    line = refusal(STAR, f"{section}.type=nothing")
    allowed = line.split("allowed: ")[1].split(", ")
    assert allowed and not set(allowed) & NOT_BUILT[section].keys()


def test_a_missing_file_names_the_nearest_one(tmp_path: Path) -> None:
    write(tmp_path, SMALL, "star.yaml")
    line = refusal(tmp_path / "stra.yaml")
    assert f"did you mean {tmp_path / 'star.yaml'}?" in line


def test_a_missing_file_in_a_missing_folder_is_refused(tmp_path: Path) -> None:
    line = refusal(tmp_path / "none" / "star.yaml")
    assert "is not a file: name a YAML file" in line


@pytest.mark.parametrize("content", [b"a: [1,\nb: }", b"\xff\xfe\x00", b"a: !!python/object:x {}"])
def test_what_is_not_yaml_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    assert refusal(path).startswith(f"config {path} is not YAML: ")


@pytest.mark.parametrize(
    ("content", "kind"), [("[1, 2]", "list"), ("text", "str"), ("", "NoneType")]
)
def test_what_is_no_mapping_is_refused(tmp_path: Path, content: str, kind: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(content)
    assert refusal(path) == f"config {path} holds {kind}, not keys and values"


def test_flat_names_every_field_with_its_kind() -> None:
    fields = flat(load(STAR))
    assert fields["update.steps.growth"] == (1.2, False)
    assert fields["rounds"] == (5, True)
    assert fields["sampler.shard_size"] == (256, True)
    assert fields["gates.max_unjudged"] == (0.01, True)


def test_identity_leaves_out_what_may_change_on_an_existing_run() -> None:
    one, other = load(STAR), load(STAR, ["rounds=50", "sampler.shard_size=3"])
    assert identity(one) == identity(other)
    assert identity(one) != identity(load(STAR, ["seed=1"]))


def test_differences_are_split_into_identity_and_operational() -> None:
    old = load(STAR)
    new = load(STAR, ["rounds=6", "seed=1", "sampler.device=cpu", "generate.n=2"])
    assert differences(old, new) == (
        ["generate.n: 1 → 2", "seed: 0 → 1"],
        ["rounds: 5 → 6", "sampler.device: auto → cpu"],
    )
    assert differences(old, old) == ([], [])


def test_another_part_differs_in_its_type_and_its_fields() -> None:
    identity_lines, _ = differences(
        load(STAR), load(STAR, ["update.updater={type: tally, batch_size: 64}"])
    )
    assert "update.updater.type: sft → tally" in identity_lines
    assert "update.updater.learning_rate: 0.0015 → None" in identity_lines


def test_a_config_cannot_be_changed() -> None:
    config = check(SMALL)
    with pytest.raises(ValueError, match="frozen"):
        config.rounds = 3  # type: ignore[misc]
    assert isinstance(config, Config)


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text("recipe: star\nseed: 1\nseed: 2\n")
    with pytest.raises(ConfigError, match="key 'seed' stands twice: keep one"):
        load(path)


@pytest.mark.parametrize(
    "override",
    [
        *("update.updater.learning_rate=.inf", "update.updater.max_grad_norm=.inf"),
        *("rounds=99999999999999999999999", "generate.n=1000000000000000"),
        *("generate.sampling.max_tokens=99999999999999999999", "policy.seed=99999999999999999"),
    ],
)
def test_numbers_that_nothing_could_hold_are_refused(override: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(override.partition("=")[0])):
        load(STAR, [override])
