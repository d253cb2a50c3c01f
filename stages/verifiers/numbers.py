# SPDX-License-Identifier: Apache-2.0
"""A written number as an exact fraction, and the unit that stands beside it.

Read are integers, decimals, thousands in groups of three (1,234), fractions a/b, mixed numbers
(1 1/2), and powers of ten (1.5e3, 1.5 × 10^3), each with a sign, a currency before or a unit
behind. A unit is one of a closed list or up to four words in ASCII letters; words that change the
number (million, dozen, half, and, squared …) are refused, and so are words of one or two letters
outside the list (5k, 5 or 6). Digits are ASCII. Nothing is rounded, nothing is evaluated.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from stages.verifiers.marks import MAX_CHARS

PERCENT = "percent"
MAX_EXPONENT = 1000
_SPELLINGS = {
    PERCENT: "% percent",
    "USD": "$ us$ usd dollar dollars buck bucks",
    "EUR": "€ eur euro euros",
    "GBP": "£ gbp",
    "JPY": "¥ jpy yen",
    "INR": "₹ inr rupee rupees",
    "cent": "¢ cent cents",
    "mm": "mm millimeter millimeters millimetre millimetres",
    "cm": "cm centimeter centimeters centimetre centimetres",
    "m": "m meter meters metre metres",
    "km": "km kilometer kilometers kilometre kilometres",
    "in": "in inch inches",
    "ft": "ft foot feet",
    "yd": "yd yard yards",
    "mi": "mi mile miles",
    "g": "g gram grams",
    "kg": "kg kilogram kilograms kilo kilos",
    "mg": "mg milligram milligrams",
    "oz": "oz ounce ounces",
    "l": "l liter liters litre litres",
    "ml": "ml milliliter milliliters millilitre millilitres",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "day": "day days",
    "week": "wk wks week weeks",
    "month": "month months",
    "year": "yr yrs year years",
    "degree": "° degree degrees",
    "km/h": "km/h kmh kph",
    "mi/h": "mi/h mph",
    "m/s": "m/s",
}
UNITS = {alias: unit for unit, aliases in _SPELLINGS.items() for alias in aliases.split()}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What makes another number of the one before it: by how a word begins, and whole words.
SCALE_STEMS = ("hundred", "thousand", "tausend", "millio", "milliard", "billio", "trillio")
SCALES = _words(
    "ten twenty thirty forty fifty sixty seventy eighty ninety mil mill mille mio mln bil bln tril "
    "quadrillion quintillion googol lakh lakhs crore crores dozen dozens doz score scores gross "
    "pair pairs couple couples half halves third thirds fourth fourths fifth fifths sixth sixths "
    "seventh sevenths eighth eighths ninth ninths tenth tenths quarter quarters millionth "
    "squared cubed factorial percentage percentages percentile permille"
)
_JOINING = _words(
    "zero one two three four five six seven eight nine eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen plus minus and not nor but between from through until "
    "versus over upon divided multiplied times double triple twice thrice fold root sqrt power "
    "exponent point basis mod modulo base remainder log exp sin cos tan inf infinity nan negative "
    "positive approximately almost about around roughly maybe"
)
_SHORT = _words("a an of sq cu")

_INTEGER = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)"
_NUMBER = re.compile(
    rf"""(?:(?P<whole>{_INTEGER})\s+(?=[0-9]))?(?P<top>{_INTEGER})\s*/\s*(?P<bottom>{_INTEGER})
    |(?P<decimal>{_INTEGER}(?:\.[0-9]+)?|\.[0-9]+)
     (?:[eE](?P<e>[-+]?[0-9]+)|\s*(?:[×x*]|\\times|\\cdot)\s*10\^(?P<p>[-+]?[0-9]+|\{{[-+]?[0-9]+\}}))?
    """,
    re.X,
)
_CURRENCY = r"(?:US\$|[$€£¥₹]|(?:USD|EUR|GBP|JPY|INR)\b)"
_BEFORE = re.compile(rf"(?P<currency>{_CURRENCY})?\s*(?P<sign>[-+])?\s*(?P<inner>{_CURRENCY})?\s*")
_WORD = re.compile(r"[A-Za-z]+(?:\^[23]|\^\{[23]\}|[²³])?\.?")
_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Number:
    """A value and its unit's name; None where there is none, or none of the list."""

    value: Fraction
    unit: str | None

    def agrees(self, other: "Number") -> bool:
        """Equal values whose units do not contradict; a percentage agrees with none but its own."""
        if self.value != other.value or (self.unit == PERCENT) != (other.unit == PERCENT):
            return False
        return None in (self.unit, other.unit) or self.unit == other.unit


def read(text: str) -> Number | None:
    """The one number that a text is; None where it is anything else."""
    if len(text) > MAX_CHARS:
        return None
    text = _plain(text)
    before = _BEFORE.match(text)
    assert before is not None  # each of its parts may be empty
    found = _NUMBER.match(text, before.end())
    value = found and _value(found)
    if found is None or value is None or re.match(r"[0-9,.]", text[found.end() :]):
        return None
    behind, refused = _unit(text[found.end() :].strip())
    units = {UNITS[mark.lower()] for mark in before.group("currency", "inner") if mark}
    units |= {behind} if behind else set()
    if refused or len(units) > 1:
        return None
    return Number(-value if before["sign"] == "-" else value, units.pop() if units else None)


def _plain(text: str) -> str:
    """Without emphasis, LaTeX's spacing and text boxes, and the stop at the end."""
    text = text.replace("−", "-").replace(",\\!", ",").replace("{,}", ",")
    text = re.sub(r"\\[,;: ]|~", " ", text)
    text = _TEXT.sub(r" \1 ", text).replace("\\$", "$").replace("\\%", "%")
    text = re.sub(r"\^\s*\\circ|\^\{\s*\\circ\s*\}", "°", text)
    text = text.strip().removeprefix(":").strip(" \t\r*_`")
    for left, right in (("\\(", "\\)"), ("$", "$")):
        if len(text) > len(left + right) and text.startswith(left) and text.endswith(right):
            text = text[len(left) : -len(right)].strip()
    if text.endswith("."):
        text = text[:-1]
    return text.strip(" \t\r*_`")


def _value(found: re.Match[str]) -> Fraction | None:
    if found["bottom"]:
        whole, top, bottom = (
            int((found[name] or "0").replace(",", "")) for name in ("whole", "top", "bottom")
        )
        if bottom == 0 or (found["whole"] and top >= bottom):
            return None
        return whole + Fraction(top, bottom)
    exponent = int((found["e"] or found["p"] or "0").strip("{}"))
    if abs(exponent) > MAX_EXPONENT:
        return None
    return Fraction(found["decimal"].replace(",", "")) * Fraction(10) ** exponent


def changes(word: str) -> bool:
    """Whether a word makes another number of the one before it, as million or percent do."""
    name = word.lower()
    return name in SCALES or name.startswith(SCALE_STEMS) or UNITS.get(name) == PERCENT


def _unit(text: str) -> tuple[str | None, bool]:
    """The unit that a text is, and whether the text is none."""
    key = " ".join(text.lower().rstrip(".").split()).replace("per cent", PERCENT)
    if not key or key in UNITS:
        return UNITS.get(key), False
    words = text.replace("/", " ").split()
    return None, len(words) > 4 or not all(map(_is_unit_word, words))


def _is_unit_word(word: str) -> bool:
    if not _WORD.fullmatch(word):
        return False
    name = re.split(r"[\^²³.]", word.lower())[0]
    if changes(name) or name in _JOINING:
        return False
    return len(name) > 2 or name in UNITS or name in _SHORT
