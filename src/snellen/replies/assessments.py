"""Two groups of booleans: a judge's assessment of a caption against its rubrics.

A group is all or nothing: with a wrong count, an item that cannot be read, or two versions that
differ, the whole group has no value, since later results may have slipped. The groups are read
independently of each other.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from snellen.replies.cleaning import (
    Parsed,
    blank_reason,
    clean,
    drop_quotations,
    json_places,
    twice_given,
    undress,
    unread,
)
from snellen.replies.verdicts import read_boolean, why_none

GROUPS = ("a", "b")


@dataclass(frozen=True, slots=True)
class Group:
    """The results of one group as they were found.

    `items` are what stands for each rubric, `ids` the labels they carry (all empty without any).
    `closed` is False if the reply stops inside the group, `apart` is False if it is unclear which
    results are this group's; `exact` is True for the form that the protocol prescribes.
    """

    items: tuple[Any, ...]
    ids: tuple[str, ...] = ()
    closed: bool = True
    exact: bool = False
    apart: bool = True


Found = dict[str, list[Group]]

_BLOCK = re.compile(r"<\s*assessment\b[^>]*>(.*?)<\s*/\s*assessment\s*>", re.I | re.S)
_GROUP = re.compile(
    r"<\s*group[\s_-]*(?P<name>[ab])\b[^<>]*?(?:/\s*>|>(?P<body>.*?)"
    r"(?P<end><\s*/\s*group[\s_-]*(?P=name)\s*>|(?=<\s*/?\s*group)|(?=<\s*/\s*assessment)|\Z))",
    re.I | re.S,
)
_EXACT = re.compile(r"<Group([AB])>(?:\s*<Result>\s*(?i:true|false)\s*</Result>)*\s*</Group\1>")
RESULT = re.compile(
    r"<\s*result(?P<attributes>(?:[\s_-]*\d{1,3})?\b[^<>]*?)"
    r"(?:/\s*>|>(?P<body>[^<]*)(?P<end><\s*/\s*result[\s_-]*\d*\s*>)?)",
    re.I,
)
_ID = re.compile(
    r"(?:\b(?:id|n|no|number|index|rubric)\s*=\s*[\"']?\s*|^[\s_-]*(?=\d))([\w.-]+)", re.I
)
_ITEM_NUMBER = re.compile(
    r"^\s*[(\[]?(?P<id>(?:[AB]|R|rubric\s*)?\d{1,3})\s*(?:[):\]-]|\.(?!\d))\s*(?=\S)", re.I
)
_NUMBERED = re.compile(r"[a-z]{0,9}[\s_.-]?[ab]?[\s_.-]?(\d{1,3})", re.I)
_HEADING = re.compile(
    r"^\W{0,200}group[\s_-]*(?P<name>[ab])\b"
    r"(?:[^\n,;]*\b(?:rubrics?|statements?|criteria)\W*$|[^\n:]*:|[^\n\w]*$|\s*\([^)\n]*\)\W*$)",
    re.I | re.M,
)


def read_tags(text: str) -> Found:
    """Groups in tags. Of several whole `<Assessment>` blocks each one is a version."""
    if "<" not in text and "&lt;" in text:
        text = html.unescape(text)
    blocks = [m[1] for m in _BLOCK.finditer(text)]
    found: Found = {}
    for block in blocks or [text]:
        for match in _GROUP.finditer(block):
            exact = bool(blocks) and _EXACT.fullmatch(match[0]) is not None
            found.setdefault(match["name"].lower(), []).append(_read_group(match, exact=exact))
    if not found:
        whole = bool(blocks)
        flat = (replace(_results_in(block), closed=whole) for block in blocks or [text])
        return {"": kept} if (kept := [group for group in flat if group.items]) else {}
    return found


def _read_group(group: re.Match[str], *, exact: bool) -> Group:
    closed = group["body"] is None or group["end"] != ""
    body = group["body"] or ""
    found = _results_in(body)
    if not found.items and "<" not in body:
        found = take_numbers(_lines_of(body))
    return replace(found, closed=closed, exact=exact)


def _results_in(text: str) -> Group:
    results = list(RESULT.finditer(text))
    named = [_ID.search(m["attributes"]) for m in results]
    group = take_numbers([(m["body"] or "").strip() for m in results])
    ids = tuple(m[1] for m in named if m)
    return replace(group, ids=ids) if ids and len(ids) == len(results) else group


def take_numbers(lines: Sequence[str]) -> Group:
    """Items, with the numbers that they begin with as ids if each has one.

    Where all bear one and the same number, it is the mark of a list and says nothing.
    """
    numbers = [_ITEM_NUMBER.match(line) for line in lines]
    ids = tuple(m["id"] for m in numbers if m)
    items = tuple(_ITEM_NUMBER.sub("", line) for line in lines)
    is_telling = len(ids) == len(items) and (len(set(ids)) > 1 or len(ids) == 1)
    return Group(items, ids if is_telling else ())


def _lines_of(text: str) -> list[str]:
    """One result a line, or all in one line, parted by commas."""
    lines = [line for raw in text.split("\n") if (line := undress(raw))]
    if len(lines) != 1:
        return lines
    return re.split(r"\s*[,;]\s*", re.sub(r"^\[(.*)\]$", r"\1", lines[0]))


def read_json(text: str) -> Found:
    """Groups in JSON: lists under group names or headings, or one list of rows, A before B."""
    found: Found = {}
    heads = list(_HEADING.finditer(text))
    for start, _, value in json_places(text):
        if isinstance(value, list):
            above = [head["name"].lower() for head in heads if head.end() <= start]
            found.setdefault(above[-1] if above else "", []).append(_json_group(value))
        else:
            _collect(value, found)
    return found


def _collect(value: dict[str, Any], found: Found) -> None:
    if all(re.fullmatch(r"[abAB][\s_.-]?\d+", key) for key in value):
        found.setdefault("", []).append(_json_group(value))
        return
    for key, inner in value.items():
        name = GROUP_NAMES.get(re.sub(r"[\W_]", "", key.lower()))
        if name is not None and key in twice_given(value):
            found.setdefault(name, []).append(Group((True, False), ("twice",) * 2))
        elif name is not None:
            found.setdefault(name, []).append(_json_group(inner))
        elif isinstance(inner, dict):
            _collect(inner, found)
        elif isinstance(inner, list):
            found.setdefault("", []).append(_json_group(inner))


GROUP_NAMES = {
    "groupa": "a", "a": "a", "mustright": "a", "critical": "a", "groupacriticalrubrics": "a",
    "groupb": "b", "b": "b", "easywrong": "b", "granular": "b", "groupbgranularrubrics": "b",
}  # fmt: skip
_ROW_IDS = ("id", "rubric_id", "rubric", "index", "number", "n")
_ROW_VALUES = (
    "pass",
    "passed",
    "result",
    "value",
    "verdict",
    "satisfied",
    "met",
    "answer",
    "judge",
)


def _json_group(value: Any) -> Group:
    if isinstance(value, dict):
        inner = next((v for k, v in value.items() if k.lower() in ("result", "results")), None)
        if isinstance(inner, list):
            return _json_group(inner)
        if twice_given(value):
            return Group(tuple(value.values()), ("",) * len(value))
        return Group(tuple(map(_row_value, value.values())), tuple(value))
    if not isinstance(value, list):
        return Group((value,))
    ids = tuple(str(i) for i in (_row_id(row) for row in value) if i is not None)
    return Group(tuple(map(_row_value, value)), ids if len(ids) == len(value) else ())


def _row_id(row: Any) -> Any:
    return next((row[k] for k in _ROW_IDS if k in row), None) if isinstance(row, dict) else None


def _row_value(row: Any) -> Any:
    if isinstance(row, dict):
        return next((row[k] for k in _ROW_VALUES if k in row), None)
    return row


def read_headings(text: str) -> Found:
    """Groups under plain headings, one result a line or parted by commas.

    Nothing shows that the last one is whole, should the reply be cut off.
    """
    heads = list(_HEADING.finditer(text))
    ends = [m.start() for m in heads[1:]] + [len(text)]
    found: Found = {}
    for head, end in zip(heads, ends, strict=False):
        group = take_numbers(_lines_of(text[head.end() : end]))
        closed = end < len(text)
        found.setdefault(head["name"].lower(), []).append(replace(group, closed=closed))
    return found


_NAMED_LINE = re.compile(
    r"(?:group\s*)?(?P<id>[ab][\s_.-]?\d{1,3})\s*[.:)=-]\s*(?P<said>\S.*)", re.I
)


def read_named_lines(text: str) -> Found:
    """Results on lines of their own, each behind the name of its rubric: "A1: true"."""
    lines = [line for raw in text.split("\n") if (line := undress(raw))]
    named = [m for m in map(_NAMED_LINE.fullmatch, lines) if m]
    if len(named) < len(lines):
        return {}
    items, ids = tuple(m["said"] for m in named), tuple(m["id"] for m in named)
    return {"": [Group(items, ids, closed=False)]}


ASSESSMENT_STEPS: dict[str, Callable[[str], Found]] = {
    "tags": read_tags,
    "json": read_json,
    "headings": read_headings,
    "named lines": read_named_lines,
}


def numbers_of(group: Group) -> list[int] | None:
    """The numbers in a group's ids (`2`, `A2`, `rubric_2`); None unless every id is one."""
    found = [_NUMBERED.fullmatch(i.strip()) for i in group.ids]
    return [int(m[1]) for m in found if m] if found and all(found) else None


