"""Result files of lmms-eval: `MODEL/DATE_samples_TASK.jsonl`, written with `--log_samples`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from snellen.errors import DataError
from snellen.interchange.samples import ForeignSample, Found, rows_as, verdict_of
from snellen.interchange.written import (
    Exported,
    answered,
    metrics_of,
    standard_error,
    unscored_notices,
    write_json_file,
)
from snellen.records import JsonObject
from snellen.runs.folder import Run
from snellen.runs.summary import summary_of

TITLE = "lmms-eval"
_NAME = re.compile(r"(?P<date>.+)_samples_(?P<task>.+)\.jsonl")
_KNOWN = frozenset(
    {
        "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "token_counts",
        "doc_hash", "prompt_hash", "target_hash", "input", "input_media", "per_sample_scores",
    }
)  # fmt: skip


class _Sample(msgspec.Struct):
    """The fields that every task has; the others are the task's metrics."""

    doc_id: int | str
    target: object
    filtered_resps: object = None
    resps: object = None
    input: str | None = None
    arguments: object = None
    input_media: list[str] = []


class _Results(msgspec.Struct):
    """What the file of results beside the samples says of the model."""

    model_name: str = ""


def is_results(path: Path) -> bool:
    """Whether a file is called as lmms-eval calls its samples."""
    return _NAME.fullmatch(path.name) is not None


def read(path: Path) -> Iterator[Found]:
    """The samples of a file, bad rows as errors.

    The score is that of the first metric that has a number. The file holds a picture only where the
    task names one by path or address: the others are looked up by task and `doc_id`.
    """
    name = _NAME.fullmatch(path.name)
    task = name["task"] if name else path.stem
    model = _model_of(path, name["date"] if name else "")
    for row, found in rows_as(path, _Sample):
        if isinstance(found, DataError):
            yield found
            continue
        fields = msgspec.json.decode(row.data, type=dict[str, object])
        correct, score = _verdict(fields)
        yield ForeignSample(
            id=f"{task}/{found.doc_id}",
            question=(_first_text(found.arguments) if found.input is None else found.input).strip(),
            reference=_first_text(found.target),
            reply=_first_text(found.filtered_resps or found.resps),
            model=model,
            benchmark=task,
            index=found.doc_id,
            file=path,
            row=row.number,
            pictures=tuple(found.input_media),
            correct=correct,
            score=score,
        )


def _verdict(fields: Mapping[str, object]) -> tuple[bool | None, float | None]:
    for name, value in fields.items():
        if name not in _KNOWN:
            correct, score = verdict_of(value)
            if score is not None:
                return correct, score
    return None, None


def _first_text(value: object) -> str:
    """A text, or the first one in nested lists of them."""
    while isinstance(value, list):
        value = value[0] if value else ""
    return "" if value is None else str(value)


def _model_of(path: Path, date: str) -> str:
    beside = path.with_name(f"{date}_results.json")
    if beside.is_file():
        try:
            return msgspec.json.decode(beside.read_bytes(), type=_Results).model_name
        except msgspec.MsgspecError as error:
            raise DataError(f"cannot be read: {error}", file=beside) from error
    return path.parent.name


def write(run: Run, out: Path) -> Exported:
    """Writes `MODEL/TIME_results.json` and `MODEL/TIME_samples_TASK.jsonl` below the folder `out`.

    Metrics are named `NAME,none` as there. The standard error is that of our clustered interval.
    """
    summary = summary_of(run)
    task, safe = run.spec.benchmark, run.name.replace("/", "__")
    began = run.spec.sessions[-1].at if run.spec.sessions else ""
    date = re.sub(r"\D", "", began)[:14] or "00000000000000"
    stamp = f"{date[:8]}_{date[8:]}"
    values: JsonObject = {"alias": task}
    higher: dict[str, bool] = {}
    for metric, value in metrics_of(run):
        error = standard_error(value)
        values[f"{metric.name},none"] = value.value
        values[f"{metric.name}_stderr,none"] = "N/A" if error is None else error
        higher[metric.name] = metric.better > 0
    n = len(run.items)
    results = {
        "results": {task: values},
        "group_subtasks": {task: []},
        "configs": {task: {"task": task, "repeats": run.spec.repeats, "num_fewshot": 0}},
        "versions": {task: run.spec.benchmark_version or "Yaml"},
        "n-shot": {task: 0},
        "higher_is_better": {task: higher},
        "n-samples": {task: {"original": n, "effective": n}},
        "config": {"model": run.name, "model_args": "", "random_seed": run.spec.seed},
        "date": stamp,
    }
    rows: list[JsonObject] = []
    for k, one in enumerate(answered(run)):
        text = "" if one.reply is None else one.reply.reply or ""
        rows.append({
            "doc_id": k, "doc": {"id": one.item.id}, "target": one.reference, "input": one.asked,
            "resps": [[text]], "filtered_resps": [text], "repeat": one.repeat,
            run.protocol.headline: one.share,
        })  # fmt: skip
    path = write_json_file(out / safe / f"{stamp}_results.json", results)
    samples = path.with_name(f"{stamp}_samples_{task}.jsonl")
    samples.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return Exported((path, samples), len(rows), unscored_notices(summary))
