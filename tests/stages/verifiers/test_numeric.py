# SPDX-License-Identifier: Apache-2.0
r"""`numeric`: the spellings of a number that count, those that do not, and nothing rounded."""

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stages.verifiers import judge_text, numeric
from stages.verifiers.numbers import read

NUMERIC = numeric.Config(type="numeric").build()
BOXED = numeric.Config(type="numeric", mark="\\boxed{").build()
LAST = numeric.Config(type="numeric", fallback="last_number").build()


def status(reference: str, answer: str) -> str:
    return judge_text(NUMERIC, reference, f"work 3+4=7\n#### {answer}").status


@pytest.mark.parametrize(
    ("reference", "answers"),
    [
        ("18", ["18", "+18", "18.", "18.0", "018", "18.00", " 18 ", "18\nmore", ": 18", "18\r"]),
        ("18", ["$18", "$ 18", "18$", "€18", "£18.00", "US$18", "USD 18", "18 USD", "$18 dollars"]),
        ("18", ["18 dollars", "18 dollars.", "18km", "18 km", "18 km.", "18 km/h", "18 m/s"]),
        ("18", ["18 apples", "18 cups of tea", "18 dollars per day", "18 sq. ft.", "18 m^2"]),
        ("18", ["18 cm²", "18°", "18^\\circ", "18\\text{ cm}", "18 in", "18 l", "18h"]),
        ("18", ["**18**", "`18`", "__18__", "$18$", "$\\$18$", "\\$18", "\\(18\\)", "**18.**"]),
        ("18", ["36/2", "36 / 2", "1.8e1", "1.8E+1", "180e-1", "1.8 × 10^1", "1.8 x 10^{1}"]),
        ("18", ["1.8*10^1", "1.8 \\times 10^1", "1.8 \\cdot 10^1", "1,800e-2"]),
        ("1234", ["1,234", "1234", "$1,234", "1,234.00", "1{,}234", "1,\\!234", "1,234 miles"]),
        ("1,234,567", ["1234567", "1,234,567", "$1,234,567."]),
        ("-5", ["-5", "−5", "- 5", "-$5", "$-5", "−$5.00", "-10/2", "-5 degrees"]),
        ("0", ["0", "-0", "0.000", "0/7", "0e5"]),
        ("1/2", ["1/2", "0.5", ".5", "2/4", "5e-1", "50/100"]),
        ("1.5", ["1 1/2", "3/2", "1.50", "+1 1/2"]),
        ("-1 1/2", ["-1.5", "−1 1/2", "-3/2"]),
        ("50%", ["50%", "50 %", "50\\%", "50 percent", "50 per cent", "50", "50.0%", "100/2%"]),
        ("$18", ["18", "$18", "18 dollars", "18 apples"]),
        ("5 km", ["5", "5 km", "5 kilometers", "5km", "5 kilometre."]),
    ],
)
def test_these_spellings_are_the_reference(reference: str, answers: list[str]) -> None:
    assert [answer for answer in answers if status(reference, answer) != "correct"] == []