def in_order(group: Group) -> Sequence[Any] | None:
    """The items in the order of the rubrics, as numbered ids put them; None if a number is missing.

    Numbers may begin anywhere: at 0, at 1, or where the other group's ended. Other ids say nothing
    about the order.

    >>> in_order(Group((False, True), ("A2", "A1")))
    [True, False]
    """
    numbers = numbers_of(group)
    if numbers is None or len(numbers) != len(group.items):
        return group.items
    if max(numbers) - min(numbers) != len(numbers) - 1:
        return None
    return [item for _, item in sorted(zip(numbers, group.items, strict=True), key=lambda p: p[0])]


def read_group(group: Group, n: int, finish_reason: str | None = None) -> Parsed:
    """One version of a group as `n` booleans, or why not."""
    if not group.closed and finish_reason == "length":
        return unread("truncated")
    if len(set(group.ids)) < len(group.ids):
        return same_ids(group, n)
    if len(group.items) != n or not (group.apart or n == 0):
        return unread("wrong_count", f"{len(group.items)} results for {n} rubrics")
    ordered = in_order(group)
    if ordered is None:
        return unread("wrong_ids", f"results for {', '.join(group.ids)} of {n} rubrics")
    read = [read_boolean(item) for item in ordered]
    bad = next((p for p in read if p.value is None), None)
    if bad is not None:
        return unread("unreadable_item", f"{bad.reason}: {bad.note}".strip(": "))
    return Parsed(tuple(p.value is True for p in read), "marked" if group.exact else "recovered")


