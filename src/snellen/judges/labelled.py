"""Measures a judge on material whose truth is known.

The material has two halves. The `dev` half may be used for tuning a judge. The `frozen` half was
paraphrased and set aside before any tuning: its questions, rubrics and answers stand in
`paraphrases/`, and no picture of it occurs in the dev half of reading and rubric.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from snellen.errors import DataError
from snellen.records import (
    Answer,
    CallFailure,
    GradeTask,
    JsonObject,
    ProtocolName,
    ReadTask,
    Request,
    RubricTask,
    Task,
)
from snellen.replies.answers import parse_verdict
from snellen.replies.groups import parse_assessment
from snellen.replies.letters import parse_letter

Half = Literal["dev", "frozen"]
Judgement = str | bool | None


class Judge(Protocol):
    """What answers a request; pictures are never among what a judge is asked."""

    async def call(self, request: Request, pictures: Sequence[object] = ()) -> Answer:
        """The answer, or why there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Trial:
    """A task and the verdicts that a faultless judge gives.

    `labels` has one entry for reading (a letter, E where the caption is silent) and direct (a
    boolean), and one a statement for rubric. `answer` is the benchmark's own letter (reading);
    `picture` is what trials that hang together share.
    """

    protocol: ProtocolName
    half: Half
    name: str
    task: Task
    labels: tuple[str | bool, ...]
    answer: str = ""
    picture: str = ""


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """How a judge did under one protocol on one half; rates are fractions, None where n is 0.

    `n` counts verdicts; `unscored` of them failed or could not be read and count as wrong.
    `right_when_stated`: of what is truly stated (reading), true (rubric) or right (direct), the
    share judged so. `uncertain_when_absent`: of what a caption is silent about, the share judged
    E (reading only). `fooled_when_changed`: of what is stated wrongly or false, the share for
    which the judge nevertheless credits the reply.
    """

    protocol: ProtocolName
    half: Half
    n: int
    unscored: int
    accuracy: float | None
    right_when_stated: float | None
    uncertain_when_absent: float | None
    fooled_when_changed: float | None


def ask_bare(trial: Trial) -> Request:
    """A request that carries the structured task and no prompt: enough for the embedded judge."""
    return Request("judge", (), f"check:{trial.protocol}", trial.name, task=trial.task)


async def measure(
    judge: Judge, folder: str | Path, *, compose: Callable[[Trial], Request] = ask_bare
) -> list[JudgeRow]:
    """One row for each protocol and half of the labelled material in a folder.

    `compose` makes the request of a trial; judges that read prompts need one that writes them.

    Raises:
        DataError: a file of the material is missing or broken.
    """
    trials = load_trials(folder)
    answers = await asyncio.gather(*(judge.call(compose(trial)) for trial in trials))
    judged: dict[tuple[ProtocolName, Half], list[tuple[Trial, Answer]]] = {}
    for trial, answer in zip(trials, answers, strict=True):
        judged.setdefault((trial.protocol, trial.half), []).append((trial, answer))
    return [_row(*key, pairs) for key, pairs in judged.items()]


def load_trials(folder: str | Path) -> list[Trial]:
    """All trials of the labelled material, in a fixed order.

    Raises:
        DataError: a file of the material is missing or broken.
    """
    base = Path(folder)
    pictures = {r["question_id"]: r["image_id"] for r in _rows(base, "reading/questions")}
    asked = {pictures[r["question_id"]] for r in _rows(base, "paraphrases/reading")}
    frozen = frozenset(asked | {r["id"] for r in _rows(base, "paraphrases/rubric")})
    found = [*_reading_trials(base, frozen), *_rubric_trials(base, frozen), *_direct_trials(base)]
    if not found:
        raise DataError("holds no labelled trials", file=base, hint="give the folder of `mini`")
    return found


def read_verdicts(trial: Trial, answer: Answer) -> tuple[Judgement, ...]:
    """The verdicts in a judge's answer, None for each that is missing."""
    nothing: tuple[Judgement, ...] = (None,) * len(trial.labels)
    if isinstance(answer, CallFailure):
        return nothing
    match trial.task:
        case ReadTask(options=options):
            letter = parse_letter(answer.text, options).value
            return (letter if isinstance(letter, str) else None,)
        case GradeTask():
            right = parse_verdict(answer.text).value
            return (right if isinstance(right, bool) else None,)
        case RubricTask(must_right=must, easy_wrong=easy):
            groups = parse_assessment(answer.text, len(must), len(easy))
            sides = zip((g.value for g in groups), (must, easy), strict=True)
            return tuple(
                v
                for value, side in sides
                for v in (value if isinstance(value, tuple) else (None,) * len(side))
            )


