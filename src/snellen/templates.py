"""Prompt files with `{field}` marks, filled in one pass so that no value can add a mark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path

from snellen.errors import TemplateError
from snellen.keys import digest

_MARK = re.compile(r"\{([A-Za-z][A-Za-z0-9_]*)\}")
# What stands before an argument of a formula: a command, `_` or `^`, and earlier arguments.
_FORMULA = re.compile(
    r"(?:\\[A-Za-z]+\*?(?:\[[^\]\n]*\])?|[_^])(?:\{(?:[^{}\n]|\{[^{}\n]*\})*\})*\Z"
)
_LOOK_BACK = 200


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt's text, its name and its hash.

    A word in braces is a mark. In formulas it is text (`\\frac{n}{total}`, `x_{max}`), and so is a
    single letter, unless a value has that name: prompts with LaTeX need no escape.
    """

    name: str
    text: str

    @property
    def sha256(self) -> str:
        """The hash of the text, in hex: it stands in `run.json`."""
        return digest(self.text)

    @property
    def fields(self) -> frozenset[str]:
        """The names of its marks; formulas have none."""
        return _pieces(self.text)[2]

    def fits(self, *forms: frozenset[str]) -> bool:
        r"""Whether its marks are exactly those of one of the forms.

        >>> Template("t", r"\frac{n}{total} {question}").fits(frozenset({"question"}))
        True
        """
        _, names, fields = _pieces(self.text)
        return any(_words(fields) <= form <= names for form in forms)

    def require(self, *forms: frozenset[str]) -> None:
        """Complains unless its marks are exactly those of one of the forms.

        Raises:
            TemplateError: the message compares with the nearest form.
        """
        if not self.fits(*forms):
            self._complain(min(forms, key=lambda form: len(form ^ self.fields)))

    def fill(self, **values: str) -> str:
        """The text with each mark replaced once; values are never searched for marks.

        >>> Template("t", "Q: {question}").fill(question="{answer}")
        'Q: {answer}'

        Raises:
            TemplateError: a mark has no value, or a value has no mark.
        """
        pieces, names, fields = _pieces(self.text)
        if not (names.issuperset(values) and _words(fields) <= values.keys()):
            self._complain(frozenset(values))
        filled = [
            values.get(piece, f"{{{piece}}}") if k % 2 else piece for k, piece in enumerate(pieces)
        ]
        return "".join(filled)

    def _complain(self, given: frozenset[str]) -> None:
        _, names, fields = _pieces(self.text)
        missing, unknown = sorted(given - names), sorted(_words(fields) - given)
        found = [f"lacks {_marks(missing)}"] if missing else []
        found += [f"has the unknown {_marks(unknown)}"] if unknown else []
        raise TemplateError(
            f"prompt {self.name} {' and '.join(found)}",
            hint=f"it must hold exactly: {_marks(sorted(given))}",
        )


def _marks(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)


@lru_cache(64)
def _pieces(text: str) -> tuple[tuple[str, ...], frozenset[str], frozenset[str]]:
    """A prompt's literal pieces and names in braces in turn, all names, and those of marks."""
    pieces = tuple(_MARK.split(text))
    marks = (mark for mark in _MARK.finditer(text) if not _is_formula(mark))
    return pieces, frozenset(pieces[1::2]), frozenset(mark[1] for mark in marks)


def _is_formula(mark: re.Match[str]) -> bool:
    before = mark.string[max(0, mark.start() - _LOOK_BACK) : mark.start()]
    return bool(_FORMULA.search(before))


def _words(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in names if len(name) > 1)


@cache
def bundled(name: str) -> Template:
    """A prompt that ships with Snellen, by the name of its file without `.txt`."""
    path = resources.files("snellen") / "prompts" / f"{name}.txt"
    return Template(name, path.read_text(encoding="utf-8").rstrip("\n"))


def from_file(path: str | Path) -> Template:
    """A prompt of the user's; a byte order mark and final newlines are not part of it.

    Raises:
        TemplateError: the file cannot be read as UTF-8 text, or is blank.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(
            f"prompt file {path} cannot be read: {error}", hint="give a UTF-8 text file"
        ) from error
    if not text.strip():
        raise TemplateError(f"prompt file {path} is empty", hint="put the prompt into it")
    return Template(str(path), text.rstrip("\n"))
