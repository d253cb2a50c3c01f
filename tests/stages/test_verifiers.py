# SPDX-License-Identifier: Apache-2.0
"""Every verifier through the same cases. A new one needs a line in SETTINGS and in EXAMPLES."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plug_ins import in_folder, in_union, type_of
from pydantic import ValidationError

from stages import verifiers
from stages.rows import Status
from stages.verifiers import VerifierPart, judge_text

VERIFIERS = in_folder(verifiers)
SETTINGS: dict[str, dict[str, Any]] = {"exact": {}, "numeric": {}, "choice": {}}
# name → (reference, completion that is right, completion that is wrong)
EXAMPLES = {
    "exact": [("12", "5+7=12;#12", "5+7=13;#13"), ("ü", "so # ü", "so ü")],
    "numeric": [("12", "5+7=12\n#### $12.00", "5+7=13\n#### 13"), ("1/2", "#### 0.5", "#### .51")],
    "choice": [("B", "Rome is no option, so the answer is (B).", "Answer: C"), ("(A)", "a", "a b")],
}
ODD = [
    "",
    " ",
    "#",
    "\0",
    "\x1b[31m\x07\x08",
    "#" * 10_000,
    "9" * 200_000,
    "#" + "9" * 200_000,
    "((((" * 20_000,
    "\\frac{1}{0}",
    "\u202e21#\u200b",
    "#" + "\n" * 50_000 + "12",
    "#nan",
    "#inf",
    "#1e999999999",
    "\ud800#\udfff",
    "####" * 50_000,
    "#### " + "9" * 1_000_000,
    "#### 1e999999999",
    "#### 1/0",
    "#### ١٢",
    "#### \ud80012",
    "#### 12\0",
    "\\boxed{" * 20_000,
    "answer is " * 20_000,
    "The answer is \U0001d401",
    "A or " * 40_000,
]
each_verifier = pytest.mark.parametrize("name", VERIFIERS)


def build(name: str) -> VerifierPart:
    part: VerifierPart = VERIFIERS[name](type=name, **SETTINGS[name]).build()
    return part


def test_every_verifier_file_is_in_the_union() -> None:
    assert set(VERIFIERS.values()) == in_union(verifiers.VerifierConfig)
    assert VERIFIERS.keys() == SETTINGS.keys() == EXAMPLES.keys()


@each_verifier
def test_a_config_is_strict_frozen_and_named_by_its_file(name: str) -> None:
    config = VERIFIERS[name](type=name, **SETTINGS[name])
    assert type_of(type(config)) == (name,)
    with pytest.raises(ValidationError, match="frozen"):
        config.type = name
    with pytest.raises(ValidationError, match="Extra inputs"):
        type(config)(type=name, **SETTINGS[name], unheard_of=1)


@each_verifier
def test_a_verifier_says_who_it_is(name: str) -> None:
    part = build(name)
    assert part.name == name
    assert part.version and part.config and part.trust and part.isolation


@each_verifier
def test_right_is_correct_and_wrong_is_wrong(name: str) -> None:
    part = build(name)
    for reference, right, wrong in EXAMPLES[name]:
        assert judge_text(part, reference, right).status == "correct"
        assert judge_text(part, reference, wrong).status == "wrong"


@each_verifier
@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_odd_text_is_wrong_and_never_an_error(name: str, text: str) -> None:
    judgement = judge_text(build(name), EXAMPLES[name][0][0], text)
    assert judgement.status == "wrong" and judgement.reason


@each_verifier
@given(reference=st.text(), completion=st.text())
def test_any_text_is_judged_and_twice_alike(name: str, reference: str, completion: str) -> None:
    part = build(name)
    judgement = judge_text(part, reference, completion)
    assert judgement.status in get_args(Status)
    assert (judgement.score is None) == (judgement.status == "unjudged")
    assert (
        judgement
        == judge_text(part, reference, completion)
        == judge_text(build(name), reference, completion)
    )


@each_verifier
@pytest.mark.parametrize("reference", ["", " ", "\n\t"])
def test_an_empty_reference_is_our_fault(name: str, reference: str) -> None:
    for _, right, wrong in EXAMPLES[name]:
        for completion in (right, wrong, ""):
            judgement = judge_text(build(name), reference, completion)
            assert (judgement.status, judgement.score) == ("unjudged", None)


@each_verifier
@given(one=st.text(), other=st.text())
def test_sameness_of_answers_is_symmetric_and_every_answer_is_its_own_equal(
    name: str, one: str, other: str
) -> None:
    part = build(name)
    assert part.same_answer(one, one)
    assert part.same_answer(one, other) == part.same_answer(other, one)


@each_verifier
def test_a_right_answer_is_the_same_as_its_reference(name: str) -> None:
    part = build(name)
    for reference, right, _ in EXAMPLES[name]:
        extracted = judge_text(part, reference, right).extracted
        assert extracted is not None and part.same_answer(extracted, reference)
