"""Runs to the files of other tools, and their files to replies that can be judged here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from snellen.errors import UsageError
from snellen.flows import failed_reason
from snellen.interchange import evalscope, every_eval, inspect_log, lmms_eval, model_card
from snellen.interchange.original import (
    BenchResult,
    read_bench_results,
    read_captions,
    write_bench_results,
    write_captions,
)
from snellen.interchange.written import Exported
from snellen.records import Item, Verdict
from snellen.runs.folder import Run

# What the official script notes where a model gave nothing.
NO_ANSWER = "failed to obtain answer"
REPLIES_FILE = "replies.jsonl"
_RESULTS_NAME = re.compile(r"PerceptionBench_(.+)\.jsonl")


@dataclass(frozen=True, slots=True)
class Imported:
    """The replies file that was written, and what it holds; `model` is "" where nothing says it."""

    file: Path
    n: int
    n_null: int
    model: str = ""


def export_run(name: str, run: Run, out: str | Path) -> Exported:
    """Writes a run in another tool's format.

    `perception_bench` writes the two official result files into the folder `out`, `evalscope`,
    `lmms-eval` and `every-eval-ever` the files of these tools; `captionqa` and `replies` write the
    file `out`, JSON `{id: text}`, of repeats the first; `inspect` a log, `model-card` a YAML block.

    Raises:
        UsageError: no such format, or not one for this run's protocol.
    """
    if name not in EXPORTS:
        raise UsageError(f"no export format {name}", hint=f"there are: {', '.join(EXPORTS)}")
    return EXPORTS[name](run, Path(out))


def _require(run: Run, protocol: str, because: str) -> None:
    """Refuses a run of another protocol than the one that a format is for."""
    if run.spec.protocol != protocol:
        raise UsageError(
            f"{run.folder} is a {run.spec.protocol} run{because}",
            hint="export its replies: snellen export replies",
        )


def _export_bench(run: Run, out: Path) -> Exported:
    _require(run, "direct", "; PerceptionBench's files hold questions and answers")
    rows = [_bench_row(run, item) for item in run.items]
    files = write_bench_results(rows, out, model=run.name)
    unscored = sum(_verdict(run, item) is None for item in run.items)
    notices = _repeat_notices(run)
    if unscored:
        notices = (
            *notices,
            f"{unscored} unscored questions count as wrong there, as in the official script",
        )
    return Exported((files.results, files.scores), len(rows), notices)


def _verdict(run: Run, item: Item) -> Verdict | None:
    """The scored verdict on a question's first repeat."""
    found = run.verdicts.get((item.id, 0, item.probes[0].id))
    return found if found is not None and found.status == "scored" else None


def _bench_row(run: Run, item: Item) -> BenchResult:
    row, verdict = run.replies.get((item.id, 0)), _verdict(run, item)
    found = run.verdicts.get((item.id, 0, item.probes[0].id))
    if row is None or row.status != "ok" or found is None:
        reason = NO_ANSWER
    elif found.status == "unscored":
        reason = f"judge error: {found.reason}"
    else:
        reason = found.note or found.reason or ""
    label = next(iter(item.groups.get("error_category", ())), None)
    source = item.extra.get("source_bmk")
    return BenchResult(
        index=item.id if item.original_id is None else item.original_id,
        error_category=label,
        source_bmk=None if source is None else str(source),
        prediction=None if row is None else row.reply,
        judge_result=int(verdict is not None and verdict.correct is True),
        judge_reason=reason,
    )


def _export_replies(run: Run, out: Path) -> Exported:
    replies: dict[str, str] = {}
    missing = 0
    for item in run.items:
        row = run.replies.get((item.id, 0))
        if row is None or failed_reason(row) is not None:
            missing += 1
        else:
            replies[item.id] = row.reply or ""
    notices = _repeat_notices(run)
    if missing:
        notices = (*notices, f"{missing} items without a reply were left out")
    return Exported((write_captions(replies, out),), len(replies), notices)


def _export_captions(run: Run, out: Path) -> Exported:
    _require(run, "reading", " and holds no captions for CaptionQA")
    return _export_replies(run, out)


def _repeat_notices(run: Run) -> tuple[str, ...]:
    if run.spec.repeats == 1:
        return ()
    return (f"only the first of {run.spec.repeats} repeats was written",)


EXPORTS: Mapping[str, Callable[[Run, Path], Exported]] = {
    "perception_bench": _export_bench,
    "captionqa": _export_captions,
    "replies": _export_replies,
    "evalscope": evalscope.write,
    "lmms-eval": lmms_eval.write,
    "inspect": inspect_log.write,
    "every-eval-ever": every_eval.write,
    "model-card": model_card.write,
}


def import_replies(name: str, path: str | Path, out: str | Path) -> Imported:
    """Writes another tool's model outputs as `replies.jsonl` into the folder `out`.

    `perception_bench` reads the official results of a model, `captionqa` a caption file. The
    judgements in them are left behind: `snellen run --replies` judges anew.

    Raises:
        UsageError: no such format.
        DataError: the file is wrong, with row and field.
    """
    if name not in IMPORTS:
        raise UsageError(f"no import format {name}", hint=f"there are: {', '.join(IMPORTS)}")
    replies = IMPORTS[name](Path(path))
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / REPLIES_FILE
    rows = (msgspec.json.encode({"id": k, "reply": v}) + b"\n" for k, v in replies.items())
    file.write_bytes(b"".join(rows))
    match = _RESULTS_NAME.fullmatch(Path(path).name) if name == "perception_bench" else None
    nulls = sum(text is None for text in replies.values())
    return Imported(file, len(replies), nulls, match[1] if match else "")


IMPORTS: Mapping[str, Callable[[Path], dict[str, str | None]]] = {
    "perception_bench": lambda path: {
        str(row.index): row.prediction for row in read_bench_results(path)
    },
    "captionqa": lambda path: dict(read_captions(path)),
}
