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
from snellen.interchange.written import (
    Answered,
    Exported,
    answered,
    metrics_of,
    unscored_notices,
    write_json_file,
)
from snellen.records import JsonObject
from snellen.runs.folder import Run
from snellen.runs.summary import summary_of

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


def write(run: Run, out: Path) -> Exported:
    """Writes the run as a log of Inspect, the JSON file `out`, which `inspect view` opens.

    A direct question is scored C or I; an item with several probes by its share of right verdicts,
    with one line a probe in the explanation. What has no verdict has no score, and is counted.
    """
    summary = summary_of(run)
    spec, every = run.spec, list(answered(run))
    began = spec.sessions[0].at if spec.sessions else "1970-01-01T00:00:00+00:00"
    unscored = sum(one.share is None for one in every)
    metrics: JsonObject = {
        metric.name: {"name": metric.name, "value": value.value, "params": {}}
        for metric, value in metrics_of(run)
    }
    scorer = {"name": "snellen", "options": {}, "metrics": [], "metadata": {}}
    log = {
        "version": 2,
        "status": "success" if summary.status == "complete" else "cancelled",
        "eval": {
            "eval_id": spec.data_digest[:22],
            "run_id": spec.data_digest[:22],
            "created": began,
            "task": spec.benchmark,
            "task_id": spec.data_digest[:22],
            "task_version": 0,
            "dataset": {"name": spec.benchmark, "samples": len(run.items)},
            "model": run.name,
            "config": {"epochs": spec.repeats},
            "packages": {"snellen": spec.sessions[-1].snellen if spec.sessions else ""},
            "scorers": [scorer],
            "metadata": {"judge": spec.judge.name, "protocol": spec.protocol},
        },
        "plan": {"name": "plan", "steps": []},
        "results": {
            "total_samples": len(every),
            "completed_samples": len(every),
            "scores": [
                {
                    "name": "snellen", "scorer": "snellen", "metrics": metrics, "params": {},
                    "scored_samples": len(every) - unscored, "unscored_samples": unscored,
                }
            ],
        },
        "stats": {"started_at": began, "completed_at": began, "model_usage": {}},
        "samples": [_written(run, one) for one in every],
    }  # fmt: skip
    return Exported((write_json_file(out, log),), len(every), unscored_notices(summary))


def _written(run: Run, one: Answered) -> JsonObject:
    text = "" if one.reply is None else one.reply.reply or ""
    asked = one.asked if run.spec.protocol == "direct" else "Describe the picture."
    message = {"role": "assistant", "content": text, "source": "generate", "model": run.name}
    stopped = "max_tokens" if one.reply and one.reply.finish_reason == "length" else "stop"
    sample: JsonObject = {
        "id": one.item.id,
        "epoch": one.repeat + 1,
        "input": asked,
        "target": one.reference,
        "messages": [{"role": "user", "content": asked, "source": "input"}, message],
        "output": {
            "model": run.name,
            "choices": [{"message": message, "stop_reason": stopped}],
            "completion": text,
        },
        "metadata": {"images": [image.name for image in one.item.images]},
        "store": {},
        "events": [],
    }
    if one.failed is not None:
        error = {"message": one.failed, "traceback": "", "traceback_ansi": ""}
        return {**sample, "error": error}
    if one.share is None:
        return sample
    words = {True: "right", False: "wrong", None: "unscored"}
    lines = [
        f"{probe.id}: {words[None if verdict is None else verdict.correct]}"
        for probe, verdict in zip(one.item.probes, one.verdicts, strict=True)
    ]
    direct = run.spec.protocol == "direct"
    value: str | float = ("C" if one.share == 1.0 else "I") if direct else one.share
    score = {"value": value, "answer": text, "explanation": "\n".join(lines)}
    return {**sample, "scores": {"snellen": score}}
