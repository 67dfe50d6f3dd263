"""Types of errors from below: names, merges, people's edits; and the map of errors by hand."""

from __future__ import annotations

import pytest

from snellen.builders.perception.inducing import (
    TypeEdit,
    edited_types,
    merged_types,
    named_in,
)
from snellen.builders.perception.mapping import error_map, mixes
from snellen.builders.perception.rows import AttributedRow, ErrorType
from snellen.builders.perception.taxonomy import DEFAULT
from snellen.errors import DataError
from snellen.records import Reply
from snellen.replies.typed import UnreadableError


def kind(name: str, n: int = 1) -> ErrorType:
    return ErrorType(id=name, definition=f"About {name}.", is_perceptual=True, n=n)


def edit(name: str, **words: object) -> TypeEdit:
    return TypeEdit(name, "", True, **words)  # type: ignore[arg-type]


def test_a_type_in_a_reply() -> None:
    """The name becomes a label; several types, or none, are asked again."""
    one = '{"types": [{"name": "Missed small Text", "definition": "Small text\\nis not read."}]}'
    found = named_in(Reply(one))
    assert (found.name, found.definition) == ("missed_small_text", "Small text is not read.")
    for bad in ('{"types": []}', '{"types": [{"name": "!", "definition": "d"}]}'):
        with pytest.raises(UnreadableError):
            named_in(Reply(bad))


def test_types_of_one_label_are_one() -> None:
    """The first definition holds, the numbers add up."""
    [one] = merged_types([kind("a", 3), kind("a", 2)])
    assert (one.n, one.definition) == (5, "About a.")


def test_people_rename_merge_and_drop() -> None:
    """An edit of each kind; the others stay."""
    types = [kind("a", 3), kind("b", 2), kind("c", 1), kind("d", 4)]
    edits = {
        "a": edit("a", new_name="Small Text", new_definition="Small text is missed."),
        "b": edit("b", into="a"),
        "c": edit("c", drop=True),
        "d": edit("d", perceptual=False),
    }
    first, last = edited_types(types, edits)
    assert (first.id, first.n, first.definition) == ("small_text", 5, "Small text is missed.")
    assert (last.id, last.is_perceptual) == ("d", False)
    assert edited_types(types, {}) == tuple(types)
    # What goes into a later type finds it too.
    into_later = edited_types(types[:2], {"a": edit("a", into="b")})
    assert [(one.id, one.n, one.definition) for one in into_later] == [("b", 5, "About b.")]


def test_an_edit_that_cannot_be_is_named() -> None:
    """The message says which type."""
    with pytest.raises(DataError, match="`a` is to go into `z`"):
        edited_types([kind("a")], {"a": edit("a", into="z")})
    with pytest.raises(DataError, match="no name"):
        edited_types([kind("a")], {"a": edit("a", new_name="!!")})


def row(bmk: str, idx: int, label: str, model: str = "m") -> AttributedRow:
    perceptual = {one.id for one in DEFAULT if one.is_perceptual}
    return AttributedRow(
        id=f"{bmk}.{idx}.{model}", type=label, is_perceptual=label in perceptual, source_bmk=bmk,
        source_idx=idx, model=model, attributions=(), decided_by="agreed",
    )  # fmt: skip


def test_a_map_by_hand() -> None:
    """A: counting 2, ocr 2; B: counting 1, format 3. Shares (1/2, 1/2) and (1, 0): 1/2 over 3/2."""
    rows = [
        row("A", 0, "visual_counting_error"), row("A", 1, "visual_counting_error"),
        row("A", 2, "ocr_error"), row("A", 3, "ocr_error"), row("B", 0, "visual_counting_error"),
        row("B", 1, "format"), row("B", 2, "format"), row("B", 3, "format", "other"),
    ]  # fmt: skip
    found = error_map(rows, DEFAULT, seed=0, draws=99)
    assert found.perceptual.matrix[0][1] == pytest.approx(1 / 3)
    assert found.perceptual.mean == pytest.approx(1 / 3)
    # All types: (1/2, 1/2, 0) and (1/4, 0, 3/4): 1/4 over 1/2 + 1/2 + 3/4.
    assert found.all_types.mean == pytest.approx(0.25 / 1.75)
    first, second = found.benchmarks
    assert (first.failures, first.perceptual) == (4, 4)
    assert first.leading == (("ocr_error", 0.5),)
    assert (second.failures, second.perceptual) == (4, 1)
    assert second.leading == (("visual_counting_error", 1.0),)
    assert [(one.name, one.failures) for one in found.models] == [("m", 7), ("other", 1)]
    assert found.perceptual.p is not None
    assert [(one.id, one.failures) for one in mixes(rows)] == [
        ("A/m", 4),
        ("B/m", 3),
        ("B/other", 1),
    ]


def test_a_benchmark_without_perceptual_failures_is_in_no_pair() -> None:
    """Its cells are empty, not zero; one benchmark has no mean."""
    rows = [row("A", 0, "ocr_error"), row("B", 0, "format"), row("C", 0, "ocr_error")]
    found = error_map(rows, DEFAULT, seed=0, draws=9).perceptual
    assert found.matrix[0][1] is None
    assert found.mean == 1.0
    assert error_map(rows[:1], DEFAULT, seed=0).perceptual.mean is None
    assert error_map([], DEFAULT, seed=0).benchmarks == ()
