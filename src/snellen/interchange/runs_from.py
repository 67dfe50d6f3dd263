"""Result files of other tools as runs of our own: shown, compared and judged again like them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from snellen import tokens
from snellen.engine.journal import now
from snellen.errors import DataError, ImageError, UsageError
from snellen.flows import given_rows
from snellen.interchange.beside import bytes_of
from snellen.interchange.results import RESULTS, find_results
from snellen.interchange.samples import ForeignSample
from snellen.keys import digest, digest_of, digest_of_set
from snellen.pictures.headers import kind_of
from snellen.pictures.prepare import image_from_path
from snellen.readers.perception_bench import clustered
from snellen.records import LETTERS, Image, Item, ModelRecord, Probe, ReplyRow, Verdict
from snellen.runs.folder import Run, write_json
from snellen.runs.spec import RunSpec, Session
from snellen.runs.summary import summarise
from snellen.version import __version__

# A row that was scored neither 0 nor 1 has a score of its own, and no verdict here.
PARTIAL = "partial_score"
NOT_SCORED = "not_scored"


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """A run that was written, its model and benchmark, and what is not in it."""

    folder: Path
    model: str
    benchmark: str
    n: int
    accuracy: float | None
    notices: tuple[str, ...] = ()


def import_runs(
    name: str, path: str | Path, out: str | Path, *, allowed: Sequence[str | Path] = ()
) -> list[ImportedRun]:
    """Writes a run for each model and benchmark of a tool's result files below `path`.

    One run goes to the folder `out`, several to folders of their own below it. Rows that cannot be
    read stop the import; nothing is written then. A picture is copied into the run where the file
    holds it, or where it lies beside the file or below a folder of `allowed`.

    Raises:
        UsageError: no such format, or the folder holds something already.
        DataError: a row cannot be read, with file and row; or there is no such result file.
    """
    if name not in RESULTS:
        raise UsageError(f"no import format {name}", hint=f"there are: {', '.join(RESULTS)}")
    found: dict[tuple[str, str], dict[str, ForeignSample]] = {}
    for file, known in find_results(path):
        if known.name != name:
            continue
        for sample in known.read(file):
            if isinstance(sample, DataError):
                raise sample
            own = found.setdefault((sample.model, sample.benchmark), {})
            key = str(sample.index)
            if own.setdefault(key, sample) is not sample:
                raise DataError(
                    f"the sample {key!r} of {sample.benchmark} stands twice for {sample.model}",
                    file=file, row=sample.row, hint="give the results of one evaluation",
                )  # fmt: skip
    if not found:
        raise DataError(f"holds no result file of {RESULTS[name].title}", file=path)
    base = Path(out)
    if base.exists() and any(base.iterdir()):
        raise UsageError(f"{base} is not empty", hint="give another --out")
    folders = [Path(one) for one in (*allowed, path) if Path(one).is_dir()]
    done = []
    for (model, benchmark), samples in found.items():
        folder = base if len(found) == 1 else base / _safe(f"{benchmark}-{model}")
        done.append(_write(name, folder, list(samples.values()), folders))
    return done


def _safe(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name).strip("._") or "run"


def _write(
    name: str, folder: Path, samples: Sequence[ForeignSample], allowed: Sequence[Path]
) -> ImportedRun:
    """One run folder, as an evaluation would have left it."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = 0
    items: list[Item] = []
    for sample in samples:
        images, lost = _pictures(sample, folder, allowed)
        missing += lost
        items.append(_item(sample, images))
    kept = clustered(items)
    replies = {(one.id, 0): one for one in map(_reply, samples)}
    counts = tokens.count_tokens(row.reply or "" for row in replies.values())
    replies = {
        key: replace(row, tokens=n) for (key, row), n in zip(replies.items(), counts, strict=True)
    }
    verdicts = {(str(s.index), 0, str(s.index)): _verdict(s) for s in samples}
    first = samples[0]
    title = RESULTS[name].title
    spec = RunSpec(
        benchmark=first.benchmark,
        protocol="direct",
        data_digest=digest_of_set(item.digest for item in kept),
        items={item.id: item.digest for item in kept},
        model=ModelRecord(first.model, model=first.model),
        judge=ModelRecord(title, model=title),
        prompts={},
        options={"imported_from": name},
        source=title,
        sessions=(Session(now(), __version__, ""),),
    )
    run = Run(folder, spec, kept, replies, verdicts, None)
    summary = summarise(run, status="complete")
    write_json(folder / "run.json", spec)
    for file, rows in (
        ("items.jsonl", kept), ("replies.jsonl", replies.values()),
        ("verdicts.jsonl", verdicts.values()), ("calls.jsonl", ()),
    ):  # fmt: skip
        _write_rows(folder / file, rows)
    write_json(folder / "summary.json", summary)
    unscored = summary.counts.unscored_by_reason
    notices = [f"{n} samples are unscored here: {reason}" for reason, n in unscored.items()]
    if missing:
        notices.append(f"{missing} pictures were not found and are left out")
    value = summary.metrics["accuracy"].value
    return ImportedRun(folder, first.model, first.benchmark, len(samples), value, tuple(notices))


def _write_rows(path: Path, rows: Iterable[object]) -> None:
    encode = msgspec.json.Encoder().encode
    path.write_bytes(b"".join(encode(row) + b"\n" for row in rows))


def _item(sample: ForeignSample, images: tuple[Image, ...]) -> Item:
    """A sample as an item of direct questions; options stand below the question."""
    text = sample.question
    if sample.options and not all(option in text for option in sample.options):
        lines = (
            f"{letter}. {option}" for letter, option in zip(LETTERS, sample.options, strict=False)
        )
        text = "\n".join((text, *lines))
    index = str(sample.index)
    return Item(
        index,
        images,
        (Probe(index, text, sample.reference),),
        text=text,
        digest=digest_of([text, sample.reference, [image.digest for image in images]]),
        original_id=sample.index,
        extra={"source_bmk": sample.benchmark, "source_idx": sample.index},
    )


def _pictures(
    sample: ForeignSample, folder: Path, allowed: Sequence[Path]
) -> tuple[tuple[Image, ...], int]:
    """The pictures of a sample, copied into the run, and how many were not found."""
    found: list[Image] = []
    lost = 0
    for picture in sample.pictures:
        try:
            data = bytes_of(picture, sample, allowed)
            kind = kind_of(data)
        except (ImageError, DataError, OSError):
            data, kind = b"", ""
        if not kind:
            lost += 1
            continue
        path = folder / "pictures" / f"{digest(data)[:16]}.{kind}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        found.append(image_from_path(path))
    return tuple(found), lost


def _reply(sample: ForeignSample) -> ReplyRow:
    index = str(sample.index)
    if sample.reply is None:
        return ReplyRow(index, None, status="failed", failure="no_answer")
    return given_rows({index: sample.reply})[index, 0]


def _verdict(sample: ForeignSample) -> Verdict:
    """What the tool's own scorer said; a score between 0 and 1 is no verdict."""
    index = str(sample.index)
    if sample.correct is not None:
        return Verdict(index, index, sample.correct, sample.correct, "scored", None)
    reason = NOT_SCORED if sample.score is None else PARTIAL
    return Verdict(index, index, None, None, "unscored", reason)
