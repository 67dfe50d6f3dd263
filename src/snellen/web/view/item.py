"""One item as a page shows it: pictures with regions, the reply with its evidence, every probe."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from snellen.engine.pacing import cost_usd
from snellen.errors import ImageError, RunFolderError
from snellen.records import (
    IMAGE_MARK,
    LETTERS,
    Image,
    Item,
    ModelRecord,
    Probe,
    ReplyRow,
    Verdict,
    abstention,
)
from snellen.settings import Endpoint, Settings
from snellen.web.view.index import LONGEST_NAME, OUTCOMES, Outcome, row_at, shortened
from snellen.web.view.library import Entry, Library
from snellen.web.view.lists import Address
from snellen.web.view.pictures import size_of

LONGEST_JUDGEMENT = 4000
"""Characters of a judge's words on a page; the rest is a link away."""
LONGEST_REPLY = 100_000
MOST_PHRASES = 400
NO_SETTINGS = Settings()
_QUOTED = re.compile(r'"([^"\n]{3,200})"|\u201c([^\u201d\n]{3,200})\u201d|`([^`\n]{3,200})`')
OUTCOME_WORDS: Mapping[str, str] = {
    "right": "right",
    "wrong": "wrong",
    "abstained": "could not tell",
    "unscored": "unscored",
    "skipped": "skipped",
}


@dataclass(frozen=True, slots=True)
class ShownOption:
    """An option of a question. `is_said`: the judge read this one in the reply."""

    letter: str
    text: str
    is_right: bool
    is_said: bool


