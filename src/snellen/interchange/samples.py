"""One sample of a result file of another tool, in the one form that all readers here give.

A reader is a function from a file to its samples. A row that cannot be read is given as the error
that names file and row, so that a caller may stop, skip or collect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from snellen.errors import DataError
from snellen.readers.rows import Row, decode_row, read_rows
from snellen.records import Image

# A picture in a result file: a path or a data URI, as it stands there, or a picture of ours.
Picture = str | Image
R = TypeVar("R", bound=msgspec.Struct)

_MARK = "<|image_{}|>"
_SEVERAL = re.compile(r"^\s*\[.*\]\s*$", re.S)


@dataclass(frozen=True, slots=True)
class ForeignSample:
    """What one model answered to one question, and how that was scored.

    `question` has `<|image_N|>` where picture N stood; without a mark the pictures go ahead.
    `pictures` are paths or data URIs as the file has them; there are none where the tool does not
    store them (see `beside`). `reply` is None where the call
    failed. `score` is as the tool gives it, 0 to 1 for most; `correct` is None where it gives
    neither a yes nor a no. `index` is the sample's own in `benchmark`. `row` counts from 1.
    """

    id: str
    question: str
    reference: str
    reply: str | None
    model: str
    benchmark: str
    index: str | int
    file: Path
    row: int
    pictures: tuple[Picture, ...] = ()
    options: tuple[str, ...] = ()
    correct: bool | None = None
    score: float | None = None

    def is_wrong(self, below: float) -> bool | None:
        """Whether the reply counts as wrong: scored below a bound, or plainly wrong.

        None where the tool has not scored it.
        """
        if self.correct is not None:
            return not self.correct
        return None if self.score is None else self.score < below


Found = ForeignSample | DataError


def samples(found: Iterable[Found]) -> Iterator[ForeignSample]:
    """The samples of a reader, up to the first row that cannot be read.

    Raises:
        DataError: such a row; the message names file and row.
    """
    for one in found:
        if isinstance(one, DataError):
            raise one
        yield one


def rows_as(path: Path, kind: type[R]) -> Iterator[tuple[Row, R | DataError]]:
    """The rows of a JSON-lines or JSON file, each as a struct or as the error that names it."""
    decoder = msgspec.json.Decoder(kind)
    for row in read_rows(path):
        try:
            yield row, decode_row(row, decoder)
        except DataError as error:
            yield row, error


def verdict_of(value: object) -> tuple[bool | None, float | None]:
    """A tool's value of a sample as right or wrong, and as a number.

    >>> verdict_of(1), verdict_of("I"), verdict_of(0.4), verdict_of({"score": 1.0})
    ((True, 1.0), (False, 0.0), (None, 0.4), (True, 1.0))
    """
    if isinstance(value, Mapping):
        inner = next((value[name] for name in ("score", "correct", "acc") if name in value), None)
        return verdict_of(inner)
    if isinstance(value, str):
        word = value.strip().casefold()
        try:
            value = _WORDS[word] if word in _WORDS else float(word)
        except ValueError:
            return None, None
    if isinstance(value, bool | int | float):
        number = float(value)
        return (number == 1.0 if number in (0.0, 1.0) else None), number
    return None, None


# Words of scorers; Inspect writes C, I, P and N.
_WORDS: Mapping[str, float] = {
    "c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0, "true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0,
    "correct": 1.0, "incorrect": 0.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Content:
    """The text of a message with a mark for each picture, and the pictures in their order."""

    text: str
    pictures: tuple[str, ...]


class Part(msgspec.Struct):
    """A part of a chat message, as Inspect and EvalScope write them; OpenAI's form is taken too."""

    type: str = "text"
    text: str = ""
    image: str = ""
    image_url: str | dict[str, str] = ""

    @property
    def picture(self) -> str:
        """The path or URI of the picture; "" for a text."""
        found = self.image or self.image_url
        return found if isinstance(found, str) else found.get("url", "")


class Turn(msgspec.Struct):
    """A chat message."""

    role: str = "user"
    content: str | list[Part] = ""


def content_of(turns: Sequence[Turn], role: str = "user") -> Content:
    """What the messages of a role say and show."""
    texts: list[str] = []
    pictures: list[str] = []
    for turn in turns:
        if turn.role != role:
            continue
        parts = [Part(text=turn.content)] if isinstance(turn.content, str) else turn.content
        for part in parts:
            if part.picture:
                pictures.append(part.picture)
                texts.append(_MARK.format(len(pictures)))
            elif part.text:
                texts.append(part.text)
    return Content("".join(texts).strip(), tuple(pictures))


def listed(cell: str) -> tuple[str, ...]:
    """The texts of a table's cell that holds one of them, or a list as JSON or Python write it.

    >>> listed("a.png"), listed("['a.png', 'b.png']"), listed('["a"]'), listed("")
    (('a.png',), ('a.png', 'b.png'), ('a',), ())
    """
    if not cell.strip():
        return ()
    if _SEVERAL.match(cell):
        import ast

        try:
            found = ast.literal_eval(cell.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return (cell,)
        if isinstance(found, list) and all(isinstance(one, str) for one in found):
            return tuple(found)
    return (cell,)


def joined_reference(target: str | Sequence[str]) -> str:
    """The reference of a sample; of several accepted answers, all.

    >>> joined_reference(["blue", "navy"])
    'blue or navy'
    """
    return target.strip() if isinstance(target, str) else " or ".join(one.strip() for one in target)
