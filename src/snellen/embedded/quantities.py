"""Numbers with units, read from short texts and compared across units."""

from __future__ import annotations

import re
from dataclasses import dataclass

from snellen.embedded.words import normalise, tokens

# By dimension: how many of the base unit a unit is, and the names of the unit.
_TABLE = """
length: 0.001 mm millimeter millimetre, 0.01 cm centimeter centimetre, 1 m meter metre,
    1000 km kilometer kilometre, 0.0254 inch inche, 0.3048 ft foot feet, 0.9144 yd yard,
    1609.344 mi mile;
mass: 0.001 mg milligram, 1 g gram, 1000 kg kilogram kilo, 453.592 lb pound, 28.3495 oz ounce;
time: 0.001 ms millisecond, 1 s sec second, 60 min minute, 3600 h hr hour, 86400 day, 604800 week;
volume: 0.001 ml milliliter millilitre, 0.01 cl, 1 l liter litre;
speed: 1 km/h kph kmh, 1.609344 mph;
share: 1 % percent; degree: 1 \u00b0 \u00b0c deg degree celsius; fahrenheit: 1 \u00b0f fahrenheit;
usd: 1 $ dollar usd, 0.01 \u00a2 cent; eur: 1 \u20ac euro eur; gbp: 1 \u00a3 gbp
"""
_UNITS = {
    name: (dimension.strip(), float(unit.split()[0]))
    for dimension, units in (line.split(":") for line in _TABLE.split(";"))
    for unit in units.split(",")
    for name in unit.split()[1:]
}
_QUANTITY = re.compile(
    r"(?P<before>[$\u20ac\u00a3])?\s?(?P<sign>(?<![\w.)])-)?"
    r"(?P<number>\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+)"
    r"(?:\s?/\s?(?P<below>\d+)(?![\w/]))?"
    r"(?:\s?-?\s?(?P<after>km/h|\u00b0\s?[cf]|[%\u00b0\u00a2$\u20ac\u00a3]|[a-z]+))?"
)
_NUMBER_WORDS = re.compile(r"[a-z]+(?:[ -][a-z]+)*")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, and its unit where it has one; `word` is the word that follows it, unit or not."""

    value: float
    dimension: str = ""
    factor: float = 1.0
    word: str = ""


def quantities(text: str) -> tuple[Quantity, ...]:
    """Give the numbers of a text in order, also those in words.

    >>> [(q.value, q.dimension) for q in quantities("about 1.5 km, or two miles")]
    [(1.5, 'length'), (2.0, 'length')]
    """
    text = _NUMBER_WORDS.sub(lambda match: _digits(match[0]), normalise(text))
    return tuple(_quantity(match) for match in _QUANTITY.finditer(text))


def is_same_quantity(reference: Quantity, answer: Quantity) -> bool:
    """Whether two numbers say the same; a unit that one of them leaves out is taken as meant.

    Units of one dimension are converted, with one per cent of leeway for rounding.

    >>> is_same_quantity(*quantities("1.5 m = 150 cm"))
    True
    """
    if not reference.dimension or not answer.dimension:
        return abs(reference.value - answer.value) <= 1e-9 * max(1.0, abs(reference.value))
    wanted, found = reference.value * reference.factor, answer.value * answer.factor
    leeway = 1e-9 if reference.factor == answer.factor else 0.01
    close = abs(wanted - found) <= leeway * max(abs(wanted), 1e-12)
    return close and reference.dimension == answer.dimension


def _quantity(match: re.Match[str]) -> Quantity:
    number = match["number"]
    if re.fullmatch(r"\d+,\d{1,2}", number):
        number = number.replace(",", ".")
    value = float(number.replace(",", ""))
    if match["below"] and float(match["below"]):
        value /= float(match["below"])
    word = (match["after"] or "").replace(" ", "")
    names = (match["before"], word, word.removesuffix("s"))
    dimension, factor = next((_UNITS[name] for name in names if name in _UNITS), ("", 1.0))
    return Quantity(-value if match["sign"] else value, dimension, factor, word)


def _digits(words: str) -> str:
    """Words with the numbers among them in digits, all else unchanged."""
    read = tokens(words)
    return " ".join(read) if any(token.isdigit() for token in read) else words
