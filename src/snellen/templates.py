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


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt's text, its name and its hash."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        """The hash of the text, in hex: it stands in `run.json`."""
        return digest(self.text)

    @property
    def fields(self) -> frozenset[str]:
        """The names of its marks."""
        return _pieces(self.text)[1]

    def require(self, *forms: frozenset[str]) -> None:
        """Complains unless its marks are exactly those of one of the forms.

        Raises:
            TemplateError: the message compares with the nearest form.
        """
        if self.fields not in forms:
            self._complain(self.fields, min(forms, key=lambda form: len(form ^ self.fields)))

    def fill(self, **values: str) -> str:
        """The text with each mark replaced once; values are never searched for marks.

        >>> Template("t", "Q: {question}").fill(question="{answer}")
        'Q: {answer}'

        Raises:
            TemplateError: a mark has no value, or a value has no mark.
        """
        pieces, names = _pieces(self.text)
        if len(values) != len(names) or not names.issuperset(values):
            self._complain(names, frozenset(values))
        filled = [values[piece] if k % 2 else piece for k, piece in enumerate(pieces)]
        return "".join(filled)

    def _complain(self, fields: frozenset[str], given: frozenset[str]) -> None:
        missing, unknown = sorted(given - fields), sorted(fields - given)
        found = [f"lacks {_marks(missing)}"] if missing else []
        found += [f"has the unknown {_marks(unknown)}"] if unknown else []
        raise TemplateError(
            f"prompt {self.name} {' and '.join(found)}",
            hint=f"it must hold exactly: {_marks(sorted(given))}",
        )


def _marks(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)


@lru_cache(64)
def _pieces(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """A prompt's literal pieces and mark names in turn, and the set of the names."""
    pieces = tuple(_MARK.split(text))
    return pieces, frozenset(pieces[1::2])


@cache
def bundled(name: str) -> Template:
    """A prompt that ships with Snellen, by the name of its file without `.txt`."""
    path = resources.files("snellen") / "prompts" / f"{name}.txt"
    return Template(name, path.read_text(encoding="utf-8").rstrip("\n"))


def from_file(path: str | Path) -> Template:
    """A prompt of the user's; a final newline is not part of it.

    Raises:
        TemplateError: the file cannot be read as UTF-8 text.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(
            f"prompt file {path} cannot be read: {error}", hint="give a UTF-8 text file"
        ) from error
    return Template(str(path), text.rstrip("\n"))