@dataclass(frozen=True, slots=True)
class ShownProbe:
    """A probe with all that is known of it. `rest` counts the judge's characters left out."""

    n: int
    id: str
    question: str
    kind: str
    options: tuple[ShownOption, ...]
    answer: str
    outcome: Outcome
    verdict: str
    reason: str
    note: str
    judge: str
    rest: int
    votes: tuple[tuple[str, str], ...]
    labels: tuple[str, ...]
    region: str
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    seconds: float | None
    n_right: int | None
    n_scored: int | None


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a reply; `probes` are the numbers of the probes whose judge names these words."""

    text: str
    probes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownReply:
    """A model's reply in pieces, with its thoughts and what it cost."""

    pieces: tuple[Piece, ...]
    reasoning: str
    status: str
    finish_reason: str
    tokens: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    seconds: float
    rest: int = 0

    @property
    def n_marked(self) -> int:
        """How many pieces a judge names."""
        return sum(bool(piece.probes) for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class ShownRegion:
    """A region over a picture, in thousandths of its width and height."""

    id: str
    title: str
    x: float
    y: float
    width: float
    height: float
    href: str
    mask: str


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A picture on the light table; without `src`, `note` says why it is not shown."""

    src: str
    width: int
    height: int
    alt: str
    note: str
    regions: tuple[ShownRegion, ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """One reply to one item of one run."""

    entry: Entry
    item: Item
    repeat: int
    reply: ShownReply | None
    probes: tuple[ShownProbe, ...]
    counts: Mapping[str, int]

    @property
    def shared_judgement(self) -> str:
        """What the judge said, where one reply of the judge is about all probes."""
        said = {probe.judge for probe in self.probes}
        return said.pop() if len(self.probes) > 1 and len(said) == 1 else ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a page asks for: an item and its repeat. `hard`: the difficulty is attached.

    `settings` hold the prices of models by their names, which make costs of tokens.
    """

    item: str
    repeat: int = 0
    hard: bool = False
    settings: Settings = NO_SETTINGS

    def price_of(self, party: ModelRecord) -> Endpoint | None:
        """What a model or judge costs, where the settings know its name."""
        found = self.settings.models.get(party.name)
        return None if found is None else Endpoint(
            party.name, "", "", price_in_usd=found.price_in_usd,
            price_cached_in_usd=found.price_cached_in_usd, price_out_usd=found.price_out_usd,
        )  # fmt: skip


def unit_of(connection: sqlite3.Connection, entry: Entry, asked: Asked) -> Unit:
    """A reply with its probes, read from the files of the run by its index.

    Raises:
        RunFolderError: the run has no such item, or its files are not those of the index.
    """
    item = item_of(connection, entry, asked.item)
    item_id, repeat = item.id, asked.repeat
    try:
        verdicts: dict[str, Verdict] = {}
        difficulty = "LEFT JOIN hard.difficulty d USING (item, probe)" if asked.hard else ""
        shown = "d.n_right, d.n_scored" if asked.hard else "NULL AS n_right, NULL AS n_scored"
        rows = connection.execute(
            f"SELECT p.*, {shown} FROM probes p {difficulty} WHERE p.item = ? AND p.repeat = ? "
            "ORDER BY p.n",
            (item_id, repeat),
        ).fetchall()
        for row in rows:
            line = row_at(entry.folder / "verdicts.jsonl", (row["start"], row["end"]))
            if line is not None:
                verdicts[row["probe"]] = msgspec.json.decode(line, type=Verdict)
        held = connection.execute(
            "SELECT start, end FROM items WHERE item = ? AND repeat = ?", (item_id, repeat)
        ).fetchone()
        line = None if held is None else row_at(entry.folder / "replies.jsonl", tuple(held))
        reply = None if line is None else msgspec.json.decode(line, type=ReplyRow)
    except (msgspec.MsgspecError, OSError) as error:
        raise _changed(entry) from error
    judge = asked.price_of(entry.shown.spec.judge)
    model = asked.price_of(entry.shown.spec.model)
    by_id = {probe.id: probe for probe in item.probes}
    probes = tuple(
        _shown_probe(by_id[row["probe"]], verdicts.get(row["probe"]), row, judge)
        for row in rows
        if row["probe"] in by_id
    )
    counts: dict[str, int] = {name: sum(p.outcome == name for p in probes) for name in OUTCOMES}
    said = None if reply is None else _shown_reply(reply, probes, model)
    return Unit(entry, item, repeat, said, probes, counts)


def item_of(connection: sqlite3.Connection, entry: Entry, item_id: str) -> Item:
    """An item of a run.

    Raises: RunFolderError where there is none.
    """
    place = connection.execute(
        "SELECT start, end, item FROM stimuli WHERE item = ?", (item_id,)
    ).fetchone()
    if place is None:
        # A long id stands shortened in addresses.
        rows = connection.execute(
            "SELECT start, end, item FROM stimuli WHERE length(item) > ?", (LONGEST_NAME,)
        )
        place = next((row for row in rows if shortened(row["item"]) == item_id), None)
    if place is None:
        raise RunFolderError(f"this run has no item `{item_id[:200]}`")
    try:
        line = row_at(entry.folder / "items.jsonl", (place["start"], place["end"]))
        item = msgspec.json.decode(line or b"", type=Item)
    except (msgspec.MsgspecError, OSError) as error:
        raise _changed(entry) from error
    if item.id != place["item"]:
        raise _changed(entry)
    return item


def _changed(entry: Entry) -> RunFolderError:
    return RunFolderError(
        f"the files of {entry.folder} have just changed", hint="reload the page in a few seconds"
    )


def judge_words(connection: sqlite3.Connection, entry: Entry, n: int) -> str:
    """All that the judge said about a probe.

    Raises: RunFolderError where there is no such verdict.
    """
    row = connection.execute("SELECT start, end FROM probes WHERE n = ?", (n,)).fetchone()
    line = None if row is None else row_at(entry.folder / "verdicts.jsonl", tuple(row))
    if line is None:
        raise RunFolderError("this probe has no verdict")
    try:
        return msgspec.json.decode(line, type=Verdict).raw
    except msgspec.MsgspecError as error:
        raise _changed(entry) from error


def _shown_probe(
    probe: Probe, verdict: Verdict | None, row: sqlite3.Row, judge: Endpoint | None
) -> ShownProbe:
    found = verdict or Verdict(row["item"], probe.id, None, None, "unscored", "not_run")
    said = _word(found.verdict)
    texts = [*probe.options, "cannot be told"] if probe.options else []
    options = tuple(
        ShownOption(letter, text, letter == probe.answer, letter == said)
        for letter, text in zip(LETTERS, texts, strict=False)
        if letter != abstention(probe) or letter == said
    )
    labels = [value for key, value in probe.groups.items() if key not in {"region_id", "choices"}]
    votes = [(name, _word(vote)) for name, vote in (found.votes or {}).items()]
    return ShownProbe(
        n=row["n"],
        id=probe.id,
        question=_without_marks(probe.question, ""),
        kind=probe.kind,
        options=options,
        answer=probe.answer,
        outcome=row["outcome"],
        verdict=said,
        reason=found.reason or "",
        note=found.note,
        judge=found.raw[:LONGEST_JUDGEMENT],
        rest=max(0, len(found.raw) - LONGEST_JUDGEMENT),
        votes=tuple(votes),
        labels=tuple(dict.fromkeys(labels)),
        region=row["region"],
        prompt_tokens=found.usage.prompt,
        completion_tokens=found.usage.completion,
        cost=None if judge is None else cost_usd(found.usage, judge),
        seconds=row["seconds"] or None,
        n_right=row["n_right"],
        n_scored=row["n_scored"],
    )


def _word(verdict: str | bool | None) -> str:
    if verdict is None:
        return ""
    return str(verdict).lower() if isinstance(verdict, bool) else verdict


def _without_marks(text: str, mark: str) -> str:
    """A question in which marks of pictures are words, or nothing."""
    return IMAGE_MARK.sub(mark, text).strip()


def _shown_reply(
    reply: ReplyRow, probes: Sequence[ShownProbe], model: Endpoint | None
) -> ShownReply:
    text = (reply.reply or "")[:LONGEST_REPLY]
    return ShownReply(
        pieces=tuple(marked(text, probes)),
        reasoning=(reply.reasoning or "")[:LONGEST_REPLY],
        status=reply.status,
        finish_reason=reply.finish_reason or "",
        tokens=reply.tokens,
        prompt_tokens=reply.usage.prompt,
        completion_tokens=reply.usage.completion,
        cost=None if model is None else cost_usd(reply.usage, model),
        seconds=reply.latency_s,
        rest=max(0, len(reply.reply or "") - LONGEST_REPLY),
    )


def marked(text: str, probes: Sequence[ShownProbe]) -> Iterator[Piece]:
    """The text in pieces, with the words that judges quote from it.

    Only what a judge puts in quotation marks and what stands so in the text is evidence.
    """
    phrases: dict[str, list[int]] = {}
    for probe in probes:
        for found in _QUOTED.finditer(probe.judge):
            phrase = " ".join(next(filter(None, found.groups())).split()).strip(" .,;:")
            if len(phrase) > 2 and len(phrases) < MOST_PHRASES:
                phrases.setdefault(phrase, []).append(probe.n)
    spans: list[tuple[int, int, tuple[int, ...]]] = []
    for phrase, numbers in phrases.items():
        words = r"\s+".join(map(re.escape, phrase.split()))
        for hit in re.finditer(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE):
            spans.append((hit.start(), hit.end(), tuple(dict.fromkeys(numbers))))
    # Longer quotes first; of overlapping ones the first stays whole.
    end = 0
    for start, stop, named in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start < end:
            continue
        if start > end:
            yield Piece(text[end:start])
        yield Piece(text[start:stop], named)
        end = stop
    if end < len(text):
        yield Piece(text[end:])


def pictures_of(
    library: Library, entry: Entry, unit_item: Item, regions_to: Mapping[str, str]
) -> list[ShownPicture]:
    """The pictures of an item; regions lie over the first, and lead to their first probe.

    `regions_to` maps regions to the fragment of an address.
    """
    found = []
    for number, image in enumerate(unit_item.images):
        query = Address("/picture").but(run=entry.key, id=unit_item.id, number=number)
        regions = () if number else _shown_regions(library, entry, unit_item, regions_to)
        alt = f"Picture {number + 1} of {len(unit_item.images)} of item {unit_item.id[:80]}"
        note = _why_not(library, image)
        width = height = 0
        if not note:
            try:
                width, height = size_of(image)
            except (ImageError, OSError) as error:
                note = f"The picture cannot be shown: {error}"
        # The digest in the address lets a browser keep the picture.
        src = "" if note else f"{query}&d={image.digest[:16]}"
        found.append(ShownPicture(src, width, height, alt, note, () if note else regions))
    return found


def _why_not(library: Library, image: Image) -> str:
    """Why a picture may not be read; empty where it may."""
    if library.may_read(image.path):
        return ""
    folder = re.sub(r"/[^/]*$", "", image.path) or "/"
    return (
        "The picture lies outside the folders that were given. To show it, start the server with "
        f"--data {folder}"
    )


def _shown_regions(
    library: Library, entry: Entry, item: Item, regions_to: Mapping[str, str]
) -> tuple[ShownRegion, ...]:
    """The regions of an item, the largest first: a smaller one that lies in it stays in reach."""
    stored = library.regions_of(entry.shown, item.id)
    stored.sort(key=lambda r: -(r.bbox[2] - r.bbox[0]) * (r.bbox[3] - r.bbox[1]))
    return tuple(
        ShownRegion(
            id=region.region,
            title=region.title or region.region,
            x=region.bbox[1],
            y=region.bbox[0],
            width=max(0.0, region.bbox[3] - region.bbox[1]),
            height=max(0.0, region.bbox[2] - region.bbox[0]),
            href=regions_to.get(region.region, "#picture"),
            mask=""
            if bytes(region.mask) == b"null"
            else Address("/mask").but(run=entry.key, id=item.id, region=region.region),
        )
        for region in stored
    )