def _row(protocol: ProtocolName, half: Half, pairs: Iterable[tuple[Trial, Answer]]) -> JudgeRow:
    rows = [
        (trial.answer, label, verdict)
        for trial, answer in pairs
        for label, verdict in zip(trial.labels, read_verdicts(trial, answer), strict=True)
    ]
    stated = [v == label for own, label, v in rows if label is True or label == own]
    absent = [v == label for own, label, v in rows if own and label == _UNCERTAIN]
    changed = [
        v is True or (own != "" and v == own)
        for own, label, v in rows
        if label is False or (own and label not in (own, _UNCERTAIN))
    ]
    return JudgeRow(
        protocol,
        half,
        n=len(rows),
        unscored=sum(v is None for _, _, v in rows),
        accuracy=_share([v == label for _, label, v in rows]),
        right_when_stated=_share(stated),
        uncertain_when_absent=_share(absent),
        fooled_when_changed=_share(changed),
    )


_UNCERTAIN = "E"


def _share(hits: Sequence[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None


def _reading_trials(base: Path, frozen: frozenset[str]) -> Iterator[Trial]:
    questions = {r["question_id"]: r for r in _rows(base, "reading/questions")}
    reworded = {r["question_id"]: r for r in _rows(base, "paraphrases/reading")}
    captions = _replies(base, "captions")
    for row in _rows(base, "labels/reading"):
        question = questions[row["probe_id"]]
        is_frozen = row["id"] in frozen
        asked = reworded.get(row["probe_id"]) if is_frozen else question
        if asked is not None:
            caption = captions[row["captioner"]][row["id"]]
            task = ReadTask(caption, asked["question"], tuple(asked["options"]))
            name = f"{row['captioner']}/{row['probe_id']}"
            half: Half = "frozen" if is_frozen else "dev"
            known = (row["verdict"],)
            yield Trial("reading", half, name, task, known, question["answer"], row["id"])


def _rubric_trials(base: Path, frozen: frozenset[str]) -> Iterator[Trial]:
    rubrics = {r["id"]: r for r in _rows(base, "rubric/rubrics")}
    reworded = {r["id"]: r for r in _rows(base, "paraphrases/rubric")}
    captions = _replies(base, "captions")
    labels: dict[tuple[str, str], dict[str, bool]] = {}
    for row in _rows(base, "labels/rubric"):
        labels.setdefault((row["captioner"], row["id"]), {})[row["probe_id"]] = row["verdict"]
    for (captioner, item), known in labels.items():
        rubric = reworded.get(item) if item in frozen else rubrics[item]
        if rubric is not None:
            groups = [(g, tuple(rubric[g])) for g in ("must_right", "easy_wrong")]
            order = [known[f"{g}/{i}"] for g, texts in groups for i in range(len(texts))]
            task = RubricTask(captions[captioner][item], groups[0][1], groups[1][1])
            half: Half = "frozen" if item in frozen else "dev"
            name = f"{captioner}/{item}"
            yield Trial("rubric", half, name, task, tuple(order), picture=item)


def _direct_trials(base: Path) -> Iterator[Trial]:
    questions = {str(r["index"]): r for r in _rows(base, "direct/questions")}
    reworded = {str(r["id"]): r["replies"] for r in _rows(base, "paraphrases/direct")}
    answers = _replies(base, "answers")
    for row in _rows(base, "labels/direct"):
        question, captioner = questions[row["id"]], row["captioner"]
        replies = reworded.get(row["id"])
        half: Half = "dev" if replies is None else "frozen"
        reply = answers[captioner][row["id"]] if replies is None else replies.get(captioner)
        if reply is not None:
            task = GradeTask(question["problem"], question["answer"], reply)
            name, picture = f"{captioner}/{row['id']}", "+".join(question["image"])
            yield Trial("direct", half, name, task, (row["verdict"],), picture=picture)


def _replies(base: Path, name: str) -> Mapping[str, Mapping[str, str]]:
    """Reply by captioner and item."""
    folders = sorted(p for p in (base / "replies").glob("*") if p.is_dir())
    return {
        folder.name: {str(r["id"]): r["reply"] for r in _rows(folder, name)} for folder in folders
    }


def _rows(base: Path, name: str) -> list[JsonObject]:
    """The rows of `name.jsonl`, or of its parts `name-*.jsonl`."""
    place = base / name
    whole = place.with_name(place.name + ".jsonl")
    files = [whole] if whole.is_file() else sorted(place.parent.glob(place.name + "-*.jsonl"))
    if not files:
        raise DataError("is missing", file=whole, hint="give the folder of `mini`")
    return [row for file in files for row in _decode(file)]


def _decode(file: Path) -> list[JsonObject]:
    try:
        return msgspec.json.Decoder(JsonObject).decode_lines(file.read_text(encoding="utf-8"))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"is no JSON-lines file: {error}", file=file) from error
