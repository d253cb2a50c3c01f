# SPDX-License-Identifier: Apache-2.0
"""Monitors, alarms and notices in a config: read, written back, refused with the key at fault."""

import json
from pathlib import Path

import pytest

from configs.load import check, differences, load
from stages.alarms import DEFAULTS
from stages.errors import ConfigError
from stages.settings import identity

TRY = Path(__file__).resolve().parents[2] / "configs" / "tiny" / "try.yaml"
RULE = "{watch: length, slice: wrong, above: 400, for: 2, then: hold}"


def test_rules_take_the_place_of_those_built_in_and_come_back_as_they_were_written() -> None:
    assert load(TRY).alarms == DEFAULTS
    config = load(TRY, [f"alarms=[{RULE}]"])
    (rule,) = config.alarms
    assert (rule.slice, rule.above, rule.in_a_row, rule.then) == ("wrong", 400.0, 2, "hold")
    written = config.model_dump(mode="json")
    assert written["alarms"][0]["for"] == 2
    assert check(json.loads(config.model_dump_json())) == config
    assert load(TRY, ["alarms=[]"]).alarms == ()


def test_alarms_and_notices_change_how_not_what() -> None:
    told = load(TRY, [f"alarms=[{RULE}]", "notify.command=[mail-me]"])
    changed, operational = differences(load(TRY), told)
    assert changed == []
    assert [line.partition(":")[0] for line in operational] == ["alarms", "notify.command"]
    assert identity(told) == identity(load(TRY))


def test_a_sample_for_kl_is_identity_once_it_is_said() -> None:
    changed, _ = differences(load(TRY), load(TRY, ["monitors.kl_sample=8"]))
    assert changed == ["monitors.kl_sample: 64 → 8"]
    assert "monitors" not in identity(load(TRY))


def test_kl_is_measured_where_it_is_said() -> None:
    assert not load(TRY).measures_kl  # recipe star
    assert load(TRY, ["monitors.kl=true"]).measures_kl


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "alarms=[{watch: length, abov: 1}]",
            r"alarms\.0\.abov: unknown key .*mean 'above'",
        ),
        ("alarms=[{watch: length, fro: 1}]", r"alarms\.0\.fro: unknown key .*did you mean 'for'"),
        ("alarms=[{above: 1}]", r"alarms\.0\.watch: missing"),
        ("alarms=[{watch: lenght, above: 1}]", r"alarms\.0\.watch: 'lenght' is not watched: use"),
        ("alarms=[{watch: length}]", r"alarms\.0: there is no bound: give above, below"),
        (
            "alarms=[{watch: length, above: 1, also: [{watch: entropy, blow: 1}]}]",
            r"alarms\.0\.also\.0\.blow: unknown key .*did you mean 'below'",
        ),
        ("monitors.kl_sample=0", r"monitors\.kl_sample: 0 is not allowed"),
        ("notify.when=[ended]", r"notify\.when\.0: 'ended' is not allowed"),
        ("notify.command=[]", r"notify\.command: \[\] is not allowed"),
        ("notify.comand=[mail]", r"notify\.comand: unknown key .*did you mean 'command'"),
    ],
)
def test_a_fault_names_its_key_and_the_fix(given: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(TRY, [given])