def same_ids(group: Group, n: int) -> Parsed:
    """A group that names a rubric twice: read once, or a conflict where the results differ.

    In a conflict the other rubrics, which their ids tell apart, keep their results as `parts`.
    """
    said: dict[str, list[Any]] = {}
    for name, item in zip(group.ids, group.items, strict=True):
        said.setdefault(name, []).append(item)
    once = Group(tuple(items[0] for items in said.values()), tuple(said))
    torn = {name for name, items in said.items() if len(set(map(str, items))) > 1}
    if not torn:
        return read_group(once, n)
    conflict = unread("conflict", "two results for one rubric")
    order = in_order(Group(tuple(said), tuple(said)))
    if len(said) != n or order is None:
        return conflict
    parts = tuple(None if k in torn else _boolean(said[k][0]) for k in order)
    return replace(conflict, parts=parts)


def _boolean(item: Any) -> bool | None:
    value = read_boolean(item).value
    return value if isinstance(value, bool) else None


def choose_version(versions: Sequence[Parsed]) -> Parsed:
    """The last version, unless an earlier readable one says something else."""
    last = versions[-1]
    values = {v.value for v in versions if v.value is not None}
    if last.value is not None and len(values) > 1:
        return unread("conflict", "two assessments that differ")
    return last


CHOOSE: dict[str, Callable[[Sequence[Parsed]], Parsed]] = {"version": choose_version}


