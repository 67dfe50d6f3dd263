"""The failures of runs for a reader to look at: which ones, and the data of their cards."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import msgspec

from snellen.errors import ImageError
from snellen.records import IMAGE_MARK, Image, Item, Probe, Region, Verdict, abstains
from snellen.runs.folder import Run

THUMBNAIL_SIDE = 360
THUMBNAIL_QUALITY = 74
PICTURES_A_CARD = 4
TEXT_BUDGET = 2_200_000
"""How many bytes all texts of a gallery may have; longer captions and judgements are cut."""
LONGEST = (6000, 3000, 1500, 800, 400)
KINDS = ("wrong", "unscored", "abstained")


@dataclass(frozen=True, slots=True)
class Failure:
    """A probe that a run did not get right. `kind` is `wrong`, `unscored` or `abstained`."""

    run: int
    item: Item
    probe: Probe
    verdict: Verdict
    kind: str


@dataclass(frozen=True, slots=True)
class Gallery:
    """The data of a gallery, ready for JSON: what cards share stands once, by number or id.

    `totals` counts all failures by run and kind, shown or not.
    """

    runs: Sequence[Mapping[str, object]]
    totals: Sequence[Mapping[str, int]]
    probes: Sequence[Mapping[str, object]]
    captions: Sequence[str]
    pictures: Mapping[str, Mapping[str, object]]
    failures: Sequence[Mapping[str, object]]


def failures_of(run: Run, number: int = 0) -> list[Failure]:
    """All probes that a run did not get right; skipped ones are none."""
    probes = {(i.id, p.id): (i, p) for i in run.items for p in i.probes}
    found = []
    for verdict in run.verdicts.values():
        pair = probes.get((verdict.id, verdict.probe_id))
        if pair is None or verdict.status == "skipped" or verdict.correct is True:
            continue
        kind = "abstained" if abstains(verdict, pair[1]) else "wrong"
        kind = "unscored" if verdict.status == "unscored" else kind
        found.append(Failure(number, *pair, verdict, kind))
    return found


def choose(failures: Sequence[Failure], most: int) -> list[Failure]:
    """At most `most` failures: wrong and unscored ones first, spread over pictures.

    Unscored ones take at most half of the places while there are wrong ones to show.
    """
    by_kind: dict[str, list[Failure]] = {}
    for kind in KINDS:
        # In turns: the first of each item, then the second of each, and so on.
        turns: Counter[str] = Counter()
        ranked = []
        for failure in (f for f in failures if f.kind == kind):
            turns[failure.item.id] += 1
            ranked.append((turns[failure.item.id], failure))
        by_kind[kind] = [failure for _, failure in sorted(ranked, key=lambda entry: entry[0])]
    wrong, unscored, abstained = (by_kind[kind] for kind in KINDS)
    n_unscored = min(len(unscored), max(most // 2, most - len(wrong)))
    first = [*wrong[: most - n_unscored], *unscored[:n_unscored]]
    return [*first, *abstained[: most - len(first)]]


def gallery_of(
    runs: Sequence[Run],
    *,
    most: int = 40,
    regions: Mapping[str, Region] | None = None,
    with_pictures: bool = True,
) -> Gallery:
    """The gallery of runs, at most `most` failures of each; texts are cut until they fit."""
    found = [failures_of(run, k) for k, run in enumerate(runs)]
    turns = zip_longest(*(choose(failures, most) for failures in found))
    chosen = [failure for turn in turns for failure in turn if failure is not None]
    totals = [{kind: sum(f.kind == kind for f in failures) for kind in KINDS} for failures in found]
    pictures = thumbnails(chosen) if with_pictures else {}
    for longest in LONGEST:
        builder = CardBuilder(runs, regions or {}, pictures, longest)
        cards = [builder.card(failure) for failure in chosen]
        probes, captions = list(builder.probes.values()), list(builder.captions.values())
        if len(msgspec.json.encode((probes, captions, cards))) <= TEXT_BUDGET:
            break
    heads = [
        {
            "model": run.name,
            "protocol": run.spec.protocol,
            "benchmark": run.spec.benchmark,
            "low": run.spec.judge.fidelity == "low",
        }
        for run in runs
    ]
    return Gallery(heads, totals, probes, captions, pictures, cards)


@dataclass(slots=True)
class CardBuilder:
    """Builds the data of cards; probes and captions that several cards share are stored once."""

    runs: Sequence[Run]
    regions: Mapping[str, Region]
    pictures: Mapping[str, Mapping[str, object]]
    longest: int
    probes: dict[tuple[str, ...], Mapping[str, object]] = field(default_factory=dict)
    captions: dict[tuple[int, str, int], str] = field(default_factory=dict)

    def card(self, f: Failure) -> dict[str, object]:
        """The data of one card; its texts are cut to the room that the gallery has."""
        run, verdict = self.runs[f.run], f.verdict
        reply = run.replies.get((f.item.id, verdict.repeat))
        asked = (run.spec.protocol, run.spec.data_digest, f.item.id, f.probe.id)
        written = (f.run, f.item.id, verdict.repeat)
        self.probes.setdefault(asked, self._probe(f))
        self.captions.setdefault(
            written, _cut("" if reply is None else reply.reply or "", self.longest)
        )
        return {
            "run": f.run,
            "kind": f.kind,
            "probe": list(self.probes).index(asked),
            "verdict": verdict.verdict,
            "reason": verdict.reason or "",
            "judge": _cut(verdict.raw, self.longest // 2),
            "caption": list(self.captions).index(written),
            "status": "" if reply is None or reply.status == "ok" else reply.status,
            "repeat": verdict.repeat,
        }

    def _probe(self, f: Failure) -> dict[str, object]:
        region = self.regions.get(f.probe.groups.get("region_id", ""))
        is_here = region is not None and region.image_id == f.item.id
        category, domains = self.runs[f.run].protocol.labels(f.item, f.probe)
        # Marks of pictures become words, or go where there is one picture.
        mark = "" if len(f.item.images) <= 1 else r"[picture \1] "
        return {
            "item": f.item.id,
            "id": f.probe.id,
            "question": _cut(IMAGE_MARK.sub(mark, f.probe.question).strip(), 2000),
            "options": [_cut(option, 600) for option in f.probe.options],
            "answer": _cut(f.probe.answer, 1000),
            "hint": _cut(f.item.hint, 600),
            "category": category,
            "domains": list(domains),
            "pictured": bool(f.item.images),
            "pictures": [i.digest for i in f.item.images if i.digest in self.pictures],
            "box": list(region.bbox) if region is not None and is_here else None,
        }


def _cut(text: str, most: int) -> str:
    """The text, cut with a remark that says how much is missing."""
    if len(text) <= most:
        return text
    return f"{text[:most].rstrip()} \u2026 [{len(text) - most:,} more characters in the run folder]"


def thumbnails(failures: Sequence[Failure]) -> dict[str, dict[str, str | int]]:
    """A small JPEG of each picture by its digest; of one that cannot be read, why not."""
    from snellen.pictures.prepare import open_upright

    images: dict[str, Image] = {}
    for f in failures:
        for image in f.item.images[:PICTURES_A_CARD]:
            images.setdefault(image.digest, image)
    found: dict[str, dict[str, str | int]] = {}
    for digest, image in images.items():
        try:
            pixels = open_upright(image)
        except ImageError as error:
            found[digest] = {"error": str(error)}
            continue
        pixels.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
        buffer = io.BytesIO()
        pixels.save(buffer, "JPEG", quality=THUMBNAIL_QUALITY, optimize=True)
        source = data_uri("image/jpeg", buffer.getvalue())
        found[digest] = {"src": source, "width": pixels.width, "height": pixels.height}
    return found


def data_uri(kind: str, data: bytes) -> str:
    """A file as an address that needs no network."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
