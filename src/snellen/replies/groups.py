"""Two groups of booleans: a judge's assessment of a caption against its rubrics.

A group is all or nothing: with a wrong count, an item that cannot be read, or two versions that
differ, the whole group has no value, since later results may have slipped. The groups are read
independently of each other. Each text is gone through once.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from snellen.records import JsonObject
from snellen.replies import vocabulary as words
from snellen.replies.answers import read_boolean, why_none
from snellen.replies.text import (
    Parsed,
    drop_quotations,
    json_places,
    open_reply,
    twice_given,
    undress,
    unread,
)

GROUPS = ("a", "b")


@dataclass(frozen=True, slots=True)
class Group:
    """The results of one group as they were found.

    `items` are what stands for each rubric, `ids` the labels they carry (all empty without any).
    `closed` is False if the reply stops inside the group, `apart` is False if it is unclear which
    results are this group's; `exact` is True for the form that the protocol prescribes.
    """

    items: tuple[object, ...]
    ids: tuple[str, ...] = ()
    closed: bool = True
    exact: bool = False
    apart: bool = True


Found = dict[str, list[Group]]

_TAG = re.compile(
    r"<\s*+(?P<close>/?+)\s*+(?:(?P<whole>assessment)|group[\s_-]*+(?P<group>[ab])|(?P<result>result))"
    r"(?![a-z])(?P<rest>[^<>]*+)(?P<end>>|(?=<)|\Z)",
    re.I,
)
_INNER = re.compile(r"<\s*+(?P<close>/?+)\s*+(?P<name>\w++)[^<>]*+(?:>|\Z)")
_EXACT = re.compile(
    r"<Group([AB])>(?:\s*+<Result>\s*+(?i:true|false)\s*+</Result>)*+\s*+</Group\1>"
)
_ID = re.compile(
    r"(?:\b(?:id|n|no|number|index|rubric)\s{0,4}=\s{0,4}[\"']?\s{0,4}|^[\s_-]{0,4}(?=\d))"
    r"([\w.-]{1,40})",
    re.I,
)
_ITEM_NUMBER = re.compile(
    r"^\s{0,9}[(\[]?(?P<id>(?:[AB]|R|rubric\s{0,3})?\d{1,3})\s{0,3}(?:[):\]-]|\.(?!\d))\s{0,9}(?=\S)",
    re.I,
)
_NUMBERED = re.compile(r"[a-z]{0,9}[\s_.-]?[ab]?[\s_.-]?(\d{1,3})", re.I)
_HEADING = re.compile(
    r"^[^\w\n]{0,40}group[\s_-]{0,4}(?P<name>[ab])\b"
    r"(?:[^\n,;]{0,80}\b(?:rubrics?|statements?|criteria)[^\w\n]{0,40}$|[^\n:]{0,80}:"
    r"|[^\n\w]{0,40}$|\s{0,4}\([^)\n]{0,80}\)[^\w\n]{0,40}$)",
    re.I | re.M,
)


@dataclass(slots=True)
class _Open:
    """A group or a list of results while the tags are gone through."""

    name: str
    start: int
    results: list[tuple[str, str]]
    loose: str = ""
    closed: bool = False
    end: int = 0


def read_tags(text: str) -> Found:
    """Groups in tags. Of several whole `<Assessment>` blocks each one is a version."""
    if "<" not in text and "&lt;" in text:
        text = html.unescape(text)
    groups, blocks = _walk_tags(text)
    if blocks:
        groups = [g for g in groups if any(a <= g.start < b for a, b in blocks)]
    named = [g for g in groups if g.name]
    found: Found = {}
    for group in named or groups:
        exact = bool(blocks) and _EXACT.fullmatch(text, group.start, group.end) is not None
        read = _numbered(group.results)
        if not group.results and group.name and "<" not in group.loose:
            read = take_numbers(_lines_of(group.loose))
        closed = group.closed if group.name else bool(blocks)
        if group.name or read.items:
            found.setdefault(group.name, []).append(replace(read, closed=closed, exact=exact))
    return found


def _walk_tags(text: str) -> tuple[list[_Open], list[tuple[int, int]]]:
    """The groups of a text, results outside of groups under the name "", and the whole blocks."""
    groups: list[_Open] = []
    blocks: list[tuple[int, int]] = []
    block, flat, group, in_result = -1, None, None, False
    tags = list(_TAG.finditer(text))
    ends = [tag.start() for tag in tags[1:]] + [len(text)]
    for tag, end in zip(tags, ends, strict=False):
        body = text[tag.end() : end]
        closing, name = bool(tag["close"]), (tag["group"] or "").lower()
        if tag["whole"] or name:
            if group is not None:
                group.end, group = tag.start(), None
            in_result = False
        if tag["whole"]:
            if closing and block >= 0:
                blocks.append((block, tag.start()))
            block, flat = (-1, None) if closing else (tag.end(), None)
        elif name and closing:
            if groups and groups[-1].name == name:
                groups[-1].closed, groups[-1].end = True, tag.end()
        elif name:
            groups.append(_Open(name, tag.start(), [], body, end=len(text)))
            is_empty = tag["rest"].rstrip().endswith("/")
            groups[-1].closed, group = is_empty, None if is_empty else groups[-1]
        elif tag["result"] and closing:
            in_result = False
        elif tag["result"]:
            if group is None and flat is None:
                flat = _Open("", tag.start(), [])
                groups.append(flat)
            in_result = not tag["rest"].rstrip().endswith("/")
            home = group or flat
            assert home is not None
            home.results.append((tag["rest"], _said(body) if in_result else ""))
    return groups, blocks


def _said(body: str) -> str:
    """The result in a result's body: that of a verdict tag inside, or all but other tags' words."""
    if "<" not in body:
        return body.strip()
    bare, named, inside, at = "", "", "", 0
    for tag in _INNER.finditer(body):
        piece = body[at : tag.start()].strip()
        bare, named = (bare + piece, named) if not inside else (bare, named)
        if inside in words.VERDICT_KEYS | words.SECOND_KEYS:
            named += piece
        inside = "" if tag["close"] else tag["name"].lower()
        at = tag.end()
    bare += body[at:].strip() if not inside else ""
    return named or bare


def _numbered(results: Sequence[tuple[str, str]]) -> Group:
    """Results of tags, with the ids of their attributes or the numbers they begin with."""
    ids = tuple(m[1] for m in (_ID.search(attributes) for attributes, _ in results) if m)
    group = take_numbers([said for _, said in results])
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
    line = lines[0]
    bare = line[1:-1] if line.startswith("[") and line.endswith("]") else line
    return [piece.strip() for piece in re.split(r"[,;]", bare)]


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


def _collect(value: JsonObject, found: Found) -> None:
    if all(re.fullmatch(r"[abAB][\s_.-]?\d{1,4}", key) for key in value):
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
    "pass", "passed", "result", "value", "verdict", "satisfied", "met", "answer", "judge",
)  # fmt: skip


def _json_group(value: object) -> Group:
    if isinstance(value, dict):
        inner = next((v for k, v in value.items() if k.lower() in ("result", "results")), None)
        if isinstance(inner, list):
            return _json_group(inner)
        if twice_given(value):
            return Group(tuple(value.values()), ("",) * len(value))
        return Group(tuple(map(_row_value, value.values())), tuple(value))
    if not isinstance(value, list):
        return Group((value,))
    ids = tuple(
        str(i)
        for i in (
            (next((row[k] for k in _ROW_IDS if k in row), None) if isinstance(row, dict) else None)
            for row in value
        )
        if i is not None
    )
    return Group(tuple(map(_row_value, value)), ids if len(ids) == len(value) else ())


def _row_value(row: object) -> object:
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
    r"(?:group\s{0,3})?(?P<id>[ab][\s_.-]?\d{1,3})\s{0,3}[.:)=-]\s{0,9}(?P<said>\S.*)", re.I
)


def read_named_lines(text: str) -> Found:
    """Results on lines of their own, each behind the name of its rubric: "A1: true"."""
    lines = [line for raw in text.split("\n") if (line := undress(raw))]
    named = [m for m in map(_NAMED_LINE.fullmatch, lines) if m]
    if len(named) < len(lines):
        return {}
    items, ids = tuple(m["said"] for m in named), tuple(m["id"] for m in named)
    return {"": [Group(items, ids, closed=False)]}


READERS: tuple[Callable[[str], Found], ...] = (
    read_tags, read_json, read_headings, read_named_lines,
)  # fmt: skip


def in_order(group: Group) -> Sequence[object] | None:
    """The items in the order of the rubrics, as numbered ids put them; None if a number is missing.

    Numbers (`2`, `A2`, `rubric_2`) may begin anywhere: at 0, at 1, or where the other group's
    ended. Other ids say nothing about the order.

    >>> in_order(Group((False, True), ("A2", "A1")))
    [True, False]
    """
    found = [_NUMBERED.fullmatch(i.strip()) for i in group.ids]
    numbers = [int(m[1]) for m in found if m]
    if not numbers or len(numbers) != len(group.ids) or len(numbers) != len(group.items):
        return group.items
    if max(numbers) - min(numbers) != len(numbers) - 1:
        return None
    return [item for _, item in sorted(zip(numbers, group.items, strict=True), key=lambda p: p[0])]


def read_group(group: Group, n: int, finish_reason: str | None = None) -> Parsed:
    """One version of a group as `n` booleans, or why not."""
    if not group.closed and finish_reason == "length":
        return unread("truncated")
    if len(set(group.ids)) < len(group.ids):
        return _same_ids(group, n)
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


def _same_ids(group: Group, n: int) -> Parsed:
    """A group that names a rubric twice: read once, or a conflict where the results differ.

    In a conflict the other rubrics, which their ids tell apart, keep their results as `parts`.
    """
    said: dict[str, list[object]] = {}
    for name, item in zip(group.ids, group.items, strict=True):
        said.setdefault(name, []).append(item)
    torn = {name for name, items in said.items() if len(set(map(str, items))) > 1}
    if not torn:
        return read_group(Group(tuple(items[0] for items in said.values()), tuple(said)), n)
    conflict = unread("conflict", "two results for one rubric")
    order = in_order(Group(tuple(said), tuple(said)))
    if len(said) != n or order is None:
        return conflict
    read = [None if k in torn else read_boolean(said[k][0]).value for k in map(str, order)]
    return replace(conflict, parts=tuple(v if isinstance(v, bool) else None for v in read))


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
    # Items of one id share the place of the first.
    places = {name: k for k, name in enumerate(dict.fromkeys(group.ids))}
    count = len(places) if group.ids else len(group.items)
    if not group.apart or (not by_name and count != n_a + n_b):
        whole = replace(group, ids=(), apart=False)
        return whole, whole
    if by_name:
        sides = [name == "a" for name in names]
    else:
        sides = [(places[name] if group.ids else k) < n_a for k, (name, _) in enumerate(rows)]
    made = []
    for wanted in (True, False):
        part = [row for row, side in zip(rows, sides, strict=True) if side is wanted]
        ids = tuple(name for name, _ in part) if group.ids else ()
        made.append(Group(tuple(item for _, item in part), ids))
    # Only what stands last can be cut.
    last = 0 if sides and sides[-1] else 1
    made[last] = replace(made[last], closed=group.closed)
    return made[0], made[1]


_QUOTED_BLOCK = re.compile(r"<\s{0,9}/?\s{0,9}(?:assessment|group[\s_-]{0,4}[ab])\b", re.I)


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
    cleaned = open_reply(text, finish_reason, unboxed=False)
    if isinstance(cleaned, Parsed):
        return cleaned, cleaned
    # What stands in quotation marks is the caption's.
    own_words = drop_quotations(cleaned, _QUOTED_BLOCK)
    found = _split_flat(next(filter(None, (read(own_words) for read in READERS)), {}), n_a, n_b)
    missing = "missing_group" if found else why_none(cleaned)
    if finish_reason == "length":
        missing = "truncated"
    a, b = (
        _read_side(found.get(name, []), n, missing, finish_reason)
        for name, n in zip(GROUPS, (n_a, n_b), strict=True)
    )
    return a, b


def _read_side(groups: Sequence[Group], n: int, missing: str, finish_reason: str | None) -> Parsed:
    """The last version of a group, unless an earlier readable one says something else."""
    if not groups:
        # Nothing was asked of a group without rubrics, so nothing can be missing.
        return Parsed((), "recovered") if n == 0 and missing == "missing_group" else unread(missing)
    versions = [read_group(group, n, finish_reason) for group in groups]
    values = {v.value for v in versions if v.value is not None}
    if versions[-1].value is not None and len(values) > 1:
        return unread("conflict", "two assessments that differ")
    return versions[-1]
