"""What judges are checked on: items with given replies, whose right verdicts are known.

Two kinds of material. The bundled captioners' replies with the labels of a perfect judge; and
captions written from facts (`factual`). Both become ordinary items, so that a judge is measured on
exactly the requests that a run sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from snellen.flows import Given, given_rows
from snellen.judges.facts import FactualCaption, Told, write_captions
from snellen.judges.labelled import Trial, load_trials
from snellen.keys import digest, digest_of, digest_of_set, seed_for
from snellen.protocols import PROTOCOLS
from snellen.records import (
    IMAGE_MARK,
    Benchmark,
    GradeTask,
    Item,
    Probe,
    ProtocolName,
    ReadTask,
    Region,
    RubricTask,
)
from snellen.runs.judge_errors import UNCERTAIN


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one probe: the verdict of a perfect judge, and what the reply did.

    `treatment` is `stated`, `absent`, `changed` or `negated`; `false` where only that the reply
    is not so is known. `source` is `dev` or `frozen` (the halves of the labelled material) or
    `facts`.
    """

    truth: str | bool
    treatment: str
    source: str


@dataclass(frozen=True, slots=True)
class Material:
    """A benchmark with its replies, and what is known of each (item, probe)."""

    benchmark: Benchmark
    replies: Given
    known: Mapping[tuple[str, str], Known]


@dataclass(frozen=True, slots=True)
class _Piece:
    """An item on its way: its reply, and what is known of its probes, in their order."""

    item: Item
    reply: str
    known: tuple[Known, ...]


def labelled(folder: str, protocol: ProtocolName) -> Iterator[_Piece]:
    """The bundled captioners' replies under one protocol."""
    trials = [trial for trial in load_trials(folder) if trial.protocol == protocol]
    together: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        match trial.task:
            case ReadTask():
                together.setdefault((trial.name.partition("/")[0], trial.picture), []).append(trial)
            case RubricTask():
                yield _assessed(trial)
            case GradeTask():
                yield _graded(trial)
    yield from (_read(name, group) for (name, _), group in together.items())


def _read(captioner: str, trials: Sequence[Trial]) -> _Piece:
    first = trials[0]
    probes, known = [], []
    for trial in trials:
        assert isinstance(trial.task, ReadTask)
        truth = trial.labels[0]
        own = "stated" if truth == trial.answer else "changed"
        known.append(Known(truth, "absent" if truth == UNCERTAIN else own, trial.half))
        name = trial.name.partition("/")[2]
        probes.append(Probe(name, trial.task.question, trial.answer, trial.task.options))
    assert isinstance(first.task, ReadTask)
    item = _item(f"{captioner}/{first.picture}", probes, picture=first.picture)
    return _Piece(item, first.task.caption, tuple(known))


def _assessed(trial: Trial) -> _Piece:
    assert isinstance(trial.task, RubricTask)
    groups = (("must_right", trial.task.must_right), ("easy_wrong", trial.task.easy_wrong))
    probes = [
        Probe(f"{kind}/{k}", text, "true", kind=kind)
        for kind, texts in groups
        for k, text in enumerate(texts)
    ]
    known = [Known(t, "stated" if t else "false", trial.half) for t in trial.labels]
    item = _item(trial.name, probes, picture=trial.picture)
    return _Piece(item, trial.task.caption, tuple(known))


def _graded(trial: Trial) -> _Piece:
    assert isinstance(trial.task, GradeTask)
    truth = trial.labels[0]
    probe = Probe("0", trial.task.question, trial.task.reference)
    item = replace(
        _item(trial.name, [probe], picture=trial.picture), text=IMAGE_MARK.sub("", probe.question)
    )
    known = Known(truth, "stated" if truth else "false", trial.half)
    return _Piece(item, trial.task.answer, (known,))


def factual(captions: Iterable[FactualCaption], protocol: ProtocolName) -> Iterator[_Piece]:
    """Captions written from facts under one protocol; direct takes one short answer a fact."""
    for caption in captions:
        if not PROTOCOLS[protocol].describes:
            yield from (_short_answer(caption, told) for told in caption.told)
            continue
        make = _question if UNCERTAIN in PROTOCOLS[protocol].classes else _statement
        probes = [make(k, told) for k, told in enumerate(caption.told)]
        # Must-Right statements stand before Easy-Wrong ones; questions have no kind.
        probes.sort(key=lambda probe: probe.kind, reverse=True)
        by_id = {told.fact.id: told for told in caption.told}
        known = tuple(_known(by_id[probe.id], protocol) for probe in probes)
        item = _item(f"facts/{caption.image_id}", probes, picture=f"facts/{caption.image_id}")
        yield _Piece(item, caption.text, known)


def _known(told: Told, protocol: ProtocolName) -> Known:
    truth = told.truth if UNCERTAIN in PROTOCOLS[protocol].classes else told.is_stated
    return Known(truth, told.treatment, "facts")


def _question(_: int, told: Told) -> Probe:
    return Probe(told.fact.id, told.fact.question, told.answer, told.options)


def _statement(place: int, told: Told) -> Probe:
    kind = "must_right" if place % 2 == 0 else "easy_wrong"
    return Probe(told.fact.id, told.fact.say(told.fact.value), "true", kind=kind)


def _short_answer(caption: FactualCaption, told: Told) -> _Piece:
    fact = told.fact
    item = _item(
        f"facts/{fact.id}",
        [Probe("0", fact.question, fact.value)],
        picture=f"facts/{caption.image_id}",
    )
    known = (_known(told, "direct"),)
    return _Piece(replace(item, text=fact.question), told.reply, known)


def _item(name: str, probes: Sequence[Probe], *, picture: str) -> Item:
    return Item(name, (), tuple(probes), cluster=picture)


def material(
    folder: str,
    protocol: ProtocolName,
    *,
    regions: Sequence[Region],
    seed: int = 0,
    limit: int | None = None,
) -> Material:
    """The material of one protocol: labelled replies from `folder`, captions from `regions`.

    The first `limit` items of an order drawn with the seed are kept, so that a few hold something
    of everything.

    Raises:
        DataError: a file of the labelled material is missing or broken.
    """
    captions = write_captions(regions, seed=seed)
    pieces = [*labelled(folder, protocol), *factual(captions, protocol)]
    pieces.sort(key=lambda piece: seed_for(seed, piece.item.id, "order"))
    pieces = pieces[:limit]
    items = tuple(replace(p.item, digest=_digest(p)) for p in pieces)
    known = {
        (piece.item.id, probe.id): entry
        for piece in pieces
        for probe, entry in zip(piece.item.probes, piece.known, strict=True)
    }
    benchmark = Benchmark(
        "judge-check",
        protocol,
        items,
        version="1",
        source="labelled replies and captions written from facts",
        digest=digest_of_set(item.digest for item in items),
    )
    return Material(benchmark, given_rows({p.item.id: p.reply for p in pieces}), known)


def _digest(piece: _Piece) -> str:
    probes = [(p.id, p.question, p.answer, p.options, p.kind) for p in piece.item.probes]
    truths = [known.truth for known in piece.known]
    return digest_of([piece.item.id, digest(piece.reply), probes, truths])
