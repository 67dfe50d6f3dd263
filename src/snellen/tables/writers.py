"""A table as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence

from snellen.tables.table import Table


def to_markdown(table: Table) -> str:
    """The table in Markdown; a bar in a cell is escaped."""
    lines = [
        f"**{_markdown_text(table.title)}**",
        "",
        _markdown_row([_markdown_text(column) for column in table.columns]),
        "|" + "|".join(["---", *["--:"] * (len(table.columns) - 1)]) + "|",
        *(_markdown_row(row) for row in _decorated(table, _MARKDOWN_MARKS, _markdown_text)),
    ]
    lines += [f"\n{note}" for note in table.notes]
    lines += [f"\n{MARKED}"] if table.marks else []
    return "\n".join(lines) + "\n"


# Markdown has no underline of its own, and `ins` is what code hosts let through.
_MARKDOWN_MARKS = {1: ("**", "**"), 2: ("<ins>", "</ins>"), 3: ("*", "*")}


_LATEX_MARKS = {1: (r"\textbf{", "}"), 2: (r"\underline{", "}"), 3: (r"\textit{", "}")}


MARKED = "bold, underlined, italic: first, second and third of a column"


def _decorated(
    table: Table, marks: Mapping[int, tuple[str, str]], write: Callable[[str], str]
) -> list[tuple[str, ...]]:
    """The rows, written for a format, with the marks of the best three around their cells."""
    places = table.marks or ((0,) * len(table.columns),) * len(table.rows)
    rows = []
    for row, row_places in zip(table.rows, places, strict=True):
        ends = [marks.get(place, ("", "")) for place in row_places]
        cells = zip(row, ends, strict=True)
        rows.append(tuple(before + write(cell) + after for cell, (before, after) in cells))
    return rows


# Emphasis, code, links, and a backslash that would hide the sign behind it. The underscores within
# a name are none.
_MARKUP = re.compile(r"[*`]|(?<!\w)_|_(?!\w)|(?<=\])\(|\\(?=[!-/:-@\[-`{-~])")


def _markdown_text(cell: str) -> str:
    """Foreign text that Markdown must not take for markup."""
    return _MARKUP.sub(r"\\\g<0>", cell).replace("<", "&lt;")


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(c.replace("|", r"\|").replace("\n", " ") for c in cells) + " |"


def to_csv(table: Table) -> str:
    """The table as comma-separated values."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([table.columns, *table.rows])
    return out.getvalue()


_LATEX = str.maketrans(
    {
        "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
        "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
        "‰": r"\textperthousand{}", "<": r"\textless{}", ">": r"\textgreater{}",
        "|": r"\textbar{}", "\n": " ", "\r": " ",
    }
)  # fmt: skip


def to_latex(table: Table) -> str:
    """The table as a LaTeX tabular with booktabs rules."""
    layout = "l" + "r" * (len(table.columns) - 1)
    head = _latex_row([column.translate(_LATEX) for column in table.columns])
    lines = [rf"\begin{{tabular}}{{{layout}}}", r"\toprule", head, r"\midrule"]
    rows = _decorated(table, _LATEX_MARKS, lambda cell: cell.translate(_LATEX))
    lines += [_latex_row(row) for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    # After the line before, a bracket or a star would be read as an argument of its end.
    guard = "{}" if cells[0].startswith(("[", "*")) else ""
    return guard + " & ".join(cells) + r" \\"


WRITERS: Mapping[str, Callable[[Table], str]] = {
    "md": to_markdown,
    "csv": to_csv,
    "tex": to_latex,
}