def _split_flat(found: Found, n_a: int, n_b: int) -> Found:
    """A list without groups, cut by the names in its ids or, without them, by the counts."""
    flat = found.get("", [])
    if not flat or any(name in found for name in GROUPS):
        return found
    split: Found = {"a": [], "b": []}
    for group in flat:
        for name, part in zip(GROUPS, _cut(group, n_a, n_b), strict=True):
            split[name].append(part)
    return split


def _cut(group: Group, n_a: int, n_b: int) -> tuple[Group, Group]:
    names = [i.strip().lower()[:1] for i in group.ids]
    by_name = bool(names) and set(names) <= {"a", "b"}
    if not by_name and len(set(group.ids)) == len(group.items):
        ordered = in_order(group)
        group = (
            replace(group, apart=False)
            if ordered is None
            else replace(group, items=tuple(ordered), ids=())
        )
    rows = list(zip(group.ids or ("",) * len(group.items), group.items, strict=True))
    places = _places(group)
    if not group.apart or (not by_name and max(places, default=-1) + 1 != n_a + n_b):
        whole = replace(group, ids=(), apart=False)
        return whole, whole
    sides = [name == "a" for name in names] if by_name else [place < n_a for place in places]
    parts = [
        [r for r, side in zip(rows, sides, strict=True) if side is wanted]
        for wanted in (True, False)
    ]
    made = [Group(tuple(v for _, v in p), tuple(i for i, _ in p if group.ids)) for p in parts]
    # Only what stands last can be cut.
    last = 0 if sides and sides[-1] else 1
    made[last] = replace(made[last], closed=group.closed)
    return made[0], made[1]


def _places(group: Group) -> list[int]:
    """The place of each item; items of one id share the place of the first."""
    if not group.ids:
        return list(range(len(group.items)))
    order = list(dict.fromkeys(group.ids))
    return [order.index(i) for i in group.ids]


def parse_assessment(
    text: str, n_a: int, n_b: int, *, finish_reason: str | None = None
) -> tuple[Parsed, Parsed]:
    """The judge's booleans for the `n_a` rubrics of group A and the `n_b` of group B.

    Strict about counts, forgiving about dress: fences, case, attributes, a missing outer tag, JSON.
    Of several versions of a group the last decides, and a readable earlier one that differs makes
    a conflict. A reply that was cut off keeps the groups that it closed.

    >>> reply = "<Assessment><GroupA><Result>true</Result></GroupA><GroupB></GroupB></Assessment>"
    >>> [p.value for p in parse_assessment(reply, 1, 0)]
    [(True,), ()]
    >>> parse_assessment(reply, 2, 0)[0].reason
    'wrong_count'
    """
    cleaned = clean(text)
    if not cleaned:
        reason = blank_reason(text, reasoning=None, finish_reason=finish_reason) or "no_verdict"
        return unread(reason), unread(reason)
    # What stands in quotation marks is the caption's.
    own_words = drop_quotations(cleaned, _QUOTED_BLOCK)
    found = _split_flat(_first_found(own_words), n_a, n_b)
    none = _why_missing(cleaned, found, finish_reason)
    sides = [
        _read_side(found.get(name, []), n, none, finish_reason)
        for name, n in zip(GROUPS, (n_a, n_b), strict=True)
    ]
    return sides[0], sides[1]


_QUOTED_BLOCK = re.compile(r"<\s*/?\s*(?:assessment|group[\s_-]*[ab])\b", re.I)


def _first_found(text: str) -> Found:
    for step in ASSESSMENT_STEPS.values():
        found = step(text)
        if found:
            return found
    return {}


def _why_missing(text: str, found: Found, finish_reason: str | None) -> str:
    if finish_reason == "length":
        return "truncated"
    if found:
        return "missing_group"
    return why_none(text)


def _read_side(groups: Sequence[Group], n: int, missing: str, finish_reason: str | None) -> Parsed:
    if not groups:
        # Nothing was asked of a group without rubrics, so nothing can be missing.
        return Parsed((), "recovered") if n == 0 and missing == "missing_group" else unread(missing)
    return CHOOSE["version"]([read_group(group, n, finish_reason) for group in groups])
