"""Five writers of tables, and the one place where numbers are formatted."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from snellen.tables.screen import cells_of, folded, legible
from snellen.tables.table import (
    COUNT,
    Cell,
    Column,
    Format,
    Label,
    Number,
    Share,
    Table,
    known,
    number_in,
    places,
)

DASH: Final = "-"
LOW_FIDELITY: Final = "low fidelity"
MARKED: Final = "bold, underlined, italic: first, second and third of a column"


def written(value: float | None, format: Format = COUNT, *, printed: bool = False) -> str:
    """A number as people read it: rates in per cent, a dash where there is none.

    >>> written(0.6872, Format("%", 1, 2)), written(0.6872, Format("%", 1, 2), printed=True)
    ('68.7', '68.72')
    >>> written(-0.0001, Format("points", 1)), written(None)
    ('0.0', '-')
    """
    value = known(value)
    if value is None:
        return DASH
    if abs(value) < format.least:
        return f"<{format.least:g}"
    sign = "+" if format.signed else ""
    if isinstance(value, int) and format.unit not in {"%", "points"}:
        return f"{value:{sign},}"
    shown = 100 * value if format.unit in {"%", "points"} else value
    digits = format.printed if printed and format.printed is not None else format.digits
    text = f"{shown:{sign}g}" if digits is None else f"{shown:{sign}.{digits}f}"
    return text.removeprefix(DASH) if float(text) == 0.0 else text


def interval_text(
    ends: tuple[float, float] | None, format: Format, *, printed: bool = False
) -> str:
    """An interval in brackets; empty where there is none.

    >>> interval_text((0.661, 0.712), Format("%", 1))
    '[66.1, 71.2]'
    """
    if ends is None:
        return ""
    format = replace(format, signed=False)
    return f"[{', '.join(written(end, format, printed=printed) for end in ends)}]"


def p_text(p: float | None) -> str:
    """A p value as people read it.

    >>> p_text(0.00002), p_text(0.0213), p_text(1.0)
    ('p < 0.001', 'p = 0.021', 'p = 1')
    """
    if p is None:
        return "p unknown"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}".rstrip("0").rstrip(".")


def parts_of(cell: Cell, column: Column, *, printed: bool = False) -> tuple[str, str, str]:
    """A cell as value, interval, and counts with remark; a part that a cell lacks is empty."""
    match cell:
        case None:
            return DASH, "", ""
        case str():
            return cell, "", ""
        case Label():
            return cell.text + (f" ({LOW_FIDELITY})" if cell.fidelity == "low" else ""), "", ""
        case Share():
            return f"{cell.part:.0f}/{cell.whole:.0f}", "", cell.remark
        case Number():
            form = cell.format or column.format
            interval = None if known(cell.value) is None else cell.interval
            ends = interval_text(interval, form, printed=printed)
            if cell.bounds is not None:
                low, high = (written(end, form, printed=printed) for end in cell.bounds)
                ends = f"{ends} ({low} to {high})".lstrip()
            shares = [f"{s.part:.0f}/{s.whole:.0f}" for s in (cell.share,) if s is not None]
            rest = " ".join(filter(None, [*shares, cell.remark]))
            return written(cell.value, form, printed=printed), ends, rest
    return written(cell, column.format, printed=printed), "", ""


def texts(table: Table, *, printed: bool = False) -> list[tuple[str, ...]]:
    """The rows as written: a number with its interval and counts behind it."""
    return [
        tuple(
            legible(" ".join(filter(None, parts_of(cell, column, printed=printed))))
            for cell, column in zip(row, table.columns, strict=True)
        )
        for row in table.rows
    ]


def _heads(table: Table) -> list[str]:
    """The titles of the columns, with the fidelity of their numbers."""
    low = f" ({LOW_FIDELITY})"
    return [legible(c.heading) + (low if c.fidelity == "low" else "") for c in table.columns]


# Text: for terminals and pipes.

# Longer texts than this may be folded; shorter ones are names and numbers.
LONGEST_WHOLE: Final = 24
# A folded column keeps at least this width.
NARROWEST: Final = 8
GAP: Final = "   "
INDENT: Final = "  "


def to_text(
    table: Table,
    width: int,
    *,
    style: Callable[[str, str], str] = lambda line, _: line,
    fold_notes: bool = False,
) -> str:
    """The table for a screen of `width` cells; what is too wide comes in parts.

    Each part has the first column. `style` dresses a line by its role: `head` or `note`.
    """
    heads, rows = _heads(table), texts(table)
    lines = [style(line, "head") for line in folded(legible(table.title), width)]
    lines += [""] if table.title else []
    if sum(map(_widest, zip(heads, *rows, strict=True))) + len(GAP) * len(heads) > width:
        # Intervals and counts stand below their numbers.
        rows = [
            tuple(
                legible(head) + (f"\n{f'{ends} {rest}'.strip()}" if ends else f" {rest}".rstrip())
                for head, ends, rest in map(parts_of, row, table.columns)
            )
            for row in table.rows
        ]
    for number, part in enumerate(_side_by_side([heads, *rows], width)):
        shown = [[row[k] for k in part] for row in [heads, *rows]]
        widths = _shared_out(shown, width - len(INDENT))
        lines += [""] if number else []
        lines += [style(line, "head") for line in _lines(shown[0], widths)]
        lines.append(INDENT + "─" * (sum(widths) + len(GAP) * (len(widths) - 1)))
        lines += [line for row in shown[1:] for line in _lines(row, widths)]
    lines += [""] if table.notes else []
    for note in map(legible, table.notes):
        pieces = folded(note, width - len(INDENT)) if fold_notes else [note]
        lines += [style(INDENT + piece, "note") for piece in pieces]
    return "\n".join([*lines, ""])


def _side_by_side(rows: Sequence[Sequence[str]], width: int) -> list[list[int]]:
    """The columns of each part of a table, the first column in every part."""
    needs = [len(GAP) + _widest(column) for column in zip(*rows, strict=True)]
    needs = [needs[0], *(min(need, 2 * LONGEST_WHOLE) for need in needs[1:])]
    first = min(needs[0], max(LONGEST_WHOLE, width - sum(needs[1:])))
    parts, used = [[0]], first
    for k, need in enumerate(needs[1:], 1):
        if used + need > width and len(parts[-1]) > 1:
            parts.append([0])
            used = first
        parts[-1].append(k)
        used += need
    return parts


def _shared_out(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The width of each column; the first one and long texts give way where they must."""
    widths = [_widest(column) for column in zip(*rows, strict=True)]
    may_fold = [k for k, needs in enumerate(widths) if k == 0 or needs > LONGEST_WHOLE]
    over = sum(widths) + len(GAP) * (len(widths) - 1) - width
    while over > 0 and may_fold:
        widest = max(may_fold, key=lambda k: widths[k])
        if widths[widest] <= NARROWEST:
            break
        widths[widest] -= 1
        over -= 1
    return widths


