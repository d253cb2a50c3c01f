# SPDX-License-Identifier: Apache-2.0
"""In-line equations of a worked answer: which stand there, whether they hold, which path is new.

Rejection fine-tuning (arXiv 2308.01825, section 3.3) keeps one path for each distinct list of
equations of a problem. An equation is an annotation such as <<48/2=24>>, or plain arithmetic such
as 48 / 2 = 24; a line with annotations is read by them alone. Plain text that is no whole
arithmetic (2x + 3 = 7) is no equation.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

MAX_CHARS = 200  # an equation that is longer is not read
MAX_DEPTH = 20  # brackets within brackets

_ANNOTATION = re.compile(r"<<([^<>\n]*)>>")
_RUN = re.compile(r"[0-9.+\-*/()=% \t]++")
_GROUPS = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9,])")
_TIMES = re.compile(r"(?<=[0-9)%])[ \t]?[xX][ \t]?(?=[0-9.(])")
_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+")
_APART = re.compile(r"[0-9.)%][ \t]+[0-9.(]")  # 5 1/2: two numbers, or no arithmetic
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "$": "", "€": "", "£": ""})


def equation_key(text: str) -> tuple[str, ...]:
    """The equations of a text in order, blanks, currency and thousands commas off."""
    return tuple(equation for equation, _ in _equations(text))


def equations_hold(text: str) -> bool:
    """Whether every equation is exactly true: 1/3=0.33 is not, nor an annotation of no sense."""
    return all(holds for _, holds in _equations(text))


def farthest(texts: Sequence[str], kept: Sequence[str]) -> int:
    """Which text has the largest sum of Levenshtein distances to those kept; the first of equals.

    Distances count characters.
    """
    from rapidfuzz.distance import Levenshtein

    sums = [sum(Levenshtein.distance(text, other) for other in kept) for text in texts]
    return sums.index(max(sums))


def _equations(text: str) -> Iterator[tuple[str, bool]]:
    for line in text.splitlines():
        annotations = _ANNOTATION.findall(line)
        for found in annotations or _plain(line):
            written = _arithmetic(found)
            equation = "".join(written.split())
            sides = [] if _APART.search(written) else _sides(equation)
            if annotations or (len(sides) > 1 and re.search(r"[0-9)%][-+*/]", equation)):
                yield equation, len(sides) > 1 and len(set(sides)) == 1 and None not in sides


def _arithmetic(text: str) -> str:
    """One sign for each operation, no thousands commas, no currency."""
    text = _GROUPS.sub(lambda found: found[0].replace(",", ""), text.translate(_SIGNS))
    return _TIMES.sub("*", text)


def _plain(line: str) -> Iterator[str]:
    """Runs of arithmetic in a line that are no part of something else, as 2+3=5 in x2+3=5y is."""
    line = _arithmetic(line).strip()
    for run in _RUN.finditer(line):
        before, behind = (
            line[max(run.start() - 1, 0) : run.start()],
            line[run.end() : run.end() + 2],
        )
        joined = run[0][0] not in "= \t" and re.match(r"[^\W_]|[\^!√]", before)
        if "=" not in run[0] or joined or re.match(r"[^\W\d_]\b|[\^!√]", behind):
            continue
        begins = not before
        for part in re.split(r"\.[ \t]", run[0].rstrip(" \t.")):
            part = re.sub(r"^[ \t]*[-+*][ \t]+", "", part) if begins else part
            part = _unwrapped(part.strip())
            if part[:1] not in ("+", "*", "/", "%") and (begins or part[:1] != "-"):
                yield part
            begins = True


def _unwrapped(part: str) -> str:
    """Without a list's `1)`, an equals sign at either end, and brackets around the equation."""
    part = re.sub(r"^[0-9]*\)[ \t]+", "", part).rstrip(" \t(").removeprefix("=").removesuffix("=")
    part = part.strip()
    left = part.partition("=")[0]
    opened, closed = part.count("("), part.count(")")
    if part.startswith("(") and left.count("(") > left.count(")"):
        part, opened = part[1:], opened - 1
    return part[:-1] if part.endswith(")") and closed > opened else part


def _sides(equation: str) -> list[Fraction | None]:
    """The values of an equation's sides, None for n/0; empty where a side is no arithmetic."""
    if len(equation) > MAX_CHARS:
        return []
    try:
        return [_Reader(side).value() for side in equation.split("=")]
    except ValueError:
        return []


class _Reader:
    """Recursive descent over + - * / % ( ) and decimals; % divides by 100."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.undefined = False

    def value(self) -> Fraction | None:
        """The value of the whole text, None where it divides by 0; ValueError for other text."""
        value = self._sum()
        if self.at < len(self.text):
            raise ValueError("text is left over")
        return None if self.undefined else value

    def _take(self, signs: str) -> str:
        sign = self.text[self.at : self.at + 1]
        if not sign or sign not in signs:
            return ""
        self.at += 1
        return sign

    def _sum(self) -> Fraction:
        value = self._product()
        while sign := self._take("+-"):
            term = self._product()
            value = value + term if sign == "+" else value - term
        return value

    def _product(self) -> Fraction:
        value = self._signed()
        while sign := self._take("*/"):
            factor = self._signed()
            if sign == "/" and factor == 0:
                self.undefined, factor = True, Fraction(1)
            value = value * factor if sign == "*" else value / factor
        return value

    def _signed(self) -> Fraction:
        sign = self._take("+-")
        value = self._atom()
        while self._take("%"):
            value /= 100
        return -value if sign == "-" else value

    def _atom(self) -> Fraction:
        if self._take("("):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise ValueError("too deep")
            value = self._sum()
            if not self._take(")"):
                raise ValueError("no bracket")
            self.depth -= 1
            return value
        number = _DECIMAL.match(self.text, self.at)
        if number is None:
            raise ValueError("no number")
        self.at = number.end()
        return Fraction(number[0])
