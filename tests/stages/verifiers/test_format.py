# SPDX-License-Identifier: Apache-2.0
"""`format`: what keeps the form, what breaks it and why, and that it reads no answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.verifiers import Answer, format, judge_text

FORMAT = format.Config(type="format").build()
OPENED = format.Config(type="format", opened=True).build()


@pytest.mark.parametrize(
    "completion",
    [
        "<think>5+7=12</think>#12",
        "\n <think>\n5+7=12\n</think>\n\n#12\n",
        "<think>a < b, so </b> is no tag</think>12",
        "<think>x</think>the wrong answer",
    ],
)
def test_reasoning_once_and_an_answer_after_it_keep_the_form(completion: str) -> None:
    found = judge_text(FORMAT, "12", completion)
    assert (found.status, found.score, found.reason) == ("correct", 1.0, "form_kept")


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        ("", "no_tag"),
        ("#12", "no_tag"),
        ("<think>5+7=12 #12", "no_tag"),
        ("5+7=12</think>#12", "no_tag"),
        ("<THINK>5+7=12</THINK>#12", "no_tag"),
        ("<think></think>#12", "empty_reasoning"),
        ("<think> \n\t</think>#12", "empty_reasoning"),
        ("<think>\u200b\u2060\0</think>#12", "empty_reasoning"),
        ("<think>5+7=12</think>", "no_answer"),
        ("<think>5+7=12</think> \n", "no_answer"),
        ("<think>5+7=12</think>\u200b", "no_answer"),
        ("<think>a</think><think>b</think>#12", "repeated_tag"),
        ("<think><think>a</think></think>#12", "repeated_tag"),
        ("<think>a</think>#12</think>", "repeated_tag"),
        ("<think>" * 9_999 + "a</think>#12", "repeated_tag"),
        ("</think>a<think>#12", "tags_in_wrong_order"),
        ("#12 <think>a</think>#12", "text_before"),
    ],
)
def test_tricks_with_the_form_get_nothing(completion: str, reason: str) -> None:
    found = judge_text(FORMAT, "12", completion)
    assert (found.status, found.score, found.reason) == ("wrong", 0.0, reason)


def test_a_prompt_that_opens_the_reasoning_leaves_the_closing_tag_alone() -> None:
    assert judge_text(OPENED, "12", "5+7=12</think>#12").score == 1.0
    assert judge_text(OPENED, "12", "<think>5+7=12</think>#12").reason == "repeated_tag"
    assert judge_text(OPENED, "12", "</think>#12").reason == "empty_reasoning"


def test_an_answer_that_was_cut_off_has_no_form() -> None:
    (found,) = FORMAT.judge([Answer("12", "<think>a</think>#1", truncated=True)])
    assert (found.status, found.score, found.reason) == ("wrong", 0.0, "truncated")


@given(reasoning=st.text(), answer=st.text(), reference=st.text())
def test_what_is_said_within_the_form_does_not_count(
    reasoning: str, answer: str, reference: str
) -> None:
    found = judge_text(FORMAT, reference, f"<think>so {reasoning}</think>so {answer}")
    tags = any(tag in text for tag in ("<think>", "</think>") for text in (reasoning, answer))
    assert (found.score == 1.0) != tags
