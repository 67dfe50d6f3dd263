"""Numbers with units, read from short texts and compared across units."""

from __future__ import annotations

import re
from dataclasses import dataclass

from snellen.embedded.words import normalise, tokens

# unit -> (dimension, how many of the dimension's base unit it is)
_LINES = """
length 0.001 mm millimeter millimetre
length 0.01 cm centimeter centimetre
length 1 m meter metre
length 1000 km kilometer kilometre
length 0.0254 inch inche in"
length 0.3048 ft foot feet
length 0.9144 yd yard
length 1609.344 mi mile
mass 0.001 mg milligram
mass 1 g gram gramme
mass 1000 kg kilogram kilo
mass 453.592 lb pound
mass 28.3495 oz ounce
time 0.001 ms millisecond
time 1 s sec second
time 60 min minute
time 3600 h hr hour
time 86400 day
time 604800 week
volume 0.001 ml milliliter millilitre
volume 0.01 cl
volume 1 l liter litre
share 1 % percent
angle 1 \u00b0 deg degree
speed 1 km/h kph kmh
speed 1.609344 mph
usd 1 $ dollar usd
usd 0.01 \u00a2 cent
eur 1 \u20ac euro eur
gbp 1 \u00a3 gbp
warmth 1 \u00b0c celsius
heat 1 \u00b0f fahrenheit
"""
_UNITS = {
    word: (dimension, float(factor))
    for dimension, factor, *words in (line.split() for line in _LINES.strip().split("\n"))
    for word in words
}
_QUANTITY = re.compile(
    r"(?P<before>[$\u20ac\u00a3])?\s*(?P<sign>(?<![\w.)])-)?(?P<number>\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+)"
    r"(?:\s*/\s*(?P<below>\d+)(?![\w/]))?"
    r"(?:\s*-?\s*(?P<after>km/h|\u00b0\s?[cf]|[%\u00b0\u00a2$\u20ac\u00a3]|[a-z]+))?"
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, and its unit where it has one; `word` is the word that follows it, unit or not."""

    value: float
    dimension: str = ""
    factor: float = 1.0
    word: str = ""


def quantities(text: str) -> tuple[Quantity, ...]:
    """The numbers of a text in order, also those in words.

    >>> [(q.value, q.dimension) for q in quantities("about 1.5 km, or two miles")]
    [(1.5, 'length'), (2.0, 'length')]
    """
    return tuple(_quantity(match) for match in _QUANTITY.finditer(_with_digits(text)))


def is_same_quantity(reference: Quantity, answer: Quantity) -> bool:
    """Whether two numbers say the same; a unit that one of them leaves out is taken as meant.

    Units of one dimension are converted, with one per cent of leeway for rounding.

    >>> is_same_quantity(*quantities("1.5 m = 150 cm"))
    True
    """
    if not reference.dimension or not answer.dimension:
        return abs(reference.value - answer.value) <= 1e-9 * max(1.0, abs(reference.value))
    if reference.dimension != answer.dimension:
        angles = {"angle", "warmth", "heat"}
        mixed = {reference.dimension, answer.dimension}
        return mixed < angles and "angle" in mixed and reference.value == answer.value
    wanted, found = reference.value * reference.factor, answer.value * answer.factor
    leeway = 1e-9 if reference.factor == answer.factor else 0.01
    return abs(wanted - found) <= leeway * max(abs(wanted), 1e-12)


def _quantity(match: re.Match[str]) -> Quantity:
    value = _value(match["number"])
    if match["below"] and float(match["below"]):
        value /= float(match["below"])
    word = (match["after"] or "").replace(" ", "")
    dimension, factor = _unit(match["before"] or "") or _unit(word) or ("", 1.0)
    return Quantity(-value if match["sign"] else value, dimension, factor, word)


def _value(number: str) -> float:
    if re.fullmatch(r"\d+,\d{1,2}", number):
        return float(number.replace(",", "."))
    return float(number.replace(",", ""))


def _unit(word: str) -> tuple[str, float] | None:
    return _UNITS.get(word) or (_UNITS.get(word[:-1]) if word.endswith("s") else None)


_NUMBER_WORDS = re.compile(r"[a-z]+(?:[\s-]+[a-z]+)*")


def _with_digits(text: str) -> str:
    return _NUMBER_WORDS.sub(lambda match: _digits(match[0]), normalise(text))


def _digits(words: str) -> str:
    """Words with the numbers among them in digits, all else unchanged."""
    read = tokens(words)
    return " ".join(read) if any(token.isdigit() for token in read) else words
