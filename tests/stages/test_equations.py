# SPDX-License-Identifier: Apache-2.0
"""Equations in worked answers: which are read, which hold, which path is farthest."""

import time
from fractions import Fraction
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stages.equations import equation_key, equations_hold, farthest


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Natalia sold 48/2 = <<48/2=24>>24 clips in May.", ["48/2=24"]),
        ("<<48/2=24>> then <<48+24=72>>\n#### 72", ["48/2=24", "48+24=72"]),
        ("48 / 2 = 24", ["48/2=24"]),
        ("So 48 / 2 = 24 clips, and 48 + 24 = 72.", ["48/2=24", "48+24=72"]),
        ("3+4=7. 7*2=14.", ["3+4=7", "7*2=14"]),
        ("3+4=7\n7*2=14", ["3+4=7", "7*2=14"]),
        ("7*2=14\n3+4=7", ["7*2=14", "3+4=7"]),
        ("4+3=7", ["4+3=7"]),
        ("3+4=7, 3+4=7", ["3+4=7", "3+4=7"]),
        ("$1,200 - $200 = $1,000", ["1200-200=1000"]),
        ("12 x 5 = 60, 12 × 5 = 60, 60 ÷ 5 = 12, 2 − 3 = −1",
         ["12*5=60", "12*5=60", "60/5=12", "2-3=-1"]),
        ("(3 + 4) * 2 = 14", ["(3+4)*2=14"]),
        ("(3 + 4 = 7)", ["3+4=7"]),
        ("she has 7 (since 3+4=7)", ["3+4=7"]),
        ("- 3 + 4 = 7", ["3+4=7"]),
        ("1. 3 + 4 = 7", ["3+4=7"]),
        ("2) 3 + 4 = 7", ["3+4=7"]),
        ("-3 + 4 = 1", ["-3+4=1"]),
        ("x = 3 + 4 = 7", ["3+4=7"]),
        ("3+4=7*2=14", ["3+4=7*2=14"]),
        ("20% * 50 = 10", ["20%*50=10"]),
        ("a:5+7+0=12;#12", ["5+7+0=12"]),
        ("10=4+6", ["10=4+6"]),
        # no equations
        ("", []),
        ("7 = 7", []),
        ("12 + 5 =", []),
        ("2x + 3 = 7", []),
        ("2x-3*1 = 7", []),
        ("10 = 2 * 5x", []),
        ("5 = 2 + x", []),
        ("x2+3=5", []),
        ("2^3+1 = 9", []),
        ("1+8 = 3^2", []),
        ("f(3) = 8", []),
        ("3 cats + 4 = 7", []),
        ("5% of 200 = 10", []),
        ("0.5 * 11 = 5 1/2", []),
        ("3.5.2+1=2", []),
        ("2**3 = 8", []),
        ("٣+1=4", []),
    ],
)  # fmt: skip
def test_equations_are_read_in_order(text: str, key: list[str]) -> None:
    assert equation_key(text) == tuple(key)


@pytest.mark.parametrize(
    "text",
    [
        "no equations at all",
        "<<48/2=24>>24",
        "48/2=24",
        "1+2*3=7",
        "(1+2)*3=9",
        "8/4/2=1",
        "8-4-2=2",
        "8/(4/2)=4",
        "-2*-3=6",
        "0.1+0.2=0.3",
        "1/3*3=1",
        ".5*4=2.0",
        "3/4=75%",
        "20%*50=10",
        "3+4=7=14/2",
        "((((1+1))))=2",
        "$1,200.50 - 200 = $1,000.50",
        "2x + 3 = 7",
        "-2+5=3",
    ],
)
def test_what_is_true_holds(text: str) -> None:
    assert equations_hold(text)


