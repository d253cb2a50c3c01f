# SPDX-License-Identifier: Apache-2.0
r"""`choice`: how a letter may be spelled, what is no letter, and which of several counts."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stages.verifiers import choice, judge_text

CHOICE = choice.Config(type="choice").build()
MARKED = choice.Config(type="choice", mark="####").build()
SPELLINGS = ["{}", "({})", "{})", "{}.", "{}:", "[{}]", "**{}**", "**({})**", "(**{}**)", "`{}`"]


def outcome(completion: str) -> tuple[str | None, str]:
    found = judge_text(CHOICE, "B", completion)
    assert (found.status == "correct") == (found.reason == "match")
    return found.extracted, found.reason


@pytest.mark.parametrize(
    "completion",
    [
        *(spelling.format("B") for spelling in SPELLINGS),
        "b",
        "(b)",
        "B: Paris",
        "B. Paris",
        "B) Paris",
        "(B) Paris",
        "(B) A dog",
        "B (Paris)",
        "B - Paris",
        "Option B",
        "option (B).",
        "So I choose B.",
        "I pick option B",
        "So B is correct",
        "**B** is the right answer.",
        "Therefore, option B is the correct one, I think",
        "The answer is B",
        "The answer is B.",
        "the answer is b",
        "The answer is (B) because it is",
        "The answer is B because it is.",
        "The answer is B, since A is out.",
        "The answer is B, not C.",
        "The answer is B) Paris",
        "The answer is **B**. That is all",
        "The answer is therefore (B).",
        "The answer is option B",
        "The answer is the letter B.",
        "The answer would be: B",
        "The correct option is B",
        "The best choice is (B).",
        "answer choice: B",
        "ANSWER: B",
        "Answer: B",
        "**Answer:** B",
        "**Answer**: (B)",
        "Answer:\n\nB\n\nC was near",
        "Answer: B\nA: Because it is.",
        "Answer = B",
        "\\boxed{B}",
        "$\\boxed{\\text{B}}$.",
        "\\boxed{\\text{(B)}} and more",
        "\\boxed{ b }",
        "\\boxed{B. Paris}",
        "\\boxed{B}, so the answer is B",
        "\\boxed{12} units, so the answer is B",
        "Option A is wrong.\nOption C is wrong.\nB",
        "A. no\nB. yes\nC. no\nThe answer is B",
        "The answer is not A.\n(B)",
    ],
)
def test_these_say_b(completion: str) -> None:
    assert outcome(completion) == ("B", "match")


@pytest.mark.parametrize(
    "completion",
    [
        "",
        "A dog barks",
        "a",
        "The answer is a dog",
        "The answer is A dog",
        "I think so",
        "I choose a dog",
        "The answer is I think unclear",
        "answer is Beijing",
        "The answer is E = mc^2",
        "The answer is a.m.",
        "The answer is B-52",
        "The answer is B2",
        "The answer is C++",
        "The answer is B's",
        "The answer is not B",
        "The answer isn't B",
        "Is the answer B?",
        "B is likely, I say",
        "It was B\nand then nothing",
        "B cat",
        "AB",
        "BB",
        "(2)",
        "\\boxed{AB}",
        "\\boxed{B",
        "\\boxed{}",
        "\\boxed{B cat}",
        "The answer is \N{CYRILLIC CAPITAL LETTER VE}",
        "The answer is \N{MATHEMATICAL BOLD CAPITAL B}",
        "The answer is B\N{COMBINING ACUTE ACCENT}",
        "\ud800B",
    ],
)
def test_these_say_no_b(completion: str) -> None:
    extracted, reason = outcome(completion)
    assert reason in ("no_answer", "mismatch") and extracted != "B"


@pytest.mark.parametrize(
    ("completion", "extracted", "reason"),
    [
        ("The answer is C.", "C", "mismatch"),
        ("a", "A", "mismatch"),
        ("The answer is A because it is", "A", "mismatch"),
        ("The answer is F", "F", "other_letter"),
        ("\\boxed{Z}", "Z", "other_letter"),
        ("I", "I", "other_letter"),
        ("The answer is B. Wait, the answer is C.", "C", "two_answers"),
        ("The answer is C. Wait, the answer is B.", "B", "two_answers"),
        ("\\boxed{A} \\boxed{B}", "B", "two_answers"),
        ("\\boxed{B}. The answer is A.", "A", "two_answers"),
        ("The answer is A or B", "B", "two_answers"),
        ("The answer is B or A", "A", "two_answers"),
        ("The answer is B, C", "C", "two_answers"),
        ("The answer is (B) and (C).", "C", "two_answers"),
        ("The answer is B/C.", None, "no_answer"),
        ("\\boxed{(B) (C)}", "C", "two_answers"),
        ("(B)(C)", "C", "two_answers"),
        ("B. C. D.", "D", "two_answers"),
        ("B and B", "B", "match"),
        ("Option B or option C", "C", "two_answers"),
        ("A", "A", "mismatch"),
    ],
)
def test_of_several_letters_the_reason_says_what_happened(
    completion: str, extracted: str | None, reason: str
) -> None:
    assert outcome(completion) == (extracted, reason)


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        ("#### B", "match"),
        ("####(b)", "match"),
        ("The answer is C\n#### B", "match"),
        ("#### B #### **B**", "match"),
        ("#### C #### B", "two_answers"),
        ("#### A or B", "two_answers"),
        ("#### Bee", "no_answer"),
        ("####\nB", "no_answer"),
        ("#### a dog", "no_answer"),
        ("The answer is B", "no_answer"),
        ("#### Q", "other_letter"),
    ],
)
def test_with_a_mark_only_what_stands_after_it_counts(completion: str, reason: str) -> None:
    assert judge_text(MARKED, "B", completion).reason == reason


@pytest.mark.parametrize("reference", ["B", "b", "(B)", "B.", "**B**", "B) Paris"])
def test_a_reference_is_spelled_as_answers_are(reference: str) -> None:
    assert judge_text(CHOICE, reference, "The answer is B").status == "correct"
    assert judge_text(CHOICE, reference, "The answer is C").status == "wrong"


@pytest.mark.parametrize("reference", ["", "F", "12", "AB", "A or B", "a dog", "Paris"])
def test_a_reference_that_is_no_option_is_our_fault(reference: str) -> None:
    found = judge_text(CHOICE, reference, "The answer is B")
    assert (found.status, found.score, found.reason) == ("unjudged", None, "reference_no_letter")


def test_letters_are_what_the_config_names() -> None:
    ten = choice.Config(type="choice", letters="ABCDEFGHIJ").build()
    assert judge_text(ten, "J", "The answer is J.").status == "correct"
    assert judge_text(ten, "I", "The answer is I").status == "correct"
    assert judge_text(ten, "I", "The answer is I think unclear").reason == "no_answer"
    for letters in ("", "A", "abc", "AB C", "ABA"):
        with pytest.raises(ValidationError, match="letters"):
            choice.Config(type="choice", letters=letters)


letters = st.sampled_from("ABCDE")


@given(letters, letters, st.sampled_from(SPELLINGS), st.booleans())
def test_a_letter_in_any_spelling_is_correct_and_another_is_wrong(
    letter: str, other: str, spelling: str, small: bool
) -> None:
    said = spelling.format(letter.lower() if small else letter)
    for text in (said, f"The answer is {said}", f"Answer: {said}\nas said", f"\\boxed{{{said}}}"):
        found = judge_text(CHOICE, other, text)
        assert (found.extracted, found.status == "correct") == (letter, letter == other)
    assert CHOICE.same_answer(said, other) == (letter == other)


@given(letters, letters, st.sampled_from(SPELLINGS), st.sampled_from([", ", " or ", " and ", " "]))
def test_two_letters_are_no_answer_whatever_joins_them(
    one: str, other: str, spelling: str, joint: str
) -> None:
    both = spelling.format(one) + joint + spelling.format(other)
    if one != other:
        assert judge_text(CHOICE, one, f"The answer is {both}").status == "wrong"
        assert judge_text(CHOICE, other, f"The answer is {both}").status == "wrong"


@given(st.text(alphabet="ABFabi()[]{}*.,:; \nanswerispto\\boxed", max_size=60))
def test_what_looks_like_a_choice_is_judged_without_an_error(text: str) -> None:
    assert judge_text(CHOICE, "B", text).status in ("correct", "wrong")
    assert CHOICE.same_answer(text, text)


def test_a_huge_text_takes_no_time() -> None:
    began = time.process_time()
    for part in (
        "answer is ",
        "answer ",
        "A, ",
        "\\boxed{",
        "(",
        "*",
        " ",
        "A or ",
        "\\text{",
        "\n",
    ):
        assert judge_text(CHOICE, "B", part * (200_000 // len(part))).status == "wrong"
    assert time.process_time() - began < 8