@pytest.mark.parametrize(
    ("reference", "answers"),
    [
        # other numbers
        ("18", ["17", "-18", "1.8", "180", "18.0000001", "17.9999999", "1 8", "18/1.0", "18e1"]),
        ("18", ["9+9", "18+0", "2*9", "20-2", "=18", "x=18", "18=18", "7=18", "18!", "(18)"]),
        ("12", ["1,2", "1.2", "12,", "1,2.0", "12/0", "12^1", "012,000"]),
        ("1234", ["1,23,4", "12,34", "1,2345", "1 234", "1_234", "1.234", "1,234,", "01,234"]),
        ("1/3", ["0.33", "0.333333333333333", "33%", ".3333"]),
        ("0.123", ["0,123", ",123"]),
        ("1.5", ["1 and 1/2", "1 3/6 1/2", "1-1/2", "1½"]),
        ("2.5", ["1 3/2"]),
        # two numbers, or a word that makes it another
        ("5", ["5 or 6", "5 and 6", "5 or so", "5 to six", "5-6", "4, 5", "5; 6", "5 5", "5/1/1"]),
        ("5", ["5 million", "5 Millionen", "5 dozen", "5k", "5 k", "5bn", "5 hundred", "5M x"]),
        ("5", ["5 and a half", "5 halves", "5 squared", "5x", "5 y", "5e", "5 factorial", "5 pi"]),
        ("5", ["5 ft 3 in", "five", "about 5", "~", "5?", "5 (five)", "--5", "+-5", "5 times 3"]),
        ("5", ["5 plus three", "5 minus one", "5 through nine", "5 not", "5 thrice", "5 two"]),
        # units that contradict, and percentages
        ("5 km", ["5 miles", "5 m", "$5", "5%"]),
        ("$18", ["18 cents", "€18", "18%"]),
        ("5", ["$5 cents", "$5%", "5 cents $", "5%%"]),
        ("50", ["50%", "50 percent", "50\\%", "50 per cent"]),
        ("0.5", ["50%", ".5%"]),
        ("50%", ["0.5", "1/2", "50 km", "0.5%", "$50"]),
        # no numbers
        ("12", ["١٢", "１２", "一二", "1²", "0x0c", "1e999999999", "1e-999999999", "nan", "inf"]),
        ("12", ["12\0", "\ud80012", "1\u200b2", "\u202e21", "12" + "0" * 400, "0" * 300 + "12"]),
    ],
)
def test_these_spellings_are_not_the_reference(reference: str, answers: list[str]) -> None:
    assert [answer for answer in answers if status(reference, answer) != "wrong"] == []


@pytest.mark.parametrize(
    ("completion", "extracted", "reason"),
    [
        ("5+7=12\n#### 12", "12", "match"),
        ("####12", "12", "match"),
        ("#### 12\nand more words, 13", "12", "match"),
        ("#### 12 #### 12.0", "12.0", "match"),
        ("#### $12\n#### 12 dollars", "12 dollars", "match"),
        ("#### 12 #### 13", "13", "two_answers"),
        ("#### 13\n#### 12", "12", "two_answers"),
        ("#### 12\n####", "", "two_answers"),
        ("#### 5 km #### 5 miles", "5 miles", "two_answers"),
        ("#### 12% #### 12", "12", "two_answers"),
        ("#### twelve", "twelve", "not_a_number"),
        ("#### twelve #### twelve", "twelve", "not_a_number"),
        ("#### 13", "13", "mismatch"),
        ("12", None, "no_answer"),
        ("### 12", None, "no_answer"),
        ("12 ####", None, "no_answer"),
        ("####\n12", None, "no_answer"),
        ("", None, "no_answer"),
    ],
)
def test_the_last_mark_counts_and_a_reason_is_given(
    completion: str, extracted: str | None, reason: str
) -> None:
    found = judge_text(NUMERIC, "12", completion)
    assert (found.extracted, found.reason) == (extracted, reason)
    assert (found.status, found.score) == (
        ("correct", 1.0) if reason == "match" else ("wrong", 0.0)
    )


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        ("so $\\boxed{12}$.", "match"),
        ("\\boxed{\\text{12 cm}}", "match"),
        ("\\boxed{12} and \\boxed{$12}", "match"),
        ("\\boxed{12} or \\boxed{13}", "two_answers"),
        ("\\boxed{12}. But \\boxed{", "two_answers"),
        ("\\boxed{12", "no_answer"),
        ("\\boxed{}", "no_answer"),
        ("\\boxed{" + " " * 300 + "12}", "no_answer"),
        ("\\boxed{7=12}", "not_a_number"),
        ("\\boxed{{12}}", "not_a_number"),
        ("#### 12", "no_answer"),
    ],
)
def test_an_answer_in_a_box_ends_at_its_brace(completion: str, reason: str) -> None:
    assert judge_text(BOXED, "12", completion).reason == reason


@pytest.mark.parametrize(
    ("completion", "extracted"),
    [
        ("It costs 3 * 4 = 12", "12"),
        ("so she has 12 apples, and no pears.", "12"),
        ("That is $12.", "$12"),
        ("first 13 and then 12.", "12"),
        ("12 and that is it", "12"),
        ("an area of 12 m^2", "12"),
        ("about 24/2", "24/2"),
        ("17 - 12", "12"),
        ("#### 12\nthe year 2020", "12"),
    ],
)
def test_without_a_mark_the_last_number_counts_where_asked(completion: str, extracted: str) -> None:
    found = judge_text(LAST, "12", completion)
    assert (found.status, found.extracted) == ("correct", extracted)
    if "####" not in completion:
        assert judge_text(NUMERIC, "12", completion).reason == "no_answer"


