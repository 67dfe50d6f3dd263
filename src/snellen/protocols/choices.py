"""Multiple-choice questions about captions: how options are shown, and what a letter means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from snellen.flows import Asked, said
from snellen.protocols.verdicts import judged_verdict
from snellen.records import (
    LETTERS,
    Image,
    Item,
    Message,
    Probe,
    Request,
    Verdict,
)
from snellen.replies import Parsed
from snellen.templates import Template

_BULLETS = tuple(f"{letter}. " for letter in LETTERS)


class Shown(msgspec.Struct, frozen=True):
    """A question's options as the judge sees them, and the stored letter of each.

    The abstention counts among them where it is offered; its stored letter is the one after the
    letters of the stored options.
    """

    texts: tuple[str, ...]
    letters: tuple[str, ...]

    @property
    def shown_letters(self) -> str:
        """The letters that the judge can choose from."""
        return LETTERS[: len(self.texts)]

    def stored(self, letter: str) -> str:
        """The stored letter of a shown one.

        >>> Shown(("blue", "red"), ("B", "A")).stored("A")
        'B'
        """
        return self.letters[LETTERS.index(letter)]


def show(probe: Probe, order: Sequence[int], abstention: str | None) -> Shown:
    """The options in an order of indices; the index after the last option is the abstention.

    >>> show(Probe("q", "?", "A", ("red", "blue")), [2, 1, 0], "unknown")
    Shown(texts=('unknown', 'blue', 'red'), letters=('C', 'B', 'A'))
    """
    texts = probe.options if abstention is None else (*probe.options, abstention)
    if order == list(range(len(texts))):
        return Shown(texts, tuple(LETTERS[: len(texts)]))
    return Shown(tuple(texts[k] for k in order), tuple(LETTERS[k] for k in order))


def options_block(shown: Shown) -> str:
    """The lettered options, one a line.

    >>> print(options_block(Shown(("red", "blue"), ("A", "B"))))
    A. red
    B. blue
    """
    return "\n".join(map(str.__add__, _BULLETS, shown.texts))


def describe(images: tuple[Image, ...], prompt: Template) -> Request:
    """The request that asks a model for a caption: the pictures, then the prompt."""
    return Request("model", (Message("user", (*images, prompt.text)),), "reply")


def letter_probabilities(choices: Mapping[str, float], n: int) -> dict[str, float]:
    """The probabilities of the first `n` letters among the first token's candidates, summing to 1.

    `choices` maps tokens to natural log-probabilities; tokens that are no such letter, with or
    without white space, are left out. Empty when there is none.

    >>> letter_probabilities({"A": -0.1, " A": -3.0, "Hm": -1.0}, 5)
    {'A': 1.0}
    """
    masses: dict[str, float] = {}
    for token, logprob in choices.items():
        letter = token.strip().strip("*().").upper()
        if len(letter) == 1 and letter in LETTERS[:n]:
            masses[letter] = masses.get(letter, 0.0) + math.exp(logprob)
    total = sum(masses.values())
    return {letter: mass / total for letter, mass in sorted(masses.items())} if total else {}


def letter_verdict(
    item: Item, probe: Probe, judged: Asked[Parsed], *, shown: Shown, repeat: int = 0
) -> Verdict:
    """A judgement as a verdict, in the letters of the stored order."""
    chances = None
    if judged.reply is not None and judged.reply.choices:
        found = letter_probabilities(judged.reply.choices, len(shown.texts))
        chances = {shown.stored(letter): p for letter, p in found.items()} or None
    letter = None if judged.reason else shown.stored(str(said(judged).value))
    return judged_verdict(item, probe, judged, letter, repeat=repeat, probabilities=chances)
