# SPDX-License-Identifier: Apache-2.0
"""`exact`: what counts as the answer, and that no text is too odd for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.verifiers import exact, judge_text

EXACT = exact.Config(type="exact").build()


@pytest.mark.parametrize(
    ("reference", "completion", "status", "extracted", "reason"),
    [
        ("12", "a:5+7+0=12;#12", "correct", "12", "match"),
        ("12", "#12", "correct", "12", "match"),
        ("12", "work # 12 ", "correct", "12", "match"),
        (" 12 ", "#12", "correct", "12", "match"),
        ("12", "#12\nand so on", "correct", "12", "match"),
        ("12", "#12 #12", "correct", "12", "match"),
        ("x y", "#x y", "correct", "x y", "match"),
        ("12", "#13", "wrong", "13", "mismatch"),
        ("12", "#012", "wrong", "012", "mismatch"),
        ("12", "#12.0", "wrong", "12.0", "mismatch"),
        ("12", "# 1 2", "wrong", "1 2", "mismatch"),
        ("a", "#A", "wrong", "A", "mismatch"),
        ("12", "#13#12", "wrong", "12", "two_answers"),
        ("12", "#12#13", "wrong", "13", "two_answers"),
        ("12", "#12\n#13", "wrong", "13", "two_answers"),
        ("12", "12", "wrong", None, "no_answer"),
        ("12", "", "wrong", None, "no_answer"),
        ("12", "12#", "wrong", None, "no_answer"),
        ("12", "#\n12", "wrong", None, "no_answer"),
        ("", "#12", "unjudged", None, "empty_reference"),
        (" \n", "#", "unjudged", None, "empty_reference"),
    ],
)
def test_table(
    reference: str, completion: str, status: str, extracted: str | None, reason: str
) -> None:
    found = judge_text(EXACT, reference, completion)
    assert (found.status, found.extracted, found.reason) == (status, extracted, reason)
    assert found.score == {"correct": 1.0, "wrong": 0.0, "unjudged": None}[status]


def test_another_mark_may_be_set() -> None:
    verifier = exact.Config(type="exact", mark="The answer is").build()
    assert judge_text(verifier, "12", "5 + 7. The answer is 12").status == "correct"
    assert judge_text(verifier, "12", "#12").reason == "no_answer"
    assert verifier.config == '{"mark":"The answer is","type":"exact"}'


@given(st.text(), st.text())
def test_right_means_that_the_reference_stands_after_the_mark(
    reference: str, completion: str
) -> None:
    found = judge_text(EXACT, reference, completion)
    if found.status == "correct":
        assert found.extracted == reference.strip() != ""
        assert reference.strip() in completion.rpartition("#")[2]


@given(st.text("0123456789", min_size=1), st.text().filter(lambda text: "#" not in text))
def test_an_answer_after_any_work_is_found(answer: str, work: str) -> None:
    assert judge_text(EXACT, answer, f"{work}#{answer}").status == "correct"
    assert judge_text(EXACT, answer, f"{work}#{answer}\n{work}").status == "correct"