def _widest(cells: Sequence[str]) -> int:
    """The cells on the screen that the longest line of a column takes."""
    return max(cells_of(line) for cell in cells for line in cell.split("\n"))


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """A row's lines: the first column stands left, the others right."""
    cells = [list(folded(cell, width)) for cell, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, cells))):
        pieces = [cell[number] if number < len(cell) else "" for cell in cells]
        blanks = [" " * (width - cells_of(t)) for t, width in zip(pieces, widths, strict=True)]
        first, *others = zip(pieces, blanks, strict=True)
        yield (INDENT + GAP.join(["".join(first), *(b + t for t, b in others)])).rstrip()


# Markdown and LaTeX: for documents.

# Markdown has no underline of its own, and `ins` is what code hosts let through.
_MARKDOWN_MARKS: Final = {1: ("**", "**"), 2: ("<ins>", "</ins>"), 3: ("*", "*")}
_LATEX_MARKS: Final = {1: (r"\textbf{", "}"), 2: (r"\underline{", "}"), 3: (r"\textit{", "}")}
# Emphasis, code, links, and a backslash that would hide the sign behind it. The underscores within
# a name are none.
_MARKUP = re.compile(r"[*`]|(?<!\w)_|_(?!\w)|(?<=\])\(|\\(?=[!-/:-@\[-`{-~])")
_LATEX = str.maketrans(
    {
        "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
        "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
        "‰": r"\textperthousand{}", "<": r"\textless{}", ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
)  # fmt: skip


def to_markdown(table: Table) -> str:
    """The table in Markdown; signs of markup in a cell are escaped."""

    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"

    lines = [
        f"**{_markdown(legible(table.title))}**",
        "",
        row(list(map(_markdown, _heads(table)))),
        "|" + "|".join(["---", *["--:"] * (len(table.columns) - 1)]) + "|",
        *map(row, _marked(table, _MARKDOWN_MARKS, _markdown)),
    ]
    lines += [f"\n{legible(note)}" for note in table.notes]
    lines += [f"\n{MARKED}"] if table.marked else []
    return "\n".join(lines) + "\n"


def _markdown(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", text).replace("<", "&lt;")


def _marked(
    table: Table, marks: Mapping[int, tuple[str, str]], write: Callable[[str], str]
) -> Iterator[list[str]]:
    """The rows, written for a format, with the marks of the best three around their cells."""
    for row, row_places in zip(texts(table, printed=True), places(table), strict=True):
        ends = [marks.get(place, ("", "")) for place in row_places]
        yield [
            before + write(cell) + after for cell, (before, after) in zip(row, ends, strict=True)
        ]


def to_latex(table: Table) -> str:
    """The table as a LaTeX tabular with booktabs rules."""

    def row(cells: Sequence[str]) -> str:
        # After the line before, a bracket or a star would be read as an argument of its end.
        guard = "{}" if cells[0].startswith(("[", "*")) else ""
        return guard + " & ".join(cells) + r" \\"

    head = row([title.translate(_LATEX) for title in _heads(table)])
    rows = map(row, _marked(table, _LATEX_MARKS, lambda cell: cell.translate(_LATEX)))
    layout = "l" + "r" * (len(table.columns) - 1)
    lines = [rf"\begin{{tabular}}{{{layout}}}", r"\toprule", head, r"\midrule", *rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


# CSV: for programs.


def to_csv(table: Table) -> str:
    """The table as comma-separated values: one number a cell, at full precision, empty for none.

    Rates are fractions of 1. A column with intervals or counts becomes `NAME_value`,
    `NAME_ci_low`, `NAME_ci_high`, `NAME_lowest`, `NAME_highest`, `NAME_count` and `NAME_n`. A text
    that a spreadsheet would run as a formula begins with an apostrophe.
    """
    out = io.StringIO()
    lines = zip(*(_csv_block(table, k) for k in range(len(table.columns))), strict=True)
    csv.writer(out, lineterminator="\n").writerows(chain.from_iterable(line) for line in lines)
    return out.getvalue()


def _csv_block(table: Table, k: int) -> list[list[str]]:
    """One column of a table as lines of one or more cells, its heads first."""
    column, cells = table.columns[k], [row[k] for row in table.rows]
    name = unformulated(
        (column.name or column.title) + (f" ({LOW_FIDELITY})" if column.fidelity == "low" else "")
    )

    def value_of(cell: Cell) -> str:
        if isinstance(cell, Label):
            suffix = f" ({LOW_FIDELITY})" if cell.fidelity == "low" else ""
            return unformulated((cell.key or cell.text) + suffix)
        if isinstance(cell, str):
            return unformulated(cell)
        value = number_in(cell)
        return "" if value is None else repr(value)

    values: dict[str, list[str]] = {"value": list(map(value_of, cells))}
    ends = [cell.interval if isinstance(cell, Number) else None for cell in cells]
    shares = [
        cell if isinstance(cell, Share) else cell.share if isinstance(cell, Number) else None
        for cell in cells
    ]
    remarks = [cell.remark if isinstance(cell, Number | Share) else "" for cell in cells]
    if any(ends):
        for number, key in enumerate(("ci_low", "ci_high")):
            values[key] = ["" if pair is None else repr(float(pair[number])) for pair in ends]
    bounds = [cell.bounds if isinstance(cell, Number) else None for cell in cells]
    if any(bounds):
        for number, key in enumerate(("lowest", "highest")):
            values[key] = ["" if pair is None else repr(float(pair[number])) for pair in bounds]
    if any(shares):
        values["count"] = ["" if s is None else f"{s.part:g}" for s in shares]
        values["n"] = ["" if s is None else f"{s.whole:g}" for s in shares]
    if any(remarks):
        values["remark"] = list(map(unformulated, remarks))
    heads = [f"{name}_{key}" for key in values] if len(values) > 1 else [name]
    return [heads, *map(list, zip(*values.values(), strict=True))]


def unformulated(text: str) -> str:
    """A text that no spreadsheet runs as a formula, without control characters but line ends.

    >>> unformulated("=1+1")
    "'=1+1"
    """
    dangerous = text.startswith(("=", "+", "-", "@", "\t", "\r"))
    return ("'" if dangerous else "") + "\n".join(map(legible, text.split("\n")))


# HTML: the values that the templates of the report draw.

PLACES: Final = {1: "first", 2: "second", 3: "third"}


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A cell as a page shows it: the value, interval and counts in small type, and its class.

    `is_low` asks for a badge of low fidelity at the value.
    """

    value: str
    small: tuple[str, ...] = ()
    kind: str = ""
    is_low: bool = False


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table as a page shows it. `is_low` asks for one badge, where all numbers deserve it."""

    title: str
    heads: tuple[ShownCell, ...]
    rows: tuple[tuple[ShownCell, ...], ...]
    notes: tuple[str, ...]
    is_low: bool


def shown(table: Table) -> ShownTable:
    """The table for a template, which escapes all texts.

    Low fidelity is one badge where all numbers have it, else a badge at each name.
    """
    names = [row[0].fidelity for row in table.rows if isinstance(row[0], Label)]
    fidelities = [c.fidelity for c in table.columns[1:] if c.fidelity]
    is_low = table.fidelity == "low" or {"low"} in (set(names), set(fidelities))
    kinds = [
        "number" if any(_is_numeric(row[k]) for row in table.rows) else "words"
        for k in range(len(table.columns))
    ]
    heads = tuple(
        ShownCell(legible(column.heading), (), kind, column.fidelity == "low" and not is_low)
        for column, kind in zip(table.columns, kinds, strict=True)
    )
    rows = []
    for row, row_places in zip(table.rows, places(table), strict=True):
        line = zip(row, table.columns, kinds, row_places, strict=True)
        first, *rest = (_shown_cell(c, column, kind, place) for c, column, kind, place in line)
        is_badged = isinstance(row[0], Label) and row[0].fidelity == "low" and not is_low
        name = row[0].text if isinstance(row[0], Label) else " ".join([first.value, *first.small])
        rows.append((ShownCell(legible(name), is_low=is_badged), *rest))
    notes = tuple(map(legible, table.notes))
    return ShownTable(legible(table.title), heads, tuple(rows), notes, is_low)


def _is_numeric(cell: Cell) -> bool:
    return isinstance(cell, Number | Share | int | float)


def _shown_cell(cell: Cell, column: Column, kind: str, place: int) -> ShownCell:
    parts = [legible(part) for part in parts_of(cell, column)]
    if _is_numeric(cell):
        parts = [part.replace("-", "\u2212") for part in parts]
    head, *rest = parts
    value = "\u2013" if head in {DASH, "\u2212"} else head
    return ShownCell(value, tuple(filter(None, rest)), f"{kind} {PLACES.get(place, '')}".rstrip())


WRITERS: Final[Mapping[str, Callable[[Table], str]]] = {
    "md": to_markdown,
    "csv": to_csv,
    "tex": to_latex,
}
