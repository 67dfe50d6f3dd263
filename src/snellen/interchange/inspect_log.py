"""Logs of Inspect: `.json`, and `.eval`, which is a zip of JSON files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from snellen.errors import DataError, MissingExtraError
from snellen.interchange.samples import (
    Content,
    ForeignSample,
    Found,
    Part,
    Turn,
    content_of,
    joined_reference,
    verdict_of,
)

TITLE = "Inspect"
_ATTACHMENT = "attachment://"
_ZSTANDARD = 93
_HEADER, _SAMPLES = "header.json", "samples/"


class _Dataset(msgspec.Struct):
    name: str | None = None


class _Eval(msgspec.Struct):
    task: str
    model: str
    dataset: _Dataset = msgspec.field(default_factory=_Dataset)


class _Choice(msgspec.Struct):
    message: Turn


class _Output(msgspec.Struct):
    choices: list[_Choice] = []


class _Score(msgspec.Struct):
    value: object = None


class _Sample(msgspec.Struct):
    id: int | str
    input: str | list[Turn]
    target: str | list[str]
    epoch: int = 1
    choices: list[str] | None = None
    output: _Output = msgspec.field(default_factory=_Output)
    scores: dict[str, _Score] | None = None
    attachments: dict[str, str] = {}
    error: object = None


class _Header(msgspec.Struct):
    eval: _Eval


class _Log(_Header):
    samples: list[msgspec.Raw] | None = None


_sample_decoder = msgspec.json.Decoder(_Sample)


def is_results(path: Path) -> bool:
    """Whether a file is a log of Inspect, by its suffix and, for JSON, its first keys."""
    if path.suffix == ".eval":
        return zipfile.is_zipfile(path)
    if path.suffix != ".json":
        return False
    with path.open("rb") as stream:
        head = stream.read(400)
    return b'"eval"' in head and b'"status"' in head and b'"version"' in head


def read(path: Path) -> Iterator[Found]:
    """The samples of a log, one for each epoch, bad ones as errors.

    Of several scorers the first that gives a value counts. C is right, I and N are wrong, P is a
    half.

    Raises:
        DataError: the file as a whole is no log.
        MissingExtraError: the log is packed with zstandard, and that is not installed.
    """
    is_zip = path.suffix == ".eval"
    header, raws = _of_zip(path) if is_zip else _of_json(path)
    for number, raw in enumerate(raws, 1):
        try:
            found = _sample_decoder.decode(raw)
        except msgspec.MsgspecError as error:
            yield DataError(f"cannot be read: {error}", file=path.name, row=number)
            continue
        yield _sample(found, header.eval, path, number)


def _sample(found: _Sample, task: _Eval, path: Path, row: int) -> ForeignSample:
    asked = (
        Content(found.input.strip(), ())
        if isinstance(found.input, str)
        else content_of(found.input)
    )
    said = [choice.message for choice in found.output.choices[:1]]
    value = next((one.value for one in (found.scores or {}).values()), None)
    correct, score = verdict_of(value)
    failed = found.error is not None
    return ForeignSample(
        id=f"{task.task}/{found.id}" + (f"/{found.epoch}" if found.epoch > 1 else ""),
        question=_attached(asked.text, found),
        reference=joined_reference(found.target),
        reply=None if failed else _attached(_text_of(said), found),
        model=task.model,
        benchmark=task.dataset.name or task.task,
        index=found.id,
        file=path,
        row=row,
        pictures=tuple(_attached(one, found) for one in asked.pictures),
        options=tuple(found.choices or ()),
        correct=None if failed else correct,
        score=None if failed else score,
    )


def _text_of(turns: list[Turn]) -> str:
    """The text of the model's message, without thoughts and the like beside it."""
    [turn] = turns or [Turn("assistant")]
    parts = [Part(text=turn.content)] if isinstance(turn.content, str) else turn.content
    return "".join(part.text for part in parts if part.type == "text").strip()


def _attached(text: str, found: _Sample) -> str:
    """A text, or the attachment that it names: Inspect keeps long ones aside."""
    if not text.startswith(_ATTACHMENT):
        return text
    return found.attachments.get(text.removeprefix(_ATTACHMENT), text)


def _of_json(path: Path) -> tuple[_Header, Iterator[bytes]]:
    try:
        log = msgspec.json.decode(path.read_bytes(), type=_Log)
    except msgspec.MsgspecError as error:
        raise DataError(f"is no log of Inspect: {error}", file=path) from error
    return log, (bytes(raw) for raw in log.samples or ())


def _of_zip(path: Path) -> tuple[_Header, Iterator[bytes]]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = sorted(archive.infolist(), key=lambda one: one.filename)
            names = [one for one in entries if one.filename.startswith(_SAMPLES)]
            header = next(one for one in entries if one.filename == _HEADER)
            head = msgspec.json.decode(_unpacked(path, header), type=_Header)
    except (zipfile.BadZipFile, StopIteration, msgspec.MsgspecError) as error:
        raise DataError(
            f"is no whole log of Inspect: {error or 'it has no header.json'}",
            file=path,
            hint="a run that was cut off has no header: `inspect log recover`",
        ) from error
    return head, (_unpacked(path, one) for one in names)


def _unpacked(path: Path, entry: zipfile.ZipInfo) -> bytes:
    """The bytes of one file of a zip; Python's own library does not know zstandard."""
    if entry.compress_type != _ZSTANDARD:
        with zipfile.ZipFile(path) as archive:
            return archive.read(entry)
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("zstandard, which unpacks new .eval logs", "import") from error
    with path.open("rb") as stream:
        stream.seek(entry.header_offset + 26)
        name, extra = (int.from_bytes(stream.read(2), "little") for _ in range(2))
        stream.seek(name + extra, 1)
        packed = stream.read(entry.compress_size)
    found: bytes = zstandard.ZstdDecompressor().decompress(packed, entry.file_size)
    return found
