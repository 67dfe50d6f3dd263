"""Result files of EvalScope: `reviews/MODEL/BENCHMARK_SUBSET.jsonl`, and its report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import field

from snellen.errors import DataError
from snellen.interchange.samples import (
    ForeignSample,
    Found,
    Turn,
    content_of,
    joined_reference,
    rows_as,
    verdict_of,
)
from snellen.interchange.written import (
    Exported,
    metrics_of,
    unscored_notices,
    write_json_file,
)
from snellen.records import JsonObject
from snellen.runs.folder import Run
from snellen.runs.summary import summary_of

TITLE = "EvalScope"


class _Score(msgspec.Struct):
    value: dict[str, object] = {}
    prediction: str | None = None
    status: str = "success"
    main_score_name: str | None = None


class _SampleScore(msgspec.Struct):
    score: _Score
    sample_id: str | int | None = None
    sample_metadata: dict[str, object] | None = None


class _Review(msgspec.Struct):
    """A row; older versions have the prompt as one text in `input`."""

    index: int
    sample_score: _SampleScore
    target: str | list[str] | None = None
    messages: list[Turn] = []
    input: str = ""
    choices: list[str] = field(default_factory=list)


def is_results(path: Path) -> bool:
    """Whether a file lies where EvalScope writes its reviews."""
    return path.suffix == ".jsonl" and path.parent.parent.name == "reviews"


def read(path: Path) -> Iterator[Found]:
    """The samples of a file of reviews, bad rows as errors.

    A sample whose judge failed has no verdict. A path of a picture is as it was given to EvalScope,
    hence relative to the folder where that was started.
    """
    # The benchmark of a file: the report of that name tells it from the subset.
    reports = path.parent.parent.parent / "reports" / path.parent.name
    names = [one.stem for one in reports.glob("*.json") if path.stem.startswith(f"{one.stem}_")]
    benchmark = max(names, key=len, default=path.stem)
    for row, found in rows_as(path, _Review):
        if isinstance(found, DataError):
            yield found
            continue
        asked = content_of(found.messages)
        score = found.sample_score.score
        said = content_of(found.messages, "assistant").text
        metadata = found.sample_score.sample_metadata or {}
        number = score.value.get(
            score.main_score_name or "", next(iter(score.value.values()), None)
        )
        correct, value = verdict_of(number) if score.status == "success" else (None, None)
        source = metadata.get("source_bmk") or metadata.get("benchmark")
        yield ForeignSample(
            id=f"{path.stem}/{found.index}",
            question=asked.text or found.input.strip(),
            reference=joined_reference(found.target or ""),
            reply=said if score.prediction is None else score.prediction,
            model=path.parent.name,
            benchmark=source if isinstance(source, str) else benchmark,
            index=found.index,
            file=path,
            row=row.number,
            pictures=asked.pictures,
            options=tuple(found.choices),
            correct=correct,
            score=value,
        )


def write(run: Run, out: Path) -> Exported:
    """Writes `reports/MODEL/BENCHMARK.json` below the folder `out`, as EvalScope's table reads it.

    Each metric stands with its value; the labels of the first breakdown are subsets.
    """
    summary = summary_of(run)
    by = next(iter(summary.by.values()), {})
    metrics: list[JsonObject] = []
    for metric, value in metrics_of(run):
        subsets = [
            {"name": label, "score": found[metric.name].value, "num": found[metric.name].n_items}
            for label, found in by.items()
            if metric.name in found and found[metric.name].value is not None
        ]
        whole = {"name": "all", "score": value.value, "num": value.n_items}
        entry = {"num": value.n_items, "score": value.value, "macro_score": value.value}
        metrics.append(
            {
                "identity": {"name": metric.name, "aggregation": "mean", "dimensions": {}},
                "name": metric.name,
                **entry,
                "categories": [{"name": ["default"], **entry, "subsets": subsets or [whole]}],
            }
        )
    name = run.spec.benchmark
    report = {
        "schema_version": 2,
        "name": f"{run.name}@{name}",
        "dataset_name": name,
        "dataset_pretty_name": name,
        "dataset_description": "",
        "model_name": run.name,
        "metrics": metrics,
        "analysis": "N/A",
    }
    safe = run.name.replace("/", "_")
    path = write_json_file(out / "reports" / safe / f"{name}.json", report)
    return Exported((path,), summary.counts.probes, unscored_notices(summary))
