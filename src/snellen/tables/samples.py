"""The samples of a run: as a file for programs, and as blocks of text for people."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Final

import msgspec

from snellen.comparisons.results import Comparison
from snellen.errors import DataError, MissingExtraError, UsageError
from snellen.records import LETTERS
from snellen.runs.folder import load_run
from snellen.runs.samples import Sample
from snellen.tables.screen import folded, legible
from snellen.tables.writers import unformulated

COLUMNS: Final = tuple(field.name for field in fields(Sample))
ENDINGS: Final = (".csv", ".jsonl", ".parquet")
MOST_CHARACTERS: Final = 2_000


def write_samples(samples: Iterable[Sample], out: str | Path) -> int:
    """Write one row a sample and give their number; the ending of the file says the format.

    CSV has a text that a spreadsheet would run as a formula behind an apostrophe, and control
    characters spelled out. Options are joined by ` | ` in CSV. Verdicts are texts in Parquet.

    Raises:
        UsageError: the ending is none of `.csv`, `.jsonl` and `.parquet`.
        MissingExtraError: Parquet without pyarrow.
        DataError: the file cannot be written.
    """
    file, rows = Path(out), list(samples)
    if file.suffix not in ENDINGS:
        raise UsageError(
            f"samples cannot be written as `{file.suffix or file.name}`",
            hint=f"end the name of the file in {', '.join(ENDINGS)}",
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".parquet":
            _write_parquet(rows, file)
        elif file.suffix == ".jsonl":
            file.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        else:
            with file.open("w", encoding="utf-8", newline="") as opened:
                writer = csv.writer(opened, lineterminator="\n")
                writer.writerow(COLUMNS)
                writer.writerows(
                    [_csv_cell(getattr(row, name)) for name in COLUMNS] for row in rows
                )
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", file=file) from error
    return len(rows)


def _csv_cell(value: object) -> object:
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return _csv_cell(" | ".join(value))
        case str():
            return unformulated(value)
    return value


def _write_parquet(rows: list[Sample], file: Path) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", extra="parquet") from error
    texts, whole = pa.string(), pa.int64()
    types = {"images": pa.list_(texts), "options": pa.list_(texts), "correct": pa.bool_()}
    types |= {name: whole for name in COLUMNS if name.endswith("tokens") or name == "repeat"}
    types["latency_s"] = pa.float64()
    columns = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
    columns["verdict"] = [str(v).lower() if isinstance(v, bool) else v for v in columns["verdict"]]
    schema = pa.schema([(name, types.get(name, texts)) for name in COLUMNS])
    parquet.write_table(pa.table(columns, schema=schema), file)


def chosen(samples: Iterable[Sample], which: str) -> Iterator[Sample]:
    """The samples that are `failed` (scored, not right), `unscored`, or `all`."""
    for sample in samples:
        is_failed = which == "failed" and sample.correct is False
        if is_failed or which in {"all", sample.status}:
            yield sample


def sample_block(sample: Sample, width: int) -> Iterator[str]:
    """A sample as lines: question, reference, reply, verdict and the judge's words."""
    yield f"{legible(sample.id)} / {legible(sample.probe_id)}{_repeat(sample)}"
    yield from _asked(sample, width)
    yield from _answered(sample, width)
    yield ""


def _repeat(sample: Sample) -> str:
    return f" (repeat {sample.repeat})" if sample.repeat else ""


def _asked(sample: Sample, width: int) -> Iterator[str]:
    yield from _field("question", sample.question, width)
    for letter, option in zip(LETTERS, sample.options, strict=False):
        yield from _field("", f"{letter}. {option}", width)
    yield from _field("reference", sample.reference, width)


def _answered(sample: Sample, width: int) -> Iterator[str]:
    result = {True: "right", False: "not right", None: sample.status}[sample.correct]
    reason = f" ({sample.reason})" if sample.reason else ""
    verdict = "-" if sample.verdict is None else str(sample.verdict)
    yield from _field("reply", "-" if sample.reply is None else sample.reply, width)
    yield from _field("verdict", f"{verdict}: {result}{reason}", width)
    yield from _field("judge", sample.judge_reply or "-", width)


def _field(name: str, text: str, width: int) -> Iterator[str]:
    """A named text, folded; a long one is cut."""
    shown = legible(text[:MOST_CHARACTERS]) + (" ..." if len(text) > MOST_CHARACTERS else "")
    for number, line in enumerate(folded(shown, max(width - 13, 20))):
        yield f"  {'' if number else name:<10} {line}".rstrip()


def flip_blocks(comparison: Comparison, n: int, width: int) -> Iterator[str]:
    """The first `n` flipped probes of each pair and direction, with both runs' examples."""
    folders = {run.name: run.folder for run in comparison.runs}
    for flip in comparison.flips:
        names = (flip.first, flip.second)
        keys = [
            (direction, key)
            for direction, keys in (
                ("right to wrong", flip.to_wrong),
                ("wrong to right", flip.to_right),
            )
            for key in keys[:n]
        ]
        wanted = {key for _, key in keys}
        found = [
            {
                key: s
                for s in load_run(folders[name]).samples()
                if (key := (s.id, s.repeat, s.probe_id)) in wanted
            }
            for name in names
        ]
        yield f"Flips, {legible(flip.second)} against {legible(flip.first)}"
        yield ""
        for direction, key in keys:
            first = found[0][key]
            yield f"{legible(first.id)} / {legible(first.probe_id)}{_repeat(first)}: {direction}"
            yield from _asked(first, width)
            for name, samples in zip(names, found, strict=True):
                yield f"  {legible(name)}:"
                yield from _answered(samples[key], width)
            yield ""
