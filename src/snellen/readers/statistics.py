"""Statistics of a benchmark: counts, lengths, pictures, labels, terms of use."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median

from snellen.pictures.headers import headers_of
from snellen.protocols import PROTOCOLS
from snellen.protocols.protocol import first_label
from snellen.records import Benchmark, Item


@dataclass(frozen=True, slots=True)
class Spread:
    """How a quantity is spread over `n` values."""

    n: int
    mean: float
    median: float
    min: int
    max: int


@dataclass(frozen=True, slots=True)
class PictureInfo:
    """The pictures of a benchmark.

    `uses` counts each picture as often as it is used. `smallest` and `largest` are (width, height)
    in pixels by area, as stored, None when no size is known. `unreadable` are no pictures;
    `size_unknown` are pictures in a format whose header is not read.
    """

    uses: int
    distinct: int
    per_item: Spread | None
    formats: Mapping[str, int]
    smallest: tuple[int, int] | None
    largest: tuple[int, int] | None
    size_unknown: int = 0
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class BenchmarkInfo:
    """What `snellen data info` prints.

    Lengths are in characters, without the marks of pictures: `prompt_chars` of the questions
    (direct and reading) or the statements (rubric), also by the label in `prompt_chars_by`;
    `answer_chars` of the right answers. `pictures_by` is by the label of the items, empty for
    reading, where an item has many. `reference_words` are the words of the golden captions.
    Both are None where a protocol has none. `groups` and `probe_groups` count items and probes by
    dimension and label. `terms` says in plain words what the licence means, where it matters.
    """

    name: str
    protocol: str
    version: str
    license: str
    terms: str
    source: str
    revision: str
    digest: str
    items: int
    probes: int
    clusters: int
    regions: int
    hints: int
    multi_image_items: int
    probes_per_item: Spread | None
    probes_per_item_by_kind: Mapping[str, Spread]
    probes_per_region: Spread | None
    regions_per_item: Spread | None
    prompt_chars: Spread | None
    prompt_chars_by: Mapping[str, Spread]
    answer_chars: Spread | None
    answer_chars_by: Mapping[str, Spread]
    reference_words: Spread | None
    groups: Mapping[str, Mapping[str, int]]
    probe_groups: Mapping[str, Mapping[str, int]]
    pictures: PictureInfo
    pictures_by: Mapping[str, PictureInfo]
    skipped: int


def info(benchmark: Benchmark) -> BenchmarkInfo:
    """The statistics of a benchmark; of each picture only the header is read."""
    items = benchmark.items
    protocol = PROTOCOLS[benchmark.protocol]
    lines = [protocol.lengths(item, probe) for item in items for probe in item.probes]
    answers = [line for line in lines if line.answer is not None]
    probes_of = Counter(p.groups.get("region_id", "") for item in items for p in item.probes)
    regions_of = Counter(region.image_id for region in benchmark.regions)
    probes = [probe for item in items for probe in item.probes]
    kinds = dict.fromkeys(probe.kind for probe in probes if probe.kind)
    by_item = [Counter(probe.kind for probe in item.probes) for item in items]
    kinds_of = (("kind", probe.kind) for probe in probes if probe.kind)
    # Every region has a name of its own, so that counting them tells nothing.
    labels_of = (pair for one in probes for pair in one.groups.items() if pair[0] != "region_id")
    by_label: dict[str, list[Item]] = defaultdict(list)
    for item in items if protocol.pictures_by_label else ():
        by_label[first_label(item)].append(item)
    return BenchmarkInfo(
        name=benchmark.name,
        protocol=benchmark.protocol,
        version=benchmark.version,
        license=benchmark.license,
        terms=terms_of(benchmark.license),
        source=benchmark.source,
        revision=benchmark.revision,
        digest=benchmark.digest,
        items=len(items),
        probes=len(lines),
        clusters=len({item.cluster for item in items}),
        regions=len(benchmark.regions),
        hints=sum(bool(item.hint.strip()) for item in items),
        multi_image_items=sum(len(item.images) > 1 for item in items),
        probes_per_item=spread(len(item.probes) for item in items),
        probes_per_item_by_kind=_spread_by(
            (kind, counts[kind]) for kind in kinds for counts in by_item
        ),
        probes_per_region=spread(probes_of[region.region_id] for region in benchmark.regions),
        regions_per_item=spread(regions_of[item.id] for item in items if benchmark.regions),
        prompt_chars=spread(line.prompt for line in lines),
        prompt_chars_by=_spread_by((line.label, line.prompt) for line in lines),
        answer_chars=spread(line.answer or 0 for line in answers),
        answer_chars_by=_spread_by((line.label, line.answer or 0) for line in answers),
        reference_words=spread(len(item.reference.split()) for item in items if item.reference),
        groups=_counted(
            (dimension, label)
            for item in items
            for dimension, labels in item.groups.items()
            for label in set(labels)
        ),
        probe_groups=_counted((*kinds_of, *labels_of)),
        pictures=picture_info(items),
        pictures_by={label: picture_info(some) for label, some in by_label.items()},
        skipped=len(benchmark.skipped),
    )


def terms_of(license_name: str) -> str:
    """What a licence forbids, in plain words; an empty text where nothing is known.

    >>> terms_of("cc-by-nc-4.0")
    'non-commercial use only'
    """
    marks = re.split(r"[^a-z]+", license_name.lower())
    if "nc" in marks or "noncommercial" in "".join(marks):
        return "non-commercial use only"
    return ""


def spread(values: Iterable[int]) -> Spread | None:
    """The spread of some values, None when there are none.

    >>> spread([1, 2, 6])
    Spread(n=3, mean=3.0, median=2, min=1, max=6)
    """
    many = sorted(values)
    if not many:
        return None
    return Spread(len(many), fmean(many), median(many), many[0], many[-1])


def _spread_by(pairs: Iterable[tuple[str, int]]) -> dict[str, Spread]:
    by: dict[str, list[int]] = defaultdict(list)
    for label, value in pairs:
        by[label].append(value)
    found = {label: spread(values) for label, values in by.items()}
    return {label: one for label, one in found.items() if one is not None}


def _counted(labels: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """How often each label occurs, by dimension."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for dimension, label in labels:
        counts[dimension][label] += 1
    return {dimension: dict(sorted(one.items())) for dimension, one in counts.items()}


def picture_info(items: Iterable[Item]) -> PictureInfo:
    """The statistics of the pictures of some items."""
    items = tuple(items)
    images = [image for item in items for image in item.images]
    formats: Counter[str] = Counter()
    sizes: list[tuple[int, int]] = []
    unreadable = 0
    for _, header in headers_of(images):
        if header is None:
            unreadable += 1
            continue
        formats[header.kind] += 1
        if header.width and header.height:
            sizes.append((header.width, header.height))
    sizes.sort(key=lambda size: (size[0] * size[1], size))
    return PictureInfo(
        uses=len(images),
        distinct=len({image.digest for image in images}),
        per_item=spread(len(item.images) for item in items),
        formats=dict(sorted(formats.items())),
        smallest=sizes[0] if sizes else None,
        largest=sizes[-1] if sizes else None,
        size_unknown=formats.total() - len(sizes),
        unreadable=unreadable,
    )
