"""The blind audit of a judge: a person gives the verdict before the judge's is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from snellen.errors import DataError, UsageError
from snellen.judges.audit import (
    AUDIT_FILE,
    AuditRow,
    Truth,
    agreement_of,
    read_audit,
    sample_audit,
    write_audit,
)
from snellen.records import JsonObject
from snellen.runs.folder import load_run
from snellen.tables.judges import agreement_table
from snellen.tables.writers import shown
from snellen.web.frame import application, form_of, page
from snellen.web.guard import Access
from snellen.web.view import pictures

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response


class AuditDesk:
    """The sample of a run, and what a person has said of it; both lie in the run folder.

    A sample that is there goes on; else `n` verdicts are drawn. Every truth is written at once.

    Raises:
        RunFolderError, DataError: the folder is no run, or its audit belongs to another.
        UsageError: the run has no scored verdict.
    """

    def __init__(self, folder: Path, n: int, *, seed: int = 0) -> None:
        self.run = load_run(folder)
        self.file = folder / AUDIT_FILE
        if self.file.exists():
            self.rows = read_audit(self.file, self.run)
        else:
            self.rows = sample_audit(self.run, n, seed=seed)
            write_audit(self.rows, self.file)
        self._items = {item.id: item for item in self.run.items}

    @property
    def done(self) -> int:
        """How many verdicts have a truth."""
        return sum(row.truth != "" for row in self.rows)

    def next(self, after: int = -1) -> int | None:
        """The number of the next row without a truth, behind a row or from the start."""
        order = [*range(after + 1, len(self.rows)), *range(after + 1)]
        return next((k for k in order if self.rows[k].truth == ""), None)

    def say(self, number: int, truth: Truth) -> None:
        """Writes what a person says; "" takes it back.

        Raises:
            RunFolderError: the file cannot be written.
        """
        self.rows[number] = replace(self.rows[number], truth=truth)
        write_audit(self.rows, self.file)

    def choices(self, row: AuditRow) -> Sequence[tuple[str, str, Truth]]:
        """What a person can say: a key, words, and the truth."""
        if row.options:
            return [(option[0].lower(), option, option[0]) for option in row.options]
        if row.reference:
            return [("t", "Right", True), ("f", "Wrong", False)]
        return [("t", "True of the reply", True), ("f", "Not true of the reply", False)]


def audit_app(desk: AuditDesk, *, access: Access) -> Starlette:
    """The application that audits one run.

    Raises:
        MissingExtraError: the extra `web` is not installed.
    """
    from starlette.routing import Route

    routes = [
        Route("/", home),
        Route("/row", row_page),
        Route("/row", say, methods=["POST"]),
        Route("/picture", picture),
    ]
    found = application(routes, access=access)
    found.state.desk = desk
    return found


def _desk(request: Request) -> AuditDesk:
    return cast(AuditDesk, request.app.state.desk)


async def home(request: Request) -> Response:
    """How far the audit is, and what it says so far."""
    desk = _desk(request)
    agreement = agreement_of(desk.run, desk.rows)
    values = {
        "desk": desk,
        "name": desk.run.name,
        "benchmark": desk.run.spec.benchmark,
        "judge": desk.run.spec.judge.name,
        "next": desk.next(),
        "tables": [shown(agreement_table(desk.run, agreement))] if desk.done else [],
    }
    return page(request, "review_audit.html", values)


def _number(request: Request, given: str) -> int:
    from starlette.exceptions import HTTPException

    if not given.isascii() or not given.isdecimal() or int(given[:9]) >= len(_desk(request).rows):
        raise HTTPException(404, "There is no such verdict in the audit.")
    return int(given)


async def row_page(request: Request) -> Response:
    """One verdict: question, reference and reply; the judge's word only after the person's."""
    desk = _desk(request)
    number = _number(request, request.query_params.get("n", ""))
    row = desk.rows[number]
    item = desk._items[row.id]
    stages: list[JsonObject] = []
    for k, image in enumerate(item.images):
        try:
            width, height = pictures.size_of(image)
        except (DataError, OSError) as error:
            stages.append({"src": "", "note": f"The picture cannot be shown: {error}"})
            continue
        stages.append({
            "src": f"/picture?n={number}&k={k}", "width": width, "height": height, "note": "",
            "alt": f"Picture {k + 1} of {row.id}", "regions": [],
        })  # fmt: skip
    verdict = next(words for _, words, truth in desk.choices(row) if truth == row.verdict)
    values = {
        "desk": desk, "row": row, "number": number, "stages": stages,
        "choices": desk.choices(row), "is_said": row.truth != "", "verdict": verdict,
        "agrees": row.truth == row.verdict, "next": desk.next(number),
    }  # fmt: skip
    return page(request, "review_verdict.html", values)


async def say(request: Request) -> Response:
    """Takes what a person says of one verdict, and shows the judge's beside it."""
    from starlette.responses import RedirectResponse

    form = await form_of(request)
    desk, number = _desk(request), _number(request, form.get("n", ""))
    said = form.get("truth", "")
    truths = {str(truth): truth for _, _, truth in desk.choices(desk.rows[number])}
    if said and said not in truths:
        raise UsageError(f"{said!r} is no verdict", hint=f"one of {', '.join(truths)}")
    desk.say(number, truths[said] if said else "")
    return RedirectResponse(f"/row?n={number}", 303)


def picture(request: Request) -> Response:
    """A picture of an audited item, if the file is the one that was measured."""
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    desk = _desk(request)
    number = _number(request, request.query_params.get("n", ""))
    images = desk._items[desk.rows[number].id].images
    k = request.query_params.get("k", "0")
    if not k.isascii() or not k.isdecimal() or int(k[:6]) >= len(images):
        raise HTTPException(404)
    try:
        mime, data = pictures.picture_bytes(images[int(k)])
    except (DataError, OSError) as error:
        raise HTTPException(404, f"The picture cannot be shown: {error}") from error
    headers = {"cache-control": "private, max-age=86400", "content-security-policy": "sandbox"}
    return Response(data, headers=headers, media_type=mime)
