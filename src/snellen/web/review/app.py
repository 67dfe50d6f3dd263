"""The pages of a review."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlencode

import msgspec

from snellen.builders.reviewing import Decision, Settled, Task, Word
from snellen.construction.review import CRITERIA
from snellen.construction.review_counts import count_review
from snellen.errors import DataError, UsageError
from snellen.records import JsonObject
from snellen.tables.review import review_tables
from snellen.tables.writers import shown
from snellen.web.frame import application, form_of, page, templates
from snellen.web.guard import Access
from snellen.web.review.desk import Desk
from snellen.web.review.fields import changed_fields, difference, fields_of, headline
from snellen.web.view import pictures

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LONGEST_NOTE = 2000


def review_app(folder: Path, *, access: Access) -> Starlette:
    """The application that reviews one build folder.

    Raises:
        RunFolderError, UsageError: the folder holds no review.
        MissingExtraError: the extra `web` is not installed.
    """
    desk = Desk(folder)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        desk.close()

    from starlette.routing import Route

    found = application(
        [
            Route("/", home),
            Route("/next", forward),
            Route("/task", task_page),
            Route("/task", save, methods=["POST"]),
            Route("/undo", undo, methods=["POST"]),
            Route("/stats", stats),
            Route("/picture", picture),
            Route("/mask", mask),
        ],
        access=access,
        lifespan=lifespan,
    )
    found.state.desk = desk
    templates().globals["difference"] = difference
    return found


def _page(request: Request, template: str, *, status: int = 200, **values: object) -> Response:
    return page(request, template, values, status=status)


def _desk(request: Request) -> Desk:
    return cast(Desk, request.app.state.desk)


def _person(request: Request, given: Mapping[str, str] | None = None) -> str:
    """Who asks, as the address or a form says.

    Raises:
        UsageError: nobody of that name takes part.
    """
    desk = _desk(request)
    name = (request.query_params if given is None else given).get("as", "")
    if name not in desk.people:
        raise UsageError(
            f"{name!r} takes no part in this review" if name else "nobody is named",
            hint="choose a name at the start",
        )
    return name


def address(path: str, **words: object) -> str:
    """An address of this application.

    >>> address("/task", id="a b", who="ann")
    '/task?id=a+b&as=ann'
    """
    query = urlencode({("as" if k == "who" else k): str(v) for k, v in words.items()})
    return f"{path}?{query}" if query else path


async def home(request: Request) -> Response:
    """Who reviews, how far everybody is, and what the review is about."""
    desk = _desk(request)
    counts = count_review(
        list(desk.settled().values()), desk.options.annotators, desk.options.adjudicator
    )
    cards = [
        (person, address("/next", who=person.name), person.name == desk.options.adjudicator)
        for person in counts.people
    ]
    return _page(
        request, "review_home.html", counts=counts, cards=cards, folder=desk.folder.name,
        kinds=sorted({task.kind for task in desk.tasks.values()}), n_pictures=len(desk.by_image),
    )  # fmt: skip


async def forward(request: Request) -> Response:
    """To the next open task of a person, or to the page that says that nothing is left."""
    from starlette.responses import RedirectResponse

    desk, person = _desk(request), _person(request)
    place = desk.place(person, request.query_params.get("after", ""))
    if place.task is None:
        return _page(request, "review_done.html", person=person, place=place,
                    is_adjudicator=person == desk.options.adjudicator)  # fmt: skip
    return RedirectResponse(address("/task", id=place.task.task.id, who=person), 303)


def _task(request: Request, name: str) -> Settled:
    from starlette.exceptions import HTTPException

    found = _desk(request).settled().get(name)
    if found is None:
        raise HTTPException(404, "No such task is up for review.")
    return found


async def task_page(request: Request) -> Response:
    """One task with its picture, its region, and the other tasks of its picture."""
    return _card(request, _task(request, request.query_params.get("id", "")), _person(request))


def _card(
    request: Request,
    settled: Settled,
    person: str,
    *,
    fault: str = "",
    given: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    desk, task = _desk(request), settled.task
    fields = fields_of(task.kind, task.shown, given or settled.after)
    mine = settled.of(person)
    others = [desk.settled()[one.id] for one in desk.by_image[task.image or task.id]]
    is_adjudicator = person == desk.options.adjudicator
    return _page(
        request, "review_task.html", status=status,
        task=task, settled=settled, person=person, place=desk.place(person, task.id),
        fields=fields, changed=[one for one in fields if one.is_changed], mine=mine,
        stages=_stages(request, task, person), criteria=CRITERIA[task.kind],
        others=others, others_at=[i for i, one in enumerate(others) if one.task.id == task.id],
        is_adjudicator=is_adjudicator, seen=desk.ledger.last(task.id), opened=f"{time.time():.2f}",
        fault=fault, note=(given or {}).get("note", ""), address=address,
        picked={name for name in CRITERIA[task.kind] if f"reason_{name}" in (given or {})},
        may_accept=not is_adjudicator or settled.first is not None, headline=headline,
    )  # fmt: skip


def _stages(request: Request, task: Task, person: str) -> list[JsonObject]:
    """The pictures of a task as the stage template takes them, with the regions of the first."""
    desk = _desk(request)
    found: list[JsonObject] = []
    for k, _ in enumerate(task.pictures):
        image = desk.image(task, k)
        assert image is not None
        try:
            width, height = pictures.size_of(image)
        except (DataError, OSError) as error:
            found.append({"src": "", "note": f"The picture cannot be shown: {error}"})
            continue
        regions = []
        for name in dict.fromkeys(
            one.region for one in desk.by_image[task.image or task.id] if k == 0 and one.region
        ):
            region = desk.regions.get(name)
            if region is None:
                continue
            top, left, bottom, right = region.bbox
            title = region.guess or name
            own = next(one for one in desk.by_image[task.image] if one.region == name)
            regions.append({
                "id": name, "title": title, "x": left, "y": top, "width": right - left,
                "height": bottom - top, "href": address("/task", id=own.id, who=person),
                "mask": address("/mask", region=name),
            })  # fmt: skip
        found.append({
            "src": address("/picture", id=task.id, n=k), "width": width, "height": height,
            "alt": f"Picture of {task.image or task.id}", "note": "", "regions": regions,
        })  # fmt: skip
    return found


async def save(request: Request) -> Response:
    """Saves a decision, then goes on; where somebody else was first, says so and shows theirs."""
    from starlette.responses import RedirectResponse

    form = await form_of(request)
    person = _person(request, form)
    settled = _task(request, form.get("id", ""))
    task = settled.task
    try:
        decision = _decision(task, settled, person, form)
        saved = _desk(request).save(decision, seen=int(form.get("seen") or 0))
    except (UsageError, DataError, ValueError) as error:
        said = getattr(error, "message", str(error))
        return _card(request, settled, person, fault=said, given=form, status=422)
    if saved.unseen and person != _desk(request).options.adjudicator:
        now = _desk(request).settled()[task.id]
        return _page(
            request, "review_collision.html", status=409, task=task, person=person,
            mine=decision, theirs=saved.unseen[-1], settled=now, address=address,
            their_fields=fields_of(task.kind, task.shown, saved.unseen[-1].after or {}),
            my_fields=fields_of(task.kind, task.shown, decision.after or {}),
        )  # fmt: skip
    return RedirectResponse(address("/next", who=person, after=task.id), 303)


def _decision(task: Task, settled: Settled, person: str, form: Mapping[str, str]) -> Decision:
    """The decision of a form.

    Raises:
        UsageError: the form has no decision.
        DataError: a field cannot have its value.
    """
    word = form.get("decision", "")
    after: JsonObject | None = None
    if word == "restore":  # the adjudicator keeps the text as it was
        before = {k: task.shown[k] for k in settled.after}
        word, after = ("edit", before) if before else ("accept", None)
    elif word == "edit":
        after = changed_fields(task.kind, task.shown, form)
        if not after:
            raise UsageError("nothing was changed", hint="change a field, or accept")
    elif word not in ("accept", "delete"):
        raise UsageError("the form has no decision", hint="accept, edit or delete")
    seconds = max(0.0, time.time() - float(form.get("opened") or time.time()))
    return Decision(
        task.id, person, cast(Word, word),
        reasons=tuple(name for name in CRITERIA[task.kind] if f"reason_{name}" in form),
        after=after, note=form.get("note", "")[:LONGEST_NOTE].strip(), seconds=round(seconds, 1),
    )  # fmt: skip


async def undo(request: Request) -> Response:
    """Withdraws the last decision of a person, or that on one task, and shows the task again."""
    from starlette.responses import RedirectResponse

    form = await form_of(request)
    desk, person = _desk(request), _person(request, form)
    wanted = form.get("id", "")
    last = desk.settled()[wanted].of(person) if wanted in desk.tasks else desk.last_of(person)
    if last is None:
        return RedirectResponse(address("/next", who=person), 303)
    desk.save(Decision(last.id, person, "undo"), seen=desk.ledger.size())
    return RedirectResponse(address("/task", id=last.id, who=person), 303)


async def stats(request: Request) -> Response:
    """Rates, agreement and hours."""
    desk = _desk(request)
    counts = count_review(
        list(desk.settled().values()), desk.options.annotators, desk.options.adjudicator
    )
    tables = [shown(table) for table in review_tables(counts)]
    return _page(request, "review_stats.html", tables=tables, folder=desk.folder.name)


def picture(request: Request) -> Response:
    """A picture of a task, if the file is the one that was put up: no address names a file."""
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    number = request.query_params.get("n", "0")
    task = _task(request, request.query_params.get("id", "")).task
    image = _desk(request).image(task, int(number)) if number.isdecimal() else None
    if image is None:
        raise HTTPException(404)
    try:
        mime, data = pictures.picture_bytes(image)
    except (DataError, OSError) as error:
        raise HTTPException(404, f"The picture cannot be shown: {error}") from error
    headers = {"cache-control": "private, max-age=86400", "content-security-policy": "sandbox"}
    return Response(data, headers=headers, media_type=mime)


def mask(request: Request) -> Response:
    """The mask of a region, to lie over its picture."""
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    region = _desk(request).regions.get(request.query_params.get("region", ""))
    data = (
        None if region is None else pictures.mask_png(msgspec.Raw(msgspec.json.encode(region.mask)))
    )
    if data is None:
        raise HTTPException(404)
    headers = {"cache-control": "private, max-age=86400"}
    return Response(data, headers=headers, media_type="image/png")
