"""Question writers: what is parsed, what is refused by code, and where right letters stand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.worlds.capprobe_world import metadata

from snellen.builders.options import QuestionOptions
from snellen.builders.questioning import (
    Candidate,
    Subject,
    checked,
    faults,
    generators_for,
    questions_in,
    tidied,
    write_questions,
)
from snellen.builders.rows import DescribedRow, PictureRow, RegionRow, Shot
from snellen.flows import run_by_hand
from snellen.records import CallFailure, Reply, Request
from snellen.replies import UnreadableError

GOOD: dict[str, Any] = {
    "category": "B. Attributes",
    "question": "What colour is the collar of the spotted bulldog at the left edge?",
    "options": ["A. Red", "B. Blue", "C. Green", "D. Black"],
    "correct_answer": "B",
}


def dog() -> dict[str, Any]:
    """The metadata of a bulldog."""
    found = metadata("brown")
    found["identity_and_taxonomy"] = {
        "segment_nature": "thing", "broad_category": "Dog", "specific_type": "English Bulldog",
        "primary_function_or_role": None,
    }  # fmt: skip
    found["detailed_appearance"]["key_identifying_feature"] = (
        "A spotted bulldog with a blue collar beside a red bin."
    )
    found["detailed_appearance"]["overall_color_palette"] = ["brown", "white"]
    found["detailed_appearance"]["text_and_markings"] = [
        {"content": "REX", "type": "tag", "placement": "collar", "is_partially_obscured": False}
    ]
    found["spatial_and_localization"]["global_position"] = "left foreground"
    return found


def subject() -> Subject:
    shot = Shot("a.png", "0" * 64)
    return Subject(
        PictureRow(id="p", name="a.png", file=shot, width=10, height=10),
        RegionRow(
            id="p.r01", image_id="p", index=1, bbox=(0, 0, 10, 10), mask={}, area=0.1, view=shot
        ),
        DescribedRow(id="p.r01", image_id="p", nature="thing", metadata=dog()),
    )


def reply(*entries: dict[str, Any], name: str = "p.r01") -> str:
    return json.dumps({"object_id": name, "qas": list(entries)})


def written(text: str) -> Any:
    """What becomes of one reply, whatever is asked."""
    flow = write_questions(subject(), role="w", generator="g", options=QuestionOptions(), seed=0)
    return run_by_hand(flow, lambda request: Reply(text))


def test_letters_before_options_and_categories_are_taken_off() -> None:
    """`A. Red` is the option Red, and `B. Attributes` the category Attributes."""
    [row] = written(reply(GOOD)).rows
    assert row.category == "Attributes"
    assert sorted(row.options) == ["Black", "Blue", "Green", "Red"]
    assert row.right == "Blue"
    assert (row.id, row.region_id, row.generator) == ("p.r01.g.01", "p.r01", "g")


def test_an_option_that_begins_with_a_letter_of_its_own_is_left_alone() -> None:
    """Only four options that begin with A to D in order lose their letters."""
    options = ["A. Smith", "Brown", "Green", "Black"]
    assert tidied(Candidate("Count", "?", options, "A")).options == options


BAD = {
    "options_not_four": {"options": ["Red", "Blue", "Green"]},
    "empty_option": {"options": ["Red", "Blue", " ", "Black"]},
    "answer_no_letter": {"correct_answer": "Blue"},
    "two_right_options": {"options": ["Red", "Blue", "blue.", "Black"]},
    "options_alike": {"options": ["Red", "Blue", "red", "Black"]},
    "unknown_category": {"category": "Mood"},
    "jargon": {"question": "What colour is the collar in the masked region at the left?"},
    "combined_options": {"options": ["Red", "Blue", "both A and B", "Black"]},
    "bare_reference": {"question": "What colour is the dog?"},
    "no_location": {"question": "What colour is worn?"},
    "empty": {"question": " "},
}


@pytest.mark.parametrize("reason", sorted(BAD))
def test_each_fault_has_its_reason_and_the_question_is_kept_for_people(reason: str) -> None:
    """A question with a fault is dropped with its reason and its whole text."""
    made = written(reply({**GOOD, **BAD[reason]}, GOOD))
    assert len(made.rows) == 1
    [gone] = made.dropped
    assert gone.reason == reason
    assert gone.detail["options"]


@pytest.mark.parametrize(
    "text",
    ["neither A nor B", "All of the above", "none of the above", "Both a and b", "A and C only"],
)
def test_options_that_refer_to_options_are_found(text: str) -> None:
    """An option may not stand for others: their order changes."""
    options = ["Red", "Blue", text, "Black"]
    found = list(faults(Candidate("Attributes", GOOD["question"], options, "B"), dog()))
    assert found == ["combined_options"]


@pytest.mark.parametrize("text", ["vitamins A and B", "Both arms", "a and b sides of the tape"])
def test_options_that_only_sound_so_are_not(text: str) -> None:
    """Words that merely hold letters or `both` are fine."""
    options = ["Red", "Blue", text, "Black"]
    assert not list(faults(Candidate("Attributes", GOOD["question"], options, "B"), dog()))


@pytest.mark.parametrize(
    ("category", "options"),
    [
        ("Recognition", ["Poodle", "Pug", "English Bulldog", "Beagle"]),
        ("Attributes", ["brown", "white", "green", "pink"]),
        ("Spatial Relationship & Position", ["right", "left foreground", "centre", "top"]),
    ],
)
def test_a_distractor_that_the_metadata_makes_true_is_found(
    category: str, options: list[str]
) -> None:
    """The right option is the first; another one is true as well."""
    one = Candidate(category, GOOD["question"], options, "A")
    assert "true_distractor" in list(faults(one, dog()))


def test_a_colour_of_the_palette_may_be_wrong_for_a_part() -> None:
    """Of a named part, another colour of the whole is a fair distractor."""
    found = dog()
    found["detailed_appearance"]["sub_components_or_elements"] = [
        {"element_name": "collar", "description": "blue", "quantity": 1}
    ]
    one = Candidate("Attributes", GOOD["question"], ["brown", "white", "pink", "green"], "A")
    assert not list(faults(one, found))


def test_a_question_is_located_by_two_words_of_its_feature() -> None:
    """Without a word of place, two telling words will do, and one will not."""
    options = ["a", "b", "c", "d"]
    two = Candidate(
        "Attributes", "What hangs from the collar of the spotted bulldog?", options, "A"
    )
    one = Candidate("Attributes", "What hangs from the spotted dog?", options, "A")
    assert not list(faults(two, dog()))
    assert list(faults(one, dog())) == ["no_location"]


def test_repeated_questions_are_dropped() -> None:
    """The second of two questions with one text is dropped."""
    made = written(reply(GOOD, {**GOOD, "options": ["A. Pink", "B. Blue", "C. Tan", "D. Teal"]}))
    assert [gone.reason for gone in made.dropped] == ["repeated"]


def test_one_malformed_entry_does_not_cost_the_others() -> None:
    """An entry of another form is dropped, with what is wrong with it."""
    made = written(reply(GOOD, {"category": "Count", "question": "How many?"}))
    assert len(made.rows) == 1
    assert made.dropped[0].reason == "malformed"
    assert "options" in made.dropped[0].detail["error"]


@pytest.mark.parametrize(
    "text",
    ["", "Sorry.", '{"qas": []}', '{"questions": 1}', '{"qas": [{"question"', "[1]", "[] []"],
)
def test_replies_without_a_question_are_unreadable(text: str) -> None:
    """Blank, prose, cut off, of another form, or two values: asked again, then rejected."""
    with pytest.raises(UnreadableError):
        questions_in(Reply(text))
    made = written(text)
    assert [gone.reason for gone in made.rejected] == ["unreadable"]
    assert made.counts == {"asked_again": 2}
    assert not made.failure


def test_a_reply_cut_by_its_limit_is_asked_again() -> None:
    """Half an object is asked for again, with what was wrong at the end."""
    asked: list[Request] = []

    def answer(request: Request) -> Reply:
        asked.append(request)
        whole = reply(GOOD)
        return Reply(whole[:90], finish_reason="length") if len(asked) < 2 else Reply(whole)

    flow = write_questions(subject(), role="w", generator="g", options=QuestionOptions(), seed=0)
    assert len(run_by_hand(flow, answer).rows) == 1
    assert "could not be used" in str(asked[1].messages[-1].parts[-1])


def test_a_failed_call_is_no_result() -> None:
    """A unit whose call failed says so, so that it is asked again."""
    flow = write_questions(subject(), role="w", generator="g", options=QuestionOptions(), seed=0)
    made = run_by_hand(flow, lambda request: CallFailure("timeout", "too late"))
    assert made.failure == "timeout"
    assert made.rejected[0].reason == "call_timeout"


def test_right_letters_are_even_and_seeded() -> None:
    """400 questions with the answer under B: each letter is right a hundred times."""
    entries = [
        {**GOOD, "question": f"What colour is the collar number {k} of the dog at the left?"}
        for k in range(400)
    ]
    first = checked(questions_in(Reply(reply(*entries))), subject(), generator="g", seed=1)
    letters = [sum(row.answer == letter for row in first.rows) for letter in "ABCD"]
    assert letters == [100, 100, 100, 100]
    assert all(row.right == "Blue" for row in first.rows)
    again = checked(questions_in(Reply(reply(*entries))), subject(), generator="g", seed=1)
    other = checked(questions_in(Reply(reply(*entries))), subject(), generator="g", seed=2)
    assert first.rows == again.rows
    assert first.rows != other.rows


def test_regions_are_divided_evenly_over_generators() -> None:
    """Which generator a region has depends on its id and the seed alone."""
    names = [generators_for(f"r{k}", ["a", "b"], split=True, seed=0)[0] for k in range(1000)]
    assert 440 < names.count("a") < 560
    assert generators_for("r", ["a", "b"], split=False, seed=0) == ["a", "b"]