@pytest.mark.parametrize(
    "completion",
    [
        "12 million",
        "12%",
        "12 percent",
        "1,2",
        "12k",
        "12, or 13",
        "x12",
        "12\n3",
        "9" * 10**6 + "12",
    ],
)
def test_the_last_number_is_taken_whole(completion: str) -> None:
    assert judge_text(LAST, "12", completion).status == "wrong"
    assert judge_text(LAST, "-5", "It is -5 degrees.").status == "correct"
    assert judge_text(LAST, "1.5", "That makes 1 1/2 cups.").status == "correct"


@pytest.mark.parametrize(
    "reference", ["", "twelve", "12 or 13", "1,2", "1/0", "9" * 300, "12 = x", "1e1001"]
)
def test_a_reference_that_is_no_number_is_our_fault(reference: str) -> None:
    for completion in ("#### 12", "", f"#### {reference}"):
        found = judge_text(NUMERIC, reference, completion)
        assert (found.status, found.score, found.reason) == (
            "unjudged",
            None,
            "reference_no_number",
        )


def test_a_box_without_its_brace_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"write '\\boxed\{'"):
        numeric.Config(type="numeric", mark="\\boxed")


def test_an_answer_of_a_million_digits_takes_no_time() -> None:
    began = time.process_time()
    for text in ("#### " + "9" * 10**6, "#### 1e" + "9" * 10**6, "9" * 10**6, "1," * 10**6):
        for verifier in (NUMERIC, BOXED, LAST):
            found = judge_text(verifier, "12", text)
            assert found.status == "wrong"
            assert found.extracted is None or len(found.extracted) <= 200
    assert time.process_time() - began < 5


fractions = st.fractions(max_denominator=10**6)


@given(fractions)
def test_a_fraction_in_any_spelling_is_read_as_itself(value: Fraction) -> None:
    whole, rest = divmod(abs(value.numerator), value.denominator)
    sign = "-" if value < 0 else ""
    mixed = f"{sign}{whole} {rest}/{value.denominator}" if rest else f"{sign}{whole:,}"
    plain = f"{value.numerator}/{value.denominator}"
    for text in (plain, plain.replace("-", "−"), mixed, f"**{plain}**", f"{mixed} km"):
        found = read(text)
        assert found is not None and found.value == value


@given(st.integers(-(10**12), 10**12), st.sampled_from(["{:,}", "{}.00", "{}e0", "{} dollars"]))
def test_an_integer_in_any_spelling_is_correct_and_another_is_wrong(
    value: int, spelling: str
) -> None:
    assert status(str(value), spelling.format(value)) == "correct"
    assert status(str(value), spelling.format(value + 1)) == "wrong"
    assert status(str(value + 1), spelling.format(value)) == "wrong"


@given(fractions, fractions)
def test_two_fractions_agree_where_they_are_equal(one: Fraction, other: Fraction) -> None:
    assert NUMERIC.same_answer(str(one), str(other)) == (one == other)
    assert (status(str(one), str(other)) == "correct") == (one == other)


@given(st.text(alphabet="0123456789,./eE+-−$%#{} \n\\akm×^", max_size=40))
def test_what_looks_like_a_number_is_judged_without_an_error(text: str) -> None:
    for verifier in (NUMERIC, BOXED, LAST):
        assert judge_text(verifier, "12", text).status in ("correct", "wrong")
        assert judge_text(verifier, text, f"#### {text}").status in ("correct", "wrong", "unjudged")
    assert NUMERIC.same_answer(text, text)


@given(st.integers(0, 10**9), st.text())
def test_work_before_the_mark_does_not_matter(value: int, work: str) -> None:
    text = work.replace("#", "")
    assert judge_text(NUMERIC, str(value), f"{text}#### {value}").status == "correct"
