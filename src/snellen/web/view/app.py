"""The pages of `snellen view`."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from snellen.comparisons.comparable import NamedSpec, unlike
from snellen.errors import DataError, RunFolderError, UsageError
from snellen.keys import digest
from snellen.protocols import metric_named
from snellen.report.provenance import facts_of
from snellen.runs.summary import summary_of
from snellen.tables.runs import breakdown, counts_table, dimension_title, readings
from snellen.tables.table import Number, measured, metric_column, with_range
from snellen.tables.writers import interval_text, shown, written
from snellen.web.frame import application, page, templates
from snellen.web.guard import Access
from snellen.web.view import lists, pictures
from snellen.web.view.boards import shown_board
from snellen.web.view.figures import figures_in
from snellen.web.view.flips import flips_page, standing
from snellen.web.view.index import OUTCOMES, shortened
from snellen.web.view.item import (
    OUTCOME_WORDS,
    Asked,
    item_of,
    judge_words,
    pictures_of,
    unit_of,
)
from snellen.web.view.library import Entry, Library
from snellen.web.view.lists import Address, Wanted

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

MOST_SIDES = 4
BIG_NUMBERS = 6
SVG_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'"


def view_app(library: Library, *, access: Access) -> Starlette:
    """The application that shows the runs of a library."""
    from starlette.routing import Route

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        library.prepare()
        yield
        library.worker.close()

    routes = [
        Route("/", home),
        Route("/runs/{key}", probes),
        Route("/runs/{key}/items", items),
        Route("/runs/{key}/numbers", numbers),
        Route("/runs/{key}/item", item),
        Route("/runs/{key}/words", words),
        Route("/side", side),
        Route("/flips", flips),
        Route("/figures/{anchor}", figures),
        Route("/figures/{anchor}/{name}", figure),
        Route("/picture", picture),
        Route("/mask", mask),
    ]
    app = application(routes, access=access, lifespan=lifespan)
    app.state.library = library
    found = templates()
    found.globals |= {"OUTCOME_WORDS": OUTCOME_WORDS, "OUTCOMES": OUTCOMES}
    found.filters |= {
        "dimension": dimension_title,
        "amount": amount,
        "spent": spent,
        "dollars": dollars,
    }
    return app


def amount(value: float | None) -> str:
    """A count with separators, a dash where there is none."""
    return "\u2013" if value is None else f"{value:,.0f}"


def dollars(cost: float) -> str:
    """A cost as people read it; a small one keeps two digits that say something.

    >>> dollars(0.0), dollars(0.000123), dollars(1.5)
    ('$0', '$0.00012', '$1.50')
    """
    if not cost:
        return "$0"
    return f"${cost:.2f}" if cost >= 0.1 else f"${Decimal(f'{cost:.2g}'):f}"


def spent(seconds: float | None) -> str:
    """Seconds as people read them.

    >>> spent(0.231), spent(75.0), spent(None)
    ('0.2 s', '1 min 15 s', '–')
    """
    if seconds is None:
        return "\u2013"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def _library(request: Request) -> Library:
    found: Library = request.app.state.library
    return found


def _address(request: Request) -> Address:
    return Address(request.url.path, tuple(request.query_params.multi_items()))


def home(request: Request) -> Response:
    """The leaderboards of all runs."""
    library, address = _library(request), _address(request)
    boards = [shown_board(library, board, address) for board in library.boards()]
    entries = list(library.entries.values())
    return page(
        request,
        "view_home.html",
        {
            "here": address,
            "boards": boards,
            "entries": entries,
            "waiting": [e for e in entries if e.run is None and not e.trouble],
            "broken": [e for e in entries if e.run is None and e.trouble],
            "is_moving": any(e.is_live or e.building is not None for e in entries),
            "paths": [str(path) for path in library.paths],
        },
    )


@dataclass(frozen=True, slots=True)
class Bar:
    """A label of a breakdown: its number in per cent for a bar, and whether it is chosen."""

    label: str
    n: int
    percent: float | None
    text: str
    interval: str
    is_on: bool
    href: str


def _head(library: Library, entry: Entry, address: Address, tab: str) -> dict[str, object]:
    """What the pages of a run share."""
    run = entry.shown
    board = library.board_of(entry)
    name = next(r.name for r in board.section.runs if r.folder == entry.folder)
    summary = summary_of(run)
    big = []
    values = with_range(summary.metrics)
    chosen = [m for m in values if (found := metric_named(m)) is not None and found.is_main]
    for metric in (chosen or list(values))[:BIG_NUMBERS]:
        column, cell = metric_column(metric), measured(values[metric])
        big.append((column.heading, *_number(cell, metric)))
    missing = summary.counts.unscored_by_reason.get("not_run", 0)
    others = [
        (board.key_of(other), other.name)
        for other in board.section.runs
        if other.folder != entry.folder
    ]
    return {
        "here": address,
        "entry": entry,
        "run": run,
        "name": name,
        "title": board.section.title,
        "tab": tab,
        "summary": summary,
        "big": big,
        "n_missing": missing,
        "others": others,
        "is_low": run.spec.judge.fidelity == "low",
    }


def _number(cell: Number, metric: str) -> tuple[str, str]:
    form = metric_column(metric).format
    return written(cell.value, form), interval_text(cell.interval, form)


def _asked(library: Library, entry: Entry, address: Address) -> tuple[Wanted, bool]:
    """The filters of an address, and whether the difficulty over several runs is known."""
    several = len(library.board_of(entry).section.runs) > 1
    hard = several and library.difficulty_of(entry) is not None
    return Wanted.of(address, entry.shown.protocol.dimensions, hard=hard), hard


def probes(request: Request) -> Response:
    """A run: its breakdowns, which filter, and the list of its probes."""
    library, address = _library(request), _address(request)
    entry = library.entry(request.path_params["key"])
    head = _head(library, entry, address, "probes")
    wanted, hard = _asked(library, entry, address)
    with library.opened(entry, hard=hard) as connection:
        listed = lists.probes_page(connection, wanted, address, hard=hard)
        bars = _bars(entry, address, lists.facets(connection))
        reasons = lists.reasons(connection)
    return page(
        request,
        "view_probes.html",
        {
            **head,
            "listed": listed,
            "bars": bars,
            "reasons": reasons,
            "wanted": wanted,
            "hard": hard,
            "columns": _chosen(address, PROBE_COLUMNS),
        },
    )


PROBE_COLUMNS: Mapping[str, tuple[str, bool]] = {
    "item": ("Item", True),
    "category": ("Category", True),
    "said": ("Answer", True),
    "difficulty": ("Right in", True),
    "region": ("Region", False),
    "reason": ("Reason", False),
    "tokens": ("Judge tokens", False),
    "seconds": ("Time", False),
}
ITEM_COLUMNS: Mapping[str, tuple[str, bool]] = {
    "labels": ("Domains", True),
    "right": ("Right", True),
    "wrong": ("Wrong", True),
    "abstained": ("Could not tell", True),
    "unscored": ("Unscored", True),
    "tokens": ("Tokens", True),
    "seconds": ("Time", False),
    "status": ("Reply", False),
}


def _chosen(
    address: Address, columns: Mapping[str, tuple[str, bool]]
) -> dict[str, tuple[str, bool]]:
    """The titles of columns and whether the address, or else the custom, shows them."""
    asked = set(address.all("cols")) & set(columns)
    return {
        name: (title, name in asked if asked else usual) for name, (title, usual) in columns.items()
    }


def _bars(
    entry: Entry, address: Address, facets: Iterator[tuple[str, list[tuple[str, int]]]]
) -> list[tuple[str, str, list[Bar]]]:
    """Each breakdown: its dimension, the metric of its bars, and its labels."""
    run, found = entry.shown, []
    summary = summary_of(run)
    for dimension, labels in facets:
        metric = run.protocol.partial.get(dimension, (run.protocol.headline,))[0]
        column = metric_column(metric)
        by = {shortened(label): found for label, found in summary.by.get(dimension, {}).items()}
        bars = []
        for label, n in labels:
            values = with_range(by.get(label, {}))
            cell = measured(values.get(metric))
            text, interval = _number(cell, metric)
            is_rate = column.format.unit == "%" and cell.value is not None
            bars.append(
                Bar(
                    label, n, 100 * (cell.value or 0.0) if is_rate else None, text, interval,
                    label in address.all(dimension), address.toggled(dimension, label),
                )
            )  # fmt: skip
        found.append((dimension, column.heading, bars))
    return found


def items(request: Request) -> Response:
    """The items of a run: those that have a probe which the address asks for."""
    library, address = _library(request), _address(request)
    entry = library.entry(request.path_params["key"])
    head = _head(library, entry, address, "items")
    wanted, hard = _asked(library, entry, address)
    with library.opened(entry, hard=hard) as connection:
        listed = lists.items_page(connection, wanted, address)
        bars = _bars(entry, address, lists.facets(connection))
    return page(
        request,
        "view_items.html",
        {
            **head,
            "listed": listed,
            "bars": bars,
            "wanted": wanted,
            "hard": hard,
            "reasons": [],
            "columns": _chosen(address, ITEM_COLUMNS),
        },
    )


def numbers(request: Request) -> Response:
    """Every number of a run with its readings, and how it was measured."""
    library, address = _library(request), _address(request)
    entry = library.entry(request.path_params["key"])
    head = _head(library, entry, address, "numbers")
    run = entry.shown
    tables = [readings(run), *(breakdown(run, name) for name in summary_of(run).by)]
    return page(
        request,
        "view_numbers.html",
        {
            **head,
            "tables": [shown(table) for table in (*tables, counts_table([run]))],
            "facts": facts_of([run]).shared,
            "prompts": [(purpose, prompt) for purpose, prompt in sorted(run.spec.prompts.items())],
        },
    )


def _repeat(address: Address) -> int:
    found = address.first("repeat", "0")
    return int(found) if found.isascii() and found.isdecimal() and len(found) < 6 else 0


def item(request: Request) -> Response:
    """One item of a run: pictures, regions, reply and every probe."""
    library, address = _library(request), _address(request)
    entry = library.entry(request.path_params["key"])
    head = _head(library, entry, address, "item")
    wanted, hard = _asked(library, entry, address)
    item_id, repeat = address.first("id"), _repeat(address)
    with library.opened(entry, hard=hard) as connection:
        unit = unit_of(connection, entry, Asked(item_id, repeat, hard, library.settings))
        at = address.first("probe")
        item_id = unit.item.id
        current = next((p.n for p in unit.probes if shortened(p.id) == at), None)
        ends = [p.n for p in unit.probes] or [0]
        before = lists.neighbour(
            connection, wanted, ends[0] if current is None else current, forward=False
        )
        after = lists.neighbour(
            connection, wanted, ends[0] - 1 if current is None else current, forward=True
        )
        around = connection.execute(
            "SELECT item, repeat FROM items WHERE n IN (SELECT n - 1 FROM items WHERE item = ?1 "
            "AND repeat = ?2 UNION SELECT n + 1 FROM items WHERE item = ?1 AND repeat = ?2) "
            "ORDER BY n",
            (item_id, repeat),
        ).fetchall()
        place = connection.execute(
            "SELECT n, (SELECT count(*) FROM items) FROM items WHERE item = ? AND repeat = ?",
            (item_id, repeat),
        ).fetchone()
    regions_to = {p.region: f"#p{p.n}" for p in reversed(unit.probes) if p.region}

    def link(row: sqlite3.Row | None) -> str | None:
        return None if row is None else address.but(
            id=str(row["item"]), repeat=str(row["repeat"]) if row["repeat"] else None,
            probe=str(row["probe"]) if "probe" in dict(row) else None,
        )  # fmt: skip

    n = place[0] if place else 0
    return page(
        request,
        "view_item.html",
        {
            **head,
            "unit": unit,
            "current": current,
            "pictures": pictures_of(library, entry, unit.item, regions_to),
            "before": link(before),
            "after": link(after),
            "previous": link(around[0]) if n > 0 else None,
            "following": link(around[-1]) if place and n + 1 < place[1] else None,
            "place": place,
            "has_regions": bool(regions_to),
        },
    )


def words(request: Request) -> Response:
    """All that a judge said about a probe, as plain text."""
    from starlette.responses import PlainTextResponse

    library, address = _library(request), _address(request)
    entry = library.entry(request.path_params["key"])
    asked = address.first("n")
    if not asked.isascii() or not asked.isdecimal():
        raise UsageError("the address names no probe")
    with library.opened(entry) as connection:
        text = judge_words(connection, entry, int(asked[:12]))
    return PlainTextResponse(text.encode("utf-8", "replace"))


def _sides(library: Library, address: Address, most: int) -> list[Entry]:
    """The runs that an address puts side by side.

    Raises: UsageError where they are too few, too many, or do not belong together.
    """
    entries = [library.entry(key) for key in dict.fromkeys(address.all("run"))]
    if not 2 <= len(entries) <= most:
        raise UsageError(
            f"{len(entries)} runs are chosen, and 2 to {most} can stand side by side",
            hint="choose them on the start page",
        )
    first = entries[0].shown.spec
    for other in entries[1:]:
        spec = other.shown.spec
        if (spec.protocol, spec.benchmark) != (first.protocol, first.benchmark):
            raise UsageError(
                f"{other.key} is a run of another benchmark than {entries[0].key}",
                hint="choose runs of one leaderboard",
            )
    return entries


def _names(library: Library, entries: Sequence[Entry]) -> list[str]:
    """The names that tell the runs apart."""
    from snellen.runs.naming import named_apart

    return [run.name for run in named_apart([entry.shown for entry in entries])]


def side(request: Request) -> Response:
    """Two to four runs on one item: who saw what."""
    library, address = _library(request), _address(request)
    entries = _sides(library, address, MOST_SIDES)
    item_id, repeat = address.first("id"), _repeat(address)
    with library.opened(*entries) as connection:
        item_id, before, after = standing(connection, len(entries), item_id, repeat)
    units = []
    for entry in entries:
        with library.opened(entry) as connection:
            units.append(unit_of(connection, entry, Asked(item_id, repeat)))
    by_id = [{probe.id: probe for probe in unit.probes} for unit in units]
    rows = []
    for probe in units[0].probes:
        cells = [found.get(probe.id) for found in by_id]
        rows.append((probe, cells, len({c.outcome if c else "" for c in cells}) > 1))
    return page(
        request,
        "view_side.html",
        {
            "here": address,
            "entries": entries,
            "names": _names(library, entries),
            "units": units,
            "rows": rows,
            "item": units[0].item,
            "repeat": repeat,
            "pictures": pictures_of(library, entries[0], units[0].item, {}),
            "before": before and address.but(id=before),
            "after": after and address.but(id=after),
            "unlike": _unlike(library, entries),
            "n_differ": sum(row[2] for row in rows),
        },
    )


def _unlike(library: Library, entries: Sequence[Entry]) -> list[str]:
    names = _names(library, entries)
    return unlike([NamedSpec(n, e.shown.spec) for n, e in zip(names, entries, strict=True)])


def flips(request: Request) -> Response:
    """Two runs: which probes changed sides."""
    library, address = _library(request), _address(request)
    entries = _sides(library, address, 2)
    with library.opened(*entries) as connection:
        found = flips_page(connection, address)
    return page(
        request,
        "view_flips.html",
        {
            "here": address,
            "entries": entries,
            "names": _names(library, entries),
            "found": found,
            "unlike": _unlike(library, entries),
        },
    )


def _drawn(library: Library, anchor: str) -> tuple[Path | None, str, str]:
    """The folder of a section's figures once they are drawn, why not, and the section's title."""
    board = next((b for b in library.boards() if b.section.anchor == anchor), None)
    if board is None:
        raise RunFolderError("there is no such section")
    entries = [library.entries[board.key_of(run)] for run in board.section.runs]
    title = board.section.title
    if any(entry.is_live for entry in entries):
        return None, "Figures are drawn once the runs have ended.", title
    state = digest("\n".join(library.stamp(entry) for entry in entries))[:24]
    out = library.scratch / f"figures-{state}"
    task = [title, str(out), msgspec.json.encode(library.sources).decode()]
    trouble = library.once(out, "figures", [*task, *(str(e.folder) for e in entries)])
    return (out, "", title) if out.exists() else (None, trouble, title)


def figures(request: Request) -> Response:
    """The figures of a section, a part of the start page."""
    anchor = request.path_params["anchor"]
    folder, trouble, title = _drawn(_library(request), anchor)
    found = [] if folder is None else figures_in(folder)
    return page(
        request,
        "view_figures.html",
        {
            "anchor": anchor,
            "title": title,
            "trouble": trouble,
            "is_drawn": folder is not None,
            "drawn": [f for f in found if not f.is_thin],
            "thin": [f for f in found if f.is_thin],
        },
    )


def figure(request: Request) -> Response:
    """One figure, as SVG."""
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    folder, _, _ = _drawn(_library(request), request.path_params["anchor"])
    name = request.path_params["name"]
    if folder is None or name not in {found.name for found in figures_in(folder)}:
        raise HTTPException(404)
    headers = {"content-security-policy": SVG_POLICY, "cache-control": "private, max-age=600"}
    return Response((folder / name).read_bytes(), headers=headers, media_type="image/svg+xml")


def picture(request: Request) -> Response:
    """A picture of an item, by its number: no address names a file."""
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    library, address = _library(request), _address(request)
    entry = library.entry(address.first("run"))
    with library.opened(entry) as connection:
        found = item_of(connection, entry, address.first("id"))
    number = address.first("number", "0")
    if not number.isascii() or not number.isdecimal() or int(number[:6]) >= len(found.images):
        raise HTTPException(404)
    image = found.images[int(number)]
    if not library.may_read(image.path):
        raise HTTPException(403, "The picture lies outside the folders that were given.")
    try:
        mime, data = pictures.picture_bytes(image)
    except (DataError, OSError) as error:
        raise HTTPException(404, f"The picture cannot be shown: {error}") from error
    headers = {"cache-control": "private, max-age=86400", "content-security-policy": "sandbox"}
    return Response(data, headers=headers, media_type=mime)


def mask(request: Request) -> Response:
    """The mask of a region, to lie over a picture."""
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    library, address = _library(request), _address(request)
    entry = library.entry(address.first("run"))
    regions = library.regions_of(entry.shown, address.first("id"))
    region = next((r for r in regions if r.region == address.first("region")), None)
    data = None if region is None else pictures.mask_png(region.mask)
    if data is None:
        raise HTTPException(404)
    headers = {"cache-control": "private, max-age=86400"}
    return Response(data, headers=headers, media_type="image/png")
