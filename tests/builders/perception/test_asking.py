"""Atomic questions as models write them: what is taken, and what is asked again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from snellen.builders.perception.asking import (
    Author,
    Draft,
    decompose,
    fault_of,
    reworded_in,
    with_marks,
    write,
)
from snellen.builders.perception.options import PerceptionOptions
from snellen.builders.perception.rows import AttributedRow, Attribution, FailureRow
from snellen.builders.perception.taxonomy import DEFAULT
from snellen.builders.rows import Shot
from snellen.flows import run_by_hand
from snellen.records import Reply, Request
from snellen.replies.typed import UnreadableError

FILES = (Shot("a.png", "a" * 64), Shot("b.png", "b" * 64))
FAILURE = FailureRow(
    id="f", files=FILES, question="Q?", reference="B", reply="A", model="m", source_bmk="bench",
    source_idx=7,
)  # fmt: skip
ROW = AttributedRow(
    id="f", type="ocr_error", is_perceptual=True, source_bmk="bench", source_idx=7, model="m",
    attributions=(Attribution("a", ("s",), 1, "A digit was misread.", "ocr_error"),),
    decided_by="agreed",
)  # fmt: skip
AUTHOR = Author("decomposer", "deco", PerceptionOptions(), DEFAULT)


def draft(problem: str = "Which digit? One digit.", answer: Any = "7", **more: Any) -> Any:
    return {"problem": problem, "answer": answer, "error_category": "ocr_error", **more}


def replies(*texts: str) -> Any:
    left = iter(texts)
    asked: list[Request] = []

    def answer(request: Request) -> Reply:
        asked.append(request)
        return Reply(next(left))

    return answer, asked


def test_a_failure_becomes_questions_on_the_same_pictures() -> None:
    """Numbers are taken as texts, marks are added, the source is kept, a twin is dropped."""
    first = draft(answer=7, hint=None)
    second = draft("Is <|image_2|> larger at [x, y]?", "[3, 4]", hint="Pixels from the top left.")
    answer, asked = replies(json.dumps({"questions": [first, second, first]}))
    made = run_by_hand(decompose(FAILURE, ROW, AUTHOR), answer)
    one, two = made.rows
    assert one.problem == "<|image_1|><|image_2|>Which digit? One digit."
    assert two.problem == "<|image_1|>Is <|image_2|> larger at [x, y]?"
    assert (one.answer, one.hint, two.hint) == ("7", "", "Pixels from the top left.")
    assert (one.source_bmk, one.source_idx, one.origin) == ("bench", 7, "decomposed")
    assert (one.id, one.made_from, one.writer) == ("f.d1", ("f",), "deco")
    assert [gone.reason for gone in made.dropped] == ["duplicate"]
    text = asked[0].messages[0].parts[-1]
    assert "A digit was misread." in text
    assert "`ocr_error`: Written characters" in text


def test_what_is_not_in_the_form_is_asked_again_with_the_reason() -> None:
    """Four questions where three are the most, then none, then one."""
    answer, asked = replies(
        json.dumps({"questions": [draft()] * 4}),
        json.dumps({"questions": []}),
        json.dumps({"questions": [draft()]}),
    )
    made = run_by_hand(decompose(FAILURE, ROW, AUTHOR), answer)
    assert len(made.rows) == 1
    assert made.counts == {"asked_again": 2}
    assert "expected 1 to 3 questions, found 4" in str(asked[1].messages[-1].parts[-1])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (draft(problem=" "), "must not be empty"),
        (draft(answer=""), "must not be empty"),
        (draft(answer="one two three four five six seven"), "more than 6 words"),
        (draft(answer="red or blue"), "alternatives"),
        (draft(problem="See <|image_3|>."), "there are 2"),
        (draft(error_category="ocr_eror"), "did you mean"),
        (draft(answer="(10, 20)"), "`hint` does not state"),
        (draft(problem="x" * 1001), "at most 1000"),
    ],
)
def test_faults_of_a_question(bad: dict[str, Any], message: str) -> None:
    """Each is said in words for its writer."""
    given = Draft(bad["problem"], bad["answer"], bad["error_category"])
    found = fault_of(given, n_pictures=2, labels=["ocr_error"], max_words=6)
    assert message in found


def test_new_questions_name_no_source() -> None:
    """A writer may decline; the capability is the one that was asked for."""
    capability = DEFAULT[1]
    good = {**draft("How many cups? A number.", 3), "error_category": capability.id}
    answer, _ = replies(json.dumps({"questions": [good]}))
    [row] = run_by_hand(write(FILES[:1], "u", capability, AUTHOR), answer).rows
    assert (row.source_bmk, row.source_idx, row.origin) == ("NA", None, "new")
    assert row.error_category == "visual_counting_error"
    answer, _ = replies(json.dumps({"questions": []}))
    made = run_by_hand(write(FILES[:1], "u", capability, AUTHOR), answer)
    assert [one.reason for one in made.rejected] == ["unsuited"]
    other = json.dumps({"questions": [draft()]})
    made = run_by_hand(write(FILES[:1], "u", capability, AUTHOR), replies(*[other] * 3)[0])
    assert [one.reason for one in made.rejected] == ["unreadable"]


def test_a_paraphrase_keeps_the_pictures_and_changes_the_words() -> None:
    """Else it tests nothing."""
    problem = "<|image_1|>Which digit?"
    good = '{"problem": "Name the digit in <|image_1|>."}'
    assert reworded_in(Reply(good), problem) == "Name the digit in <|image_1|>."
    with pytest.raises(UnreadableError, match="marks"):
        reworded_in(Reply('{"problem": "Name the digit."}'), problem)
    with pytest.raises(UnreadableError, match="same"):
        reworded_in(Reply('{"problem": "<|image_1|>which  digit?"}'), problem)


def test_marks_are_added_ahead() -> None:
    """A question that names its pictures stays as it is."""
    assert with_marks("Which? <|image_1|>", 1) == "Which? <|image_1|>"
    assert with_marks("Which?", 2) == "<|image_1|><|image_2|>Which?"
