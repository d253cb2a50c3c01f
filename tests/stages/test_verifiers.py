# SPDX-License-Identifier: Apache-2.0
"""Every verifier through the same cases. A new one needs a line in SETTINGS and in EXAMPLES."""

import json
from math import isfinite
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plug_ins import in_folder, in_union, type_of
from pydantic import ValidationError

from stages import verifiers
from stages.rows import Status
from stages.settings import canonical
from stages.verifiers import Answer, Judgement, VerifierPart

VERIFIERS = in_folder(verifiers)
PARTS = [
    {"type": "exact"},
    {"type": "format"},
    {"type": "length", "rule": "among(8)"},
    {"type": "distance", "wanted": 2, "of": "words"},
]
# name, or name and variant → its settings
SETTINGS: dict[str, dict[str, Any]] = {
    "exact": {},
    "numeric": {},
    "choice": {},
    "format": {},
    "format opened": {"opened": True},
    "length": {"l_max": 20, "l_cache": 10},
    "length among": {"rule": "among(8)"},
    "distance": {"wanted": 2},
    "distance by reference": {"wanted": "reference", "of": "words", "after": "#"},
    "all": {"parts": [{"type": "exact"}, {"type": "numeric", "mark": "#"}, {"type": "format"}]},
    "any": {"parts": [{"type": "exact"}, {"type": "numeric"}]},
    "weighted": {"parts": PARTS, "weights": [1.0, 0.25, 0.5, 0.0]},
    "weighted form": {"parts": PARTS[1:3], "weights": [0.25, 0.5]},
}
# → (reference, completion that is right, completion that is wrong); a token is a character
EXAMPLES: dict[str, list[tuple[str, str, str]]] = {
    "exact": [("12", "5+7=12;#12", "5+7=13;#13"), ("ü", "so # ü", "so ü")],
    "numeric": [("12", "5+7=12\n#### $12.00", "5+7=13\n#### 13"), ("1/2", "#### 0.5", "#### .51")],
    "choice": [("B", "Rome is no option, so the answer is (B).", "Answer: C"), ("(A)", "a", "a b")],
    "format": [("12", "<think>5+7</think>#12", "5+7=12;#12"), ("", "<think>?</think>!", "")],
    "format opened": [("12", "5+7</think>#12", "<think>5+7</think>#12"), ("", "a</think>b", "a")],
    "length": [("12", "#12", "5+7 is twelve, so #12"), ("", "", "x" * 11)],
    "length among": [],  # by itself every answer is as long as all answers
    "distance": [("12", "one\ntwo", "one\ntwo\nthree"), ("", "a\n\n \nb", "")],
    "distance by reference": [("2", "so #one two", "so #one"), ("1", "#a#b", "a")],
    "all": [("12", "<think>5+7</think>#12", "#13"), ("7", "#7", "#7#8")],
    "any": [("12", "#12", "#13"), ("1/2", "#### 0.5", "#### 0.6")],
    "weighted": [("12", "<think>5+7</think>#12", "<think>5+7</think>#13"), ("12", "#12", "12")],
    "weighted form": [("12", "<think>5+7</think>#12", "#12"), ("", "<think>?</think>!", "")],
}
FORM = ("format", "format opened", "length", "length among", "weighted form")
DECIDE = [name for name in SETTINGS if name not in FORM]
READ_THE_REFERENCE = [n for n in DECIDE if n != "distance"]
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
each_verifier = pytest.mark.parametrize("name", SETTINGS)
each_that_decides = pytest.mark.parametrize("name", DECIDE)


def build(name: str) -> VerifierPart:
    kind = name.partition(" ")[0]
    part: VerifierPart = VERIFIERS[kind](type=kind, **SETTINGS[name]).build()
    return part


def judge(name: str, reference: str, completion: str) -> Judgement:
    (found,) = build(name).judge([Answer(reference, completion, len(completion))])
    return found


def test_every_verifier_file_is_in_the_union() -> None:
    assert set(VERIFIERS.values()) == in_union(verifiers.VerifierConfig)
    assert VERIFIERS.keys() == {name.partition(" ")[0] for name in SETTINGS}
    assert SETTINGS.keys() == EXAMPLES.keys()


