"""Our own runs in the form of foreign samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from snellen.errors import DataError
from snellen.flows import failed_reason
from snellen.interchange.samples import ForeignSample, Found
from snellen.runs.folder import load_run

TITLE = "Snellen"


def is_results(path: Path) -> bool:
    """Whether a file is the `run.json` of a run folder."""
    return path.name == "run.json"


def read(path: Path) -> Iterator[Found]:
    """The questions of a run of direct questions, one for each repeat.

    Raises:
        DataError: the run is of another kind: its replies are descriptions, not answers.
        RunFolderError: it is no run folder.
    """
    run = load_run(path.parent)
    if run.spec.protocol != "direct":
        raise DataError(
            f"is a {run.spec.protocol} run", file=path,
            hint="give runs of direct questions: what a description misses is no wrong answer",
        )  # fmt: skip
    number = 0
    for item in run.items:
        source, index = item.extra.get("source_bmk"), item.extra.get("source_idx")
        is_derived = source and source != "NA" and index is not None
        for repeat in range(run.spec.repeats):
            number += 1
            row = run.replies.get((item.id, repeat))
            verdict = run.verdicts.get((item.id, repeat, item.probes[0].id))
            failed = row is None or failed_reason(row) is not None
            yield ForeignSample(
                id=f"{run.spec.benchmark}/{item.id}" + (f"/{repeat}" if repeat else ""),
                question=item.text,
                reference=item.probes[0].answer,
                reply=None if row is None or failed else row.reply,
                model=run.name,
                benchmark=str(source) if is_derived else run.spec.benchmark,
                index=index if is_derived and isinstance(index, int | str) else item.id,
                file=path,
                row=number,
                pictures=item.images,
                correct=None if verdict is None else verdict.correct,
            )
