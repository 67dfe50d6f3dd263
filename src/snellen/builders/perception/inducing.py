"""A taxonomy from below: descriptions of errors are clustered, named, merged, and edited."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from snellen.builders.perception.rows import ErrorType
from snellen.errors import DataError
from snellen.flows import Asked, Flow, ask_until
from snellen.records import Message, Reply, Request
from snellen.replies.fences import fence
from snellen.replies.typed import UnreadableError, json_reply
from snellen.templates import bundled

NAME = "build_name_type"
# An inducer sees so many descriptions of a cluster at most; they are the most typical.
MOST_SHOWN = 20
_LABEL = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")


class NamedType(msgspec.Struct, frozen=True):
    """A type as an inducer names it."""

    name: str
    definition: str


class _Types(msgspec.Struct):
    types: list[NamedType]


def label_of(name: str) -> str:
    """A name as a label: lower case, joined by underscores.

    >>> label_of(" Missed small Text error ")
    'missed_small_text_error'
    """
    return "_".join(re.findall(r"[a-z0-9]+", name.lower()))


def named_in(reply: Reply) -> NamedType:
    """The one type that a reply names.

    Raises:
        UnreadableError: it has another form, or names none or several.
    """
    found = json_reply(_Types)(reply).types
    if len(found) != 1:
        raise UnreadableError("not_as_asked", f"expected one type, found {len(found)}")
    [one] = found
    label = label_of(one.name)
    if not _LABEL.fullmatch(label) or not one.definition.strip():
        raise UnreadableError("not_as_asked", "the type needs a name and a definition")
    return NamedType(label, " ".join(one.definition.split()))


def name_cluster(
    number: int, descriptions: Sequence[str], *, role: str, reasks: int
) -> Flow[Asked[NamedType]]:
    """Asks the inducer for the name and definition of a cluster."""
    lines = "\n".join(f"- {one}" for one in descriptions[:MOST_SHOWN])
    text = bundled(NAME).fill(descriptions=fence(lines, "descriptions"))
    request = Request(role, (Message("user", (text,)),), "name", probe=str(number))
    return (yield from ask_until(request, named_in, reasks=reasks))


class TypeEdit(msgspec.Struct, frozen=True, omit_defaults=False):
    """A type in `taxonomy.json`, where people edit what was induced.

    `name`, `definition` and `is_perceptual` are as induced, and written anew at each start. People
    fill in the rest: another name or definition, the type that this one goes into, whether it is
    perceptual, and whether it is dropped.
    """

    name: str
    definition: str
    is_perceptual: bool
    n: int = 0
    nearest: str = ""
    new_name: str | None = None
    new_definition: str | None = None
    into: str | None = None
    perceptual: bool | None = None
    drop: bool = False

    @property
    def has_edit(self) -> bool:
        """Whether people have filled in anything."""
        return self.drop or any(
            one is not None
            for one in (self.new_name, self.new_definition, self.into, self.perceptual)
        )


def edited_types(
    types: Sequence[ErrorType], edits: Mapping[str, TypeEdit]
) -> tuple[ErrorType, ...]:
    """The types with what people have changed, types of one label made one.

    Raises:
        DataError: an edit names no label, or a type to go into that there is not.
    """
    renamed: dict[str, ErrorType] = {}
    labels = {one.id: _new_label(one, edits.get(one.id)) for one in types}
    for one in types:
        edit = edits.get(one.id)
        if edit is None:
            _add(renamed, one, labels[one.id])
            continue
        if edit.drop:
            continue
        target = labels[one.id]
        if edit.into is not None:
            if edit.into not in labels:
                raise DataError(
                    f"`{one.id}` is to go into `{edit.into}`, and there is no such type",
                    file="taxonomy.json", field="into", hint=f"types: {', '.join(labels)}",
                )  # fmt: skip
            target = labels[edit.into]
            if edit.into != one.id:
                _add(renamed, msgspec.structs.replace(one, definition=""), target)
                continue
        changed = msgspec.structs.replace(
            one,
            definition=edit.new_definition or one.definition,
            is_perceptual=one.is_perceptual if edit.perceptual is None else edit.perceptual,
        )
        _add(renamed, changed, target)
    return tuple(one for one in renamed.values() if one.definition)


def _new_label(one: ErrorType, edit: TypeEdit | None) -> str:
    if edit is None or edit.new_name is None:
        return one.id
    label = label_of(edit.new_name)
    if not label:
        raise DataError(
            f"`{edit.new_name}` is no name", file="taxonomy.json", field="new_name",
            hint="write words in lower case, joined by underscores",
        )  # fmt: skip
    return label


def _add(found: dict[str, ErrorType], one: ErrorType, label: str) -> None:
    """Puts a type under a label; the first definition under it holds."""
    before = found.get(label)
    if before is None:
        found[label] = msgspec.structs.replace(one, id=label)
        return
    known = before if before.definition else one
    found[label] = msgspec.structs.replace(
        known,
        id=label,
        n=before.n + one.n,
        examples=(*before.examples, *one.examples)[:MOST_SHOWN],
        made_from=(*before.made_from, *one.made_from),
    )


def merged_types(types: Iterable[ErrorType]) -> tuple[ErrorType, ...]:
    """Types of one label as one type; the first definition holds."""
    found: dict[str, ErrorType] = {}
    for one in types:
        _add(found, one, one.id)
    return tuple(found.values())
