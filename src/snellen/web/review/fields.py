"""The fields of a task: how each is shown and edited, and which of them an edit has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from snellen.builders.reviewing import Task
from snellen.records import LETTERS, JsonObject
from snellen.schemas import CATEGORIES

# What of a task people may change, by its kind; other fields are shown alone.
EDITABLE: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "options", "answer", "category"),
    "caption": ("caption",),
    "rubric": ("text",),
    "attribution": ("type",),
    "atomic": ("problem", "answer", "hint", "error_category"),
}
# Fields that only programs need.
HIDDEN = frozenset({"name", "types"})


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a task.

    `before` and `after` are lines: one, or one for each entry of a list. `choices` are the only
    values that a field may have.
    """

    name: str
    title: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    is_list: bool
    is_editable: bool
    choices: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether an edit has changed it."""
        return self.before != self.after


def fields_of(kind: str, shown: JsonObject, given: Mapping[str, object]) -> list[Field]:
    """The fields of a task; `given` holds changed values, or those of a form."""
    editable = EDITABLE.get(kind, ())
    found = []
    for name, value in shown.items():
        if name in HIDDEN:
            continue
        before = lines_of(value)
        after = _given(name, given, before)
        choices: tuple[str, ...] = CATEGORIES if name == "category" and kind == "question" else ()
        if name == "answer" and kind == "question":
            choices = tuple(LETTERS[: len(lines_of(shown.get("options", ())))])
        if name == "type" and kind == "attribution":
            choices = lines_of(shown["types"])
        found.append(
            Field(
                name,
                name.replace("_", " ").capitalize(),
                before,
                after,
                isinstance(value, list),
                name in editable,
                tuple(choices),
            )
        )
    order = [*editable, *(field.name for field in found)]
    return sorted(found, key=lambda field: order.index(field.name))


def headline(task: Task) -> str:
    """What a task is about in one line: its question or statement, else its id."""
    names = ("question", "problem", "text", "caption")
    return str(next((task.shown[name] for name in names if task.shown.get(name)), task.id))


def lines_of(value: object) -> tuple[str, ...]:
    """A value as lines of text.

    >>> lines_of(["a", ["b", "c"]]), lines_of(None), lines_of(0.25)
    (('a', 'b / c'), ('-',), ('0.25',))
    """
    if isinstance(value, list | tuple):
        return tuple(
            " / ".join(map(str, one)) if isinstance(one, list | tuple) else str(one)
            for one in value
        )
    return ("-" if value is None else str(value),)


def _given(name: str, given: Mapping[str, object], before: tuple[str, ...]) -> tuple[str, ...]:
    """The lines of a field in an edit (`options`), or in a form (`options_0`, `options_1` ...)."""
    if name in given:
        return lines_of(given[name])
    return tuple(str(given.get(f"{name}_{k}", line)) for k, line in enumerate(before))


def changed_fields(kind: str, shown: JsonObject, form: Mapping[str, str]) -> JsonObject:
    """The fields that a form changes, as an edit holds them."""
    after: JsonObject = {}
    for field in fields_of(kind, shown, {k: _plain(v) for k, v in form.items()}):
        if not field.is_editable or not field.is_changed:
            continue
        after[field.name] = list(field.after) if field.is_list else field.after[0]
    return after


def _plain(text: str) -> str:
    """What a text area sends, with the line ends that the text had."""
    return text.replace("\r\n", "\n").strip()


def difference(before: str, after: str) -> Sequence[tuple[str, str]]:
    """Two texts word by word, as (`same` | `gone` | `new`, words).

    >>> difference("a red car", "a blue car")
    [('same', 'a'), ('gone', 'red'), ('new', 'blue'), ('same', 'car')]
    """
    from difflib import SequenceMatcher

    old, new = before.split(), after.split()
    pieces: list[tuple[str, str]] = []
    for word, a, b, c, d in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if word == "equal":
            pieces.append(("same", " ".join(old[a:b])))
            continue
        pieces += [(k, " ".join(t)) for k, t in (("gone", old[a:b]), ("new", new[c:d])) if t]
    return pieces
