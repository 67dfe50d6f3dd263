"""The review queue of a build as tasks of Label Studio and records of Argilla, and back.

A task carries its id and the digest of its text in the data of the other tool. Decisions that come
back are therefore known, and a decision on another text does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from snellen.builders.reviewing import Decision, Task
from snellen.construction.ledger import Ledger
from snellen.construction.review import CRITERIA, fitting, read_queue
from snellen.errors import DataError, UsageError
from snellen.interchange.written import Exported
from snellen.records import JsonObject

T = TypeVar("T")
WORDS = ("accept", "edit", "delete")
# The names of the questions that both tools ask of a task.
DECISION, REASONS, AFTER, NOTE = "decision", "reasons", "after", "note"


def write_label_studio(folder: Path, out: Path) -> Exported:
    """Writes `tasks.json` and the labelling interface `config.xml` into the folder `out`.

    Pictures are addresses below Label Studio's local files: serve the folder that holds them.
    """
    tasks = read_queue(folder)
    rows = [{"id": k, "data": _data(task)} for k, task in enumerate(tasks, 1)]
    out.mkdir(parents=True, exist_ok=True)
    file, config = out / "tasks.json", out / "config.xml"
    file.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n")
    criteria = dict.fromkeys(name for task in tasks for name in CRITERIA[task.kind])
    choices = "".join(f'    <Choice value="{word}"/>\n' for word in WORDS)
    reasons = "".join(f'    <Choice value="{name}"/>\n' for name in criteria)
    config.write_text(
        "<View>\n"
        '  <Image name="image" value="$image"/>\n'
        '  <Text name="text" value="$text"/>\n'
        f'  <Choices name="{DECISION}" toName="text" required="true">\n{choices}  </Choices>\n'
        f'  <Choices name="{REASONS}" toName="text" choice="multiple">\n{reasons}  </Choices>\n'
        f'  <TextArea name="{AFTER}" toName="text" placeholder="an edit, as JSON"/>\n'
        f'  <TextArea name="{NOTE}" toName="text" placeholder="a note"/>\n'
        "</View>\n",
        encoding="utf-8",
    )
    return Exported((file, config), len(tasks))


def write_argilla(folder: Path, out: Path) -> Exported:
    """Writes the file `out`: JSON-lines of records, as `Dataset.records.log` takes them."""
    tasks = read_queue(folder)
    rows = [
        {
            "id": task.id,
            "fields": {"text": _text(task), "image": _picture(task)},
            "metadata": {"digest": task.digest, "kind": task.kind, **task.labels},
        }
        for task in tasks
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return Exported((out,), len(rows))


def _data(task: Task) -> JsonObject:
    picture = _picture(task)
    return {
        "snellen_id": task.id,
        "snellen_digest": task.digest,
        "text": _text(task),
        "image": f"/data/local-files/?d={picture.lstrip('/')}" if picture else "",
        **task.labels,
    }


def _picture(task: Task) -> str:
    return task.pictures[0].path if task.pictures else ""


def _text(task: Task) -> str:
    """A task as lines of text: each field by its name."""
    lines = []
    for name, value in task.shown.items():
        if name in ("path", "name"):
            continue
        text = "; ".join(map(str, value)) if isinstance(value, list) else str(value)
        lines.append(f"{name}: {text}")
    return "\n".join(lines)


class _Value(msgspec.Struct):
    choices: list[str] = []
    text: list[str] = []


class _Result(msgspec.Struct):
    from_name: str
    value: _Value


class _Annotation(msgspec.Struct):
    result: list[_Result]
    completed_by: int | str | dict[str, object] | None = None
    was_cancelled: bool = False
    lead_time: float | None = None
    created_at: str = ""


class _Labelled(msgspec.Struct):
    data: dict[str, object]
    annotations: list[_Annotation] = []


class _Response(msgspec.Struct):
    value: str | list[str] | None
    user_id: str | None = None


class _Record(msgspec.Struct):
    id: str
    metadata: dict[str, object] = {}
    responses: dict[str, list[_Response]] = {}


def import_decisions(name: str, path: Path, folder: Path) -> int:
    """Takes decisions of another tool into the review of a build; how many were new.

    `label-studio` reads its JSON export, `argilla` JSON-lines of records with responses. Names of
    annotators are those of the other tool.

    Raises:
        UsageError: no such format.
        DataError: a row cannot be read, or a decision does not fit its task, with file and row.
    """
    if name not in READERS:
        raise UsageError(f"no format of decisions {name}", hint=f"there are: {', '.join(READERS)}")
    tasks = {task.id: task for task in read_queue(folder)}
    decisions = []
    for row, decision in READERS[name](path):
        task = tasks.get(decision.id)
        if task is None:
            raise DataError(
                f"the task {decision.id!r} is not in the queue", file=path, row=row,
                hint="give the export of the tasks that were made from this folder",
            )  # fmt: skip
        try:
            decisions.append(fitting(task, decision))
        except (UsageError, DataError) as error:
            raise DataError(error.message, file=path, row=row, hint=error.hint) from error
    ledger = Ledger(folder)
    try:
        before = ledger.size()
        for decision in decisions:
            ledger.save(decision, seen=before)
        return ledger.size() - before
    finally:
        ledger.close()


def _label_studio(path: Path) -> Iterator[tuple[int, Decision]]:
    rows = _decoded(path, path.read_bytes(), list[_Labelled])
    for number, row in enumerate(rows, 1):
        for one in row.annotations:
            if one.was_cancelled:
                continue
            said = {result.from_name: result.value for result in one.result}
            words = said.get(DECISION, _Value()).choices
            yield number, _decision(
                path, number, str(row.data.get("snellen_id", "")), words,
                digest=str(row.data.get("snellen_digest", "")),
                annotator=_person(one.completed_by), reasons=said.get(REASONS, _Value()).choices,
                after=said.get(AFTER, _Value()).text, note=said.get(NOTE, _Value()).text,
                seconds=one.lead_time, at=one.created_at,
            )  # fmt: skip


def _argilla(path: Path) -> Iterator[tuple[int, Decision]]:
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        record = _decoded(path, line, _Record, number)
        for k, one in enumerate(record.responses.get(DECISION, ())):
            own = {
                name: answers[k].value if k < len(answers) else None
                for name, answers in record.responses.items()
            }
            yield number, _decision(
                path, number, record.id, _listed(own.get(DECISION)),
                digest=str(record.metadata.get("digest", "")),
                annotator=one.user_id or "argilla", reasons=_listed(own.get(REASONS)),
                after=_listed(own.get(AFTER)), note=_listed(own.get(NOTE)),
            )  # fmt: skip


READERS: Mapping[str, Callable[[Path], Iterator[tuple[int, Decision]]]] = {
    "label-studio": _label_studio,
    "argilla": _argilla,
}


def _listed(value: str | list[str] | None) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else value


def _person(given: int | str | dict[str, object] | None) -> str:
    if isinstance(given, dict):
        return str(given.get("email") or given.get("id") or "label-studio")
    return "label-studio" if given is None else str(given)


def _decoded(path: Path, data: bytes, kind: type[T], row: int | None = None) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise DataError(f"cannot be read: {error}", file=path, row=row) from error


def _decision(
    path: Path,
    row: int,
    task: str,
    words: list[str],
    *,
    digest: str,
    annotator: str,
    reasons: list[str],
    after: list[str],
    note: list[str],
    seconds: float | None = None,
    at: str = "",
) -> Decision:
    word = words[0] if words else ""
    if word not in WORDS:
        raise DataError(
            f"the decision is {word!r}", file=path, row=row, field=DECISION,
            hint=f"one of {', '.join(WORDS)}",
        )  # fmt: skip
    changed = _decoded(path, after[0].encode(), JsonObject, row) if after and after[0] else None
    return Decision(
        task, annotator, word,  # type: ignore[arg-type]
        reasons=tuple(reasons), after=changed if word == "edit" else None,
        note=" ".join(note), at=at, seconds=seconds, digest=digest,
    )  # fmt: skip
