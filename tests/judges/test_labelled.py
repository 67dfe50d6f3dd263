"""Measuring a judge on labelled material."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from snellen.errors import DataError
from snellen.judges.labelled import JudgeRow, ask_bare, load_trials, measure
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

QUESTION = {"options": ["Red", "Blue", "Green", "Gray"], "answer": "A"}
FILES = {
    "reading/questions": [
        {"question_id": "cat-1", "image_id": "cat", "question": "What color?", **QUESTION},
        {"question_id": "cat-2", "image_id": "cat", "question": "What color, too?", **QUESTION},
        {"question_id": "dog-1", "image_id": "dog", "question": "What color?", **QUESTION},
    ],
    "rubric/rubrics": [
        {"id": "cat", "must_right": ["Says cat."], "easy_wrong": ["Says red.", "Says big."]},
        {"id": "dog", "must_right": ["Says dog."], "easy_wrong": []},
    ],
    "direct/questions": [
        {"index": 0, "problem": "What?", "image": ["cat.png"], "answer": "a cat"},
        {"index": 1, "problem": "What?", "image": ["dog.png"], "answer": "a dog"},
    ],
    "paraphrases/reading": [
        {"question_id": "dog-1", "question": "Which shade?", "options": QUESTION["options"]}
    ],
    "paraphrases/rubric": [{"id": "dog", "must_right": ["Names a dog."], "easy_wrong": []}],
    "paraphrases/direct": [{"id": "1", "replies": {"good": "It's a dog."}}],
    "labels/reading": [
        {"captioner": c, "id": p.split("-")[0], "probe_id": p, "verdict": v}
        for c, p, v in [
            ("good", "cat-1", "A"),
            ("good", "cat-2", "E"),
            ("bad", "cat-1", "B"),
            ("good", "dog-1", "A"),
        ]
    ],
    "labels/rubric": [
        {"captioner": "good", "id": i, "probe_id": p, "verdict": v}
        for i, p, v in [
            ("cat", "must_right/0", True),
            ("cat", "easy_wrong/0", True),
            ("cat", "easy_wrong/1", False),
            ("dog", "must_right/0", True),
        ]
    ],
    "labels/direct": [
        {"captioner": "good", "id": "0", "probe_id": "0", "verdict": True},
        {"captioner": "bad", "id": "0", "probe_id": "0", "verdict": False},
        {"captioner": "good", "id": "1", "probe_id": "1", "verdict": True},
    ],
}
REPLIES = {
    "good/captions": {"cat": "A red cat.", "dog": "A red dog."},
    "bad/captions": {"cat": "A blue cat.", "dog": "A dog."},
    "good/answers": {"0": "cat", "1": "dog"},
    "bad/answers": {"0": "dog", "1": "cat"},
}


class ScriptedJudge:
    """A judge that answers as a function of the task says."""

    def __init__(self, answer: Callable[[Task], str]) -> None:
        self.answer = answer

    async def call(self, request: Request, pictures: Sequence[object] = ()) -> Answer:
        assert request.task is not None
        text = self.answer(request.task)
        return Reply(text) if text else CallFailure("timeout", "too slow")


@pytest.fixture
def material(tmp_path: Path) -> Path:
    rows = dict(FILES)
    for name, replies in REPLIES.items():
        rows[f"replies/{name}"] = [{"id": i, "reply": text} for i, text in replies.items()]
    for name, lines in rows.items():
        file = tmp_path / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return tmp_path


def rows_of(material: Path, answer: Callable[[Task], str]) -> dict[tuple[str, str], JudgeRow]:
    rows = asyncio.run(measure(ScriptedJudge(answer), material))
    return {(row.protocol, row.half): row for row in rows}


def credulous(task: Task) -> str:
    """Credits every reply in full."""
    match task:
        case ReadTask():
            return "A"
        case GradeTask():
            return "[reason] fine [judge] True"
        case RubricTask(must_right=must, easy_wrong=easy):
            a, b = ("<Result>true</Result>" * len(group) for group in (must, easy))
            return f"<Assessment><GroupA>{a}</GroupA><GroupB>{b}</GroupB></Assessment>"


def test_a_credulous_judge_is_right_when_stated_and_fooled_always(material: Path) -> None:
    """A judge that credits everything scores the base rate and is fooled by each change."""
    rows = rows_of(material, credulous)
    assert rows["reading", "dev"] == JudgeRow(
        "reading", "dev", 3, 0, pytest.approx(1 / 3), 1.0, 0.0, 1.0
    )
    assert rows["rubric", "dev"] == JudgeRow(
        "rubric", "dev", 3, 0, pytest.approx(2 / 3), 1.0, None, 1.0
    )
    assert rows["direct", "dev"] == JudgeRow("direct", "dev", 2, 0, 0.5, 1.0, None, 1.0)


def test_the_frozen_half_is_asked_in_other_words(material: Path) -> None:
    """Questions, rubrics and replies of the frozen half come from the paraphrases alone."""
    frozen = {t.protocol: t.task for t in load_trials(material) if t.half == "frozen"}
    assert frozen["reading"] == ReadTask("A red dog.", "Which shade?", tuple(QUESTION["options"]))
    assert frozen["rubric"] == RubricTask("A red dog.", ("Names a dog.",), ())
    assert frozen["direct"] == GradeTask("What?", "a dog", "It's a dog.")


def test_no_frozen_picture_is_in_the_dev_half(material: Path) -> None:
    """A picture with paraphrased questions gives no trial for tuning."""
    dev = [t.name for t in load_trials(material) if t.half == "dev" and t.protocol != "direct"]
    assert dev
    assert not any("dog" in name for name in dev)


def test_failures_and_unreadable_replies_count_as_wrong_and_unscored(material: Path) -> None:
    """What gives no verdict lowers the accuracy and is counted."""
    silent = rows_of(material, lambda task: "")
    assert silent["reading", "dev"].unscored == silent["reading", "dev"].n == 3
    assert silent["rubric", "dev"].accuracy == 0.0
    prose = rows_of(material, lambda task: "I would rather not say.")
    assert prose["direct", "dev"].unscored == 2


def test_a_judge_that_reads_prompts_gets_the_requests_composed_for_it(material: Path) -> None:
    """Each trial's request is made by the function that the caller gives."""
    seen: list[str] = []

    def compose(trial: object) -> Request:
        request = ask_bare(trial)  # type: ignore[arg-type]
        seen.append(request.probe)
        return request

    asyncio.run(measure(ScriptedJudge(credulous), material, compose=compose))
    assert len(seen) == len(load_trials(material))


@pytest.mark.parametrize("name", ["labels/reading", "paraphrases/direct", "rubric/rubrics"])
def test_a_missing_file_is_named(material: Path, name: str) -> None:
    """Material without one of its files is an error that names the file."""
    (material / f"{name}.jsonl").unlink()
    with pytest.raises(DataError, match=name):
        load_trials(material)


def test_a_broken_file_is_named(material: Path) -> None:
    """A line that is no JSON is an error that names the file."""
    (material / "labels" / "direct.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"direct\.jsonl"):
        load_trials(material)
