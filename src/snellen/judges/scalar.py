"""A one-to-ten judge of captions, which rubrics with a gate are measured against."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snellen.endpoints.bind import Binding
from snellen.engine.job import Batch, Display, Job, Work, drive
from snellen.engine.scheduler import DriveOptions
from snellen.errors import DataError
from snellen.flows import Flow, ask_until, failed_reason
from snellen.records import Item, Message, Reply, ReplyRow, Request
from snellen.replies import UnreadableError
from snellen.replies.fences import fence
from snellen.replies.text import clean
from snellen.runs.folder import Run
from snellen.templates import bundled

if TYPE_CHECKING:
    from snellen.engine.cache import ResponseCache

LOWEST, HIGHEST = 1, 10
RATING_SCHEMA = {
    "type": "object",
    "properties": {"rating": {"type": "integer", "minimum": LOWEST, "maximum": HIGHEST}},
    "required": ["rating"],
    "additionalProperties": False,
}
_NUMBER = re.compile(r"(?<![\d.])\d+(?:\.\d+)?(?![\d.]*\d)")
_OUT_OF_TEN = re.compile(r"(?:/|\bout of\b)\s*10\b", re.I)


@dataclass(frozen=True, slots=True)
class Ratings:
    """Ratings of one run's replies by item and repeat; None where the judge's could not be read."""

    values: Mapping[tuple[str, int], int | None]

    @property
    def n_unscored(self) -> int:
        """How many replies have no rating."""
        return sum(v is None for v in self.values.values())

    @property
    def mean(self) -> float | None:
        """The mean of the ratings that there are, 1 to 10."""
        known = [v for v in self.values.values() if v is not None]
        return sum(known) / len(known) if known else None


def parse_rating(reply: Reply) -> int:
    """The one whole number from 1 to 10 that a reply holds.

    Raises:
        UnreadableError: there is none, more than one, or one beyond the scale.

    >>> parse_rating(Reply("Rating: **8**/10"))
    8
    """
    numbers = set(_NUMBER.findall(_OUT_OF_TEN.sub("", clean(reply.text))))
    if len(numbers) != 1:
        raise UnreadableError("conflict" if numbers else "no_verdict")
    number = float(numbers.pop())
    if number != int(number) or not LOWEST <= number <= HIGHEST:
        raise UnreadableError("out_of_range")
    return int(number)


@dataclass(frozen=True, slots=True)
class Rating:
    """The rating of one reply, 1 to 10; None where there is none."""

    value: int | None


def rate_reply(item: Item, row: ReplyRow) -> Flow[Rating]:
    """One reply's rating against the golden caption; a blank reply gets the lowest unasked."""
    if failed_reason(row) is not None:
        return Rating(None)
    if row.status != "ok":
        return Rating(LOWEST)
    text = bundled("scalar_judge").fill(
        reference=fence(item.reference), caption=fence(row.reply or "")
    )
    request = Request("judge", (Message("user", (text,)),), "scalar", lead=item.id)
    asked = yield from ask_until(
        request, parse_rating, remind=bundled("remind_rating").text, schema=RATING_SCHEMA
    )
    return Rating(asked.value)


async def rate_run(
    run: Run,
    judge: Binding,
    *,
    cache: ResponseCache | None = None,
    options: DriveOptions | None = None,
    progress: Display | None = None,
) -> Ratings:
    """Rates all replies of a run; calls are kept below the run's folder, so that it resumes.

    Raises:
        DataError: the benchmark has no golden captions.
        SnellenError: the judge failed for good, or Ctrl-C ended the rating.
    """
    if not any(item.reference for item in run.items):
        raise DataError(
            f"{run.spec.benchmark} has no golden captions to rate against",
            hint="leave out --scalar",
        )
    found: dict[tuple[str, int], int | None] = {}

    def keep(item: str, repeat: int, rating: Rating) -> None:
        found[item, repeat] = rating.value

    name = re.sub(r"[^\w.-]", "_", judge.endpoint.name)
    job = Job(
        {"judge": judge},
        [Batch(_work(run), n_items=len(run.replies))],
        folder=run.folder / f"scalar-{name}",
        sinks={Rating: keep},
        cache=cache,
        options=options or DriveOptions(),
        progress=progress,
    )
    (await drive(job)).check()
    return Ratings(found)


def _work(run: Run) -> Iterator[Work]:
    for item in run.items:
        for repeat in range(run.spec.repeats):
            row = run.replies.get((item.id, repeat))
            if row is not None and item.reference:
                yield item.id, repeat, rate_reply(item, row)
