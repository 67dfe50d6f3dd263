"""The embedded judge: judges offline with a small sentence encoder and rules, of low fidelity.

It never reads prompts: a request brings its structured question in `Request.task`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

from snellen.embedded import grading, reading, statements
from snellen.embedded.encoder import Encoder
from snellen.embedded.evidence import Vectors
from snellen.embedded.language import foreign_language
from snellen.embedded.wordpiece import VOCABULARY_SHA256
from snellen.embedded.words import normalise
from snellen.keys import digest, digest_of
from snellen.records import (
    Answer,
    CallFailure,
    GradeTask,
    ReadTask,
    Reply,
    Request,
    RubricTask,
    Task,
)

_Batch = list[tuple[Task, asyncio.Future[Answer]]]

# Calls that arrive within this time are embedded together.
_GATHER_S = 0.003
# "taxi" and "cab" are as near (0.71) as "red" and "blue" (0.73): beyond the rules, rather false.
_ALIKE = 0.78


class EmbeddedJudge:
    """A judge that needs no network: the same verdicts on every machine and in every order.

    `fidelity` is `low`: mark every number that it touches. `version` changes with the rules, their
    weights and the encoder. `model_path` is a folder or file with another ONNX export of
    all-MiniLM-L6-v2. Weights are loaded by the constructor.

    Raises:
        MissingExtraError: the extra `embedded` is not installed.
        SettingsError: the weights are not there, or not the pinned ones.
    """

    fidelity = "low"

    def __init__(self, *, model_path: str | Path | None = None, threads: int = 2) -> None:
        self._encoder = Encoder(model_path, threads=threads)
        self.version = _version(self._encoder.sha256)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="embedded-judge")
        self._waiting: _Batch = []
        self._round: asyncio.Task[None] | None = None

    async def call(self, request: Request, pictures: Sequence[object] = ()) -> Answer:
        """The verdict on the request's task, in the form that its protocol asks of a judge.

        Text that is not English, and a request without a task, get a failure and no verdict.
        """
        if request.task is None:
            return CallFailure(
                "bad_parameter",
                f"the embedded judge cannot read prompts, and the request {request.purpose!r} "
                "has no structured task; use a judge behind a URL",
            )
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((request.task, future))
        if self._round is None or self._round.done():
            self._round = loop.create_task(self._answer_rounds())
        return await future

    async def close(self) -> None:
        """Waits for what is being judged, and ends the worker."""
        if self._round is not None and not self._round.done():
            await self._round
        self._worker.shutdown(wait=True)

    async def _answer_rounds(self) -> None:
        """Answer what is waiting, round by round, until nothing is."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            await asyncio.sleep(_GATHER_S)
            batch, self._waiting = self._waiting, []
            judged = loop.run_in_executor(self._worker, self._judge, [task for task, _ in batch])
            try:
                await asyncio.wait([judged])
                error = judged.exception()
                for place, (_, future) in enumerate(batch):
                    if error is not None and not future.done():
                        future.set_exception(error)
                    elif not future.done():
                        future.set_result(judged.result()[place])
            finally:
                for _, future in batch:
                    future.cancel()

    def _judge(self, tasks: Sequence[Task]) -> list[Answer]:
        """The answers to some tasks, embedded together."""
        pairs = [(task, _refuse(task)) for task in tasks]
        wanted = (text for task, refusal in pairs if refusal is None for text in _texts(task))
        vectors = self._encoder.embed(wanted)
        return [refusal or _answer(task, vectors) for task, refusal in pairs]


def _version(weights: str) -> str:
    """A short hash of all that decides: the rules' own text, their weights, the encoder.

    Hashing the text means that no change of a rule can forget to change the version.
    """
    package = resources.files("snellen.embedded")
    files = sorted((f for f in package.iterdir() if f.name.endswith(".py")), key=lambda f: f.name)
    texts = [digest(file.read_bytes()) for file in files]
    fitted = [reading.OPTION_WEIGHTS, reading.STATED_WEIGHTS, statements.SUPPORT_WEIGHTS]
    return digest_of([weights, VOCABULARY_SHA256, texts, fitted])[:12]


def _texts(task: Task) -> Iterable[str]:
    """All texts whose vectors a task needs."""
    match task:
        case ReadTask():
            return reading.texts_for(task)
        case RubricTask(caption=caption, must_right=must, easy_wrong=easy):
            return statements.texts_for(caption, (*must, *easy))
        case GradeTask(reference=reference, answer=answer):
            return (reference, grading.final_answer(answer))


def _answer(task: Task, vectors: Vectors) -> Reply:
    match task:
        case ReadTask():
            text = _read(task, vectors)
        case RubricTask(caption=caption, must_right=must, easy_wrong=easy):
            groups = []
            for name, group in (("GroupA", must), ("GroupB", easy)):
                results = (statements.verify(caption, text, vectors) for text in group)
                inner = "".join(f"<Result>{str(result).lower()}</Result>" for result in results)
                groups.append(f"<{name}>{inner}</{name}>")
            text = f"<Assessment>{''.join(groups)}</Assessment>"
        case GradeTask(reference=reference, answer=answer):
            grade = grading.grade(task)
            right, reason = grade.right, grade.reason
            if right is None:
                cosine = float(vectors[reference] @ vectors[grading.final_answer(answer)])
                right = round(cosine, 4) >= _ALIKE
                reason += f"; likeness {cosine:.2f}, {_ALIKE} would be alike"
            text = f"[reason] {reason} [judge] {right}"
    return Reply(text, model="embedded")


def _read(task: ReadTask, vectors: Vectors) -> str:
    found = reading.read(task, vectors)
    uncertain = len(task.options) if task.uncertain_at is None else task.uncertain_at
    place = found.choice
    if task.allow_uncertain:
        place = uncertain if found.stated <= 0 else place + (place >= uncertain)
    return chr(ord("A") + place)


def _refuse(task: Task) -> CallFailure | None:
    """Why a task cannot be judged for the language of its texts, or None."""
    match task:
        case ReadTask(caption=caption, question=question):
            parts = {"caption": caption, "question": question}
        case RubricTask(caption=caption, must_right=must, easy_wrong=easy):
            parts = {"caption": caption, "rubrics": " ".join((*must, *easy))}
        case GradeTask(question=question, reference=reference, answer=answer):
            parts = {"question": question}
            # Signs that are the same are the same in any language.
            if not _quotes(normalise(answer), normalise(reference)):
                parts |= {"reference": reference, "answer": answer}
    for name, text in parts.items():
        language = foreign_language(text)
        if language is not None:
            return CallFailure(
                "language",
                f"the {name} is in {language}, and the embedded judge reads English only; "
                "use a judge behind a URL (--judge NAME --judge-url URL)",
            )
    return None


def _quotes(text: str, words: str) -> bool:
    """Whether a text has the words; Latin ones as whole words, since "b" is no part of "bild"."""
    if not words.isascii():
        return words in text
    # Chinese and Japanese write Latin words without spaces around them.
    latin = "[0-9a-zß-ɏ]"
    return re.search(f"(?<!{latin}){re.escape(words)}(?!{latin})", text) is not None