@pytest.mark.parametrize(
    "text",
    [
        "<<48/2=25>>25",
        "48/2=25",
        "48/2=24\n24+1=26",
        "24+1=26\n48/2=24",
        "1+2*3=9",
        "8-4-2=6",
        "8/4/2=4",
        "1/3=0.33",
        "0.1+0.2=0.30000000000000004",
        "3+4=7*2=14",
        "1/0=0",
        "0/0=0/0",
        "<<>>",
        "<<1+>>",
        "<<1+1>>",
        "<<2**3=8>>",
        "<<x=5>>",
        "<<__import__('os')=1>>",
        "<<5 1/2=5.5>>",
        "<<" + "(" * 50 + "1" + ")" * 50 + "=1>>",
        "<<" + "1+" * 200 + "1=201>>",
    ],
)
def test_what_is_false_or_of_no_sense_does_not(text: str) -> None:
    assert not equations_hold(text)


numbers = st.integers(0, 999)


@given(numbers, st.sampled_from("+-*/"), numbers, numbers, st.sampled_from("+-*"), st.booleans())
def test_arithmetic_is_that_of_fractions(
    a: int, first: str, b: int, c: int, second: str, bracket: bool
) -> None:
    assume(not (first == "/" and b == 0))
    does = {
        "+": lambda x, y: x + y,
        "-": lambda x, y: x - y,
        "*": lambda x, y: x * y,
        "/": lambda x, y: x / y,
    }
    left, mid, right = Fraction(a), Fraction(b), Fraction(c)
    if bracket:
        assume(not (first == "/" and does[second](mid, right) == 0))
        value = does[first](left, does[second](mid, right))
        text = f"{a} {first} ({b} {second} {c})"
    elif second == "*" and first in "+-":
        value, text = does[first](left, mid * right), f"{a} {first} {b} {second} {c}"
    else:
        value = does[second](does[first](left, mid), right)
        text = f"{a} {first} {b} {second} {c}"
    side = str(value) if value >= 0 else f"(0 - {-value})"
    more = str(value + 1) if value >= -1 else f"(0 - {-value - 1})"
    for form in ("{} = {}", "<<{}={}>>", "so {} = {} clips."):
        assert equations_hold(form.format(text, side))
        assert not equations_hold(form.format(text, more))


@given(st.text() | st.text(alphabet="0123456789+-*/()=.,% <>x$\n", max_size=60))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert all("=" in equation or "<<" in text for equation in equation_key(text))
    assert equations_hold(text) or equation_key(text)


@given(st.lists(st.tuples(numbers, numbers), max_size=5), st.sampled_from(["", " ", "  "]))
def test_blanks_make_no_other_equations(pairs: list[tuple[int, int]], blank: str) -> None:
    text = "\n".join(f"{a}{blank}+{blank}{b}{blank}={blank}{a + b}" for a, b in pairs)
    assert equation_key(text) == tuple(f"{a}+{b}={a + b}" for a, b in pairs)
    assert equations_hold(text)


def test_a_huge_text_takes_no_time() -> None:
    began = time.process_time()
    for part in ("(", "1+", "1,", "= ", "1=1,", "1. ", "<<", "<<1=1>>", "x1", "9", "a 1=1 ", "\t"):
        equations_hold(part * (200_000 // len(part)) + "=1")
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("texts", "kept", "place"),
    [
        # distances of sitting to kitten 3, of kitten to itself 0
        (["kitten", "sitting"], ["kitten"], 1),
        # sums 3 + 0, 0 + 3, 4 + 5
        (["sitting", "kitten", "mit"], ["kitten", "sitting"], 2),
        (["b", "a", "c"], [], 0),
        (["ab", "ac"], ["ad"], 0),
        (["aaaa", "aaab", "bbbb"], ["aaaa"], 2),
    ],
)
def test_the_farthest_text_has_the_largest_sum_of_distances(
    texts: list[str], kept: list[str], place: int
) -> None:
    assert farthest(texts, kept) == place


def distance(one: str, other: str) -> int:
    """Levenshtein's recurrence, row by row."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]


@given(st.lists(st.text("abc", max_size=8), min_size=1, max_size=5), st.randoms())
def test_distances_are_levenshteins(texts: list[str], random: Random) -> None:
    kept = random.choices(texts, k=2)
    sums = [sum(distance(text, other) for other in kept) for text in texts]
    assert farthest(texts, kept) == sums.index(max(sums))