@each_verifier
def test_a_config_is_strict_frozen_and_named_by_its_file(name: str) -> None:
    kind = name.partition(" ")[0]
    config = VERIFIERS[kind](type=kind, **SETTINGS[name])
    assert type_of(type(config)) == (kind,)
    with pytest.raises(ValidationError, match="frozen"):
        config.type = kind
    with pytest.raises(ValidationError, match="Extra inputs"):
        type(config)(type=kind, **SETTINGS[name], unheard_of=1)


@each_verifier
def test_a_config_outlives_the_store(name: str) -> None:
    kind = name.partition(" ")[0]
    config = VERIFIERS[kind](type=kind, **SETTINGS[name])
    stored = json.loads(canonical(config.model_dump(mode="json")))
    assert type(config).model_validate(stored).build().config == config.build().config


@each_verifier
def test_a_verifier_says_who_it_is(name: str) -> None:
    part = build(name)
    assert part.name == name.partition(" ")[0]
    assert part.version and part.config and part.trust and part.isolation
    assert part.decides == (name in DECIDE)
    assert part.trust == ("strong" if name in READ_THE_REFERENCE and "by" not in name else "weak")


@each_verifier
def test_right_is_correct_and_wrong_is_wrong(name: str) -> None:
    for reference, right, wrong in EXAMPLES[name]:
        assert judge(name, reference, right).status == "correct"
        assert judge(name, reference, wrong).status == "wrong"


@each_verifier
@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_odd_text_is_never_an_error_and_never_right(name: str, text: str) -> None:
    reference = EXAMPLES[name][0][0] if EXAMPLES[name] else "12"
    judgement = judge(name, reference, text)
    assert judgement.reason and judgement.score is not None and isfinite(judgement.score)
    assert all(isfinite(value) for _, value, _ in judgement.components)
    if name in DECIDE and not (name == "distance" and text.count("\n") > 1):
        assert judgement.status == "wrong"


@each_verifier
@given(reference=st.text(), completions=st.lists(st.text(), min_size=1, max_size=4))
def test_any_text_is_judged_and_twice_alike(
    name: str, reference: str, completions: list[str]
) -> None:
    answers = [Answer(reference, text, len(text), text[:1] > "e") for text in completions]
    part = build(name)
    judgements = part.judge(answers)
    for judgement in judgements:
        assert judgement.status in get_args(Status)
        assert (judgement.score is None) == (judgement.status == "unjudged")
        names = [component for component, _, _ in judgement.components]
        assert len(set(names)) == len(names)
    assert judgements == part.judge(answers) == build(name).judge(answers)
    assert judgements == part.judge(answers[::-1])[::-1]


@each_that_decides
def test_an_answer_that_was_cut_off_is_wrong(name: str) -> None:
    for reference, right, _ in EXAMPLES[name]:
        (found,) = build(name).judge([Answer(reference, right, len(right), truncated=True)])
        assert (found.status, found.reason) == ("wrong", "truncated")
        assert found.score is not None and found.score <= 0.0


@pytest.mark.parametrize("name", READ_THE_REFERENCE)
@pytest.mark.parametrize("reference", ["", " ", "\n\t"])
def test_an_empty_reference_is_our_fault(name: str, reference: str) -> None:
    for _, right, wrong in EXAMPLES[name]:
        for completion in (right, wrong, ""):
            judgement = judge(name, reference, completion)
            assert (judgement.status, judgement.score) == ("unjudged", None)


@pytest.mark.parametrize("name", [n for n in SETTINGS if n not in READ_THE_REFERENCE])
@given(reference=st.text(), completion=st.text())
def test_a_reference_that_is_not_read_changes_nothing(
    name: str, reference: str, completion: str
) -> None:
    assert judge(name, reference, completion) == judge(name, "", completion)


@each_verifier
@given(one=st.text(), other=st.text())
def test_sameness_of_answers_is_symmetric_and_every_answer_is_its_own_equal(
    name: str, one: str, other: str
) -> None:
    part = build(name)
    assert part.same_answer(one, one)
    assert part.same_answer(one, other) == part.same_answer(other, one)


@pytest.mark.parametrize("name", READ_THE_REFERENCE)
def test_a_right_answer_is_the_same_as_its_reference(name: str) -> None:
    part = build(name)
    for reference, right, _ in EXAMPLES[name]:
        judgement = judge(name, reference, right)
        assert judgement.extracted is not None and judgement.answered
        assert part.same_answer(judgement.extracted, reference)
