"""Labels, likeness, samples, balance and review: which pictures and questions stay."""

from __future__ import annotations

import itertools
import json

import msgspec
import pytest

from snellen.builders.balancing import balance
from snellen.builders.likeness import distance, without_copies
from snellen.builders.reviewing import (
    Decision,
    Task,
    assign,
    edited,
    question_task,
    settle_tasks,
)
from snellen.builders.rows import Label, PictureRow, QuestionRow, Shot
from snellen.builders.taxonomy import coverage, match, matches_in, sample_by_domain
from snellen.errors import DataError
from snellen.flows import run_by_hand
from snellen.records import Image, Reply, Request
from snellen.replies import UnreadableError

TAXONOMY = {"Sports": ("Apparel", "Ball Sports"), "Shopping": ("Apparel", "Toys"), "Books": ()}
IMAGE = Image("a.png", "0" * 64, "a.png")


def picture(name: str, *labels: tuple[str, str, float], pixels: int = 100,
            fingerprint: str = "0" * 16) -> PictureRow:  # fmt: skip
    return PictureRow(
        id=name, name=name, file=Shot(name, "0" * 64), width=pixels, height=1,
        labels=tuple(Label(*one) for one in labels), fingerprint=fingerprint,
    )  # fmt: skip


def said(**confidences: float) -> Reply:
    found = [{"label": k.replace("_", " "), "confidence": v} for k, v in confidences.items()]
    return Reply(json.dumps({"labels": found}))


def test_domains_come_first_and_then_the_subdomains_of_each() -> None:
    """One call for the domains and one for each domain kept; a sub-domain may stand under two."""
    asked: list[Request] = []

    def answer(request: Request) -> Reply:
        asked.append(request)
        if request.probe == "L1":
            return said(Sports=0.9, Shopping=0.85, Books=0.3)
        return said(Apparel=0.95)

    found = run_by_hand(match(IMAGE, TAXONOMY, role="m", least=0.8), answer)
    assert [request.probe for request in asked] == ["L1", "Sports", "Shopping"]
    assert [(one.l1, one.l2, one.confidence) for one in found.labels] == [
        ("Sports", "Apparel", 0.9), ("Shopping", "Apparel", 0.85)
    ]  # fmt: skip


def test_no_sure_label_is_a_reason() -> None:
    """Below the threshold a picture has no domain, or no sub-domain."""
    unsure = run_by_hand(match(IMAGE, TAXONOMY, role="m", least=0.8), lambda r: said(Sports=0.5))
    assert (unsure.labels, unsure.reason) == ((), "no_domain")
    half = run_by_hand(
        match(IMAGE, TAXONOMY, role="m", least=0.8),
        lambda r: said(Sports=0.9) if r.probe == "L1" else said(),
    )
    assert half.reason == "no_subdomain"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"labels": [{"label": "Opera", "confidence": 1}]}', "'Opera' is not in the list"),
        ('{"labels": [{"label": "Sports", "confidence": 3}]}', "not 0 to 1"),
        ('{"labels": ["Sports"]}', "Expected `object`"),
        ("Sports", "malformed"),
    ],
)
def test_replies_of_a_matcher_are_read_strictly(text: str, complaint: str) -> None:
    """A label outside the list, a confidence beyond 1 and another form are complaints."""
    with pytest.raises(UnreadableError, match=complaint):
        matches_in(Reply(text), tuple(TAXONOMY))


def test_a_balanced_sample_takes_the_surest_of_each_domain() -> None:
    """At most two a domain, by confidence; a picture of two domains counts under both."""
    pictures = [
        picture("a", ("Sports", "Apparel", 0.95)), picture("b", ("Sports", "Apparel", 0.85)),
        picture("c", ("Sports", "Apparel", 0.9), ("Shopping", "Apparel", 0.9)),
        picture("d", ("Sports", "Ball Sports", 0.8)),
    ]  # fmt: skip
    kept, gone = sample_by_domain(pictures, 2, seed=0)
    assert [one.id for one in kept] == ["a", "c"]
    assert {one.id: one.reason for one in gone} == {
        "b": "over_domain_cap", "d": "over_domain_cap"
    }  # fmt: skip
    assert sample_by_domain(pictures, 0, seed=0) == (tuple(pictures), ())


def test_thin_and_empty_labels_are_known() -> None:
    """The report names domains with few pictures, and pairs without any."""
    found = coverage([picture("a", ("Sports", "Apparel", 1.0))], TAXONOMY)
    assert found.thin(2) == (("Sports", 1), ("Shopping", 0), ("Books", 0))
    assert ("Shopping", "Apparel") in found.empty_pairs
    assert ("Sports", "Apparel") not in found.empty_pairs


def test_likeness_is_cut_into_pairs_by_a_rule_without_an_order() -> None:
    """a~b, b~c, not a~c: the largest is kept, then what is like no kept one, in every order."""
    chain = [
        picture("a", fingerprint=f"{0b111:016x}", pixels=90),
        picture("b", fingerprint=f"{0b000:016x}", pixels=80),
        picture("c", fingerprint=f"{0b111000:016x}", pixels=70),
    ]
    results = set()
    for order in itertools.permutations(chain):
        kept, gone = without_copies(order, 3)
        assert [one.detail["partner"] for one in gone] == ["a"]
        results.add(frozenset(one.id for one in kept))
    assert results == {frozenset("ac")}
    assert len(without_copies(chain, -1)[0]) == 3
    assert distance("f" * 16, "0" * 16) == 64


def test_a_subdomain_keeps_its_best_pictures() -> None:
    """At most one a pair: by fit; a picture of two pairs needs room under both."""
    pictures = [
        picture("a", ("Sports", "Apparel", 0.9)), picture("b", ("Sports", "Apparel", 0.95)),
        picture("c", ("Shopping", "Toys", 0.8), ("Sports", "Apparel", 0.99)), picture("d"),
    ]  # fmt: skip
    ranked = {one.image_id: one for one in balance(pictures, 1, words={}, seed=0)}
    assert [name for name, one in ranked.items() if one.proposed] == ["c", "d"]
    people = balance(pictures, 1, words={"a": True, "c": False}, seed=0)
    assert [one.image_id for one in people if one.proposed] == ["a", "d"]
    assert all(one.proposed for one in balance(pictures, 0, words={}, seed=0))


def question(name: str) -> QuestionRow:
    return QuestionRow(
        id=name, image_id="i", region_id="r", category="Count", question=f"How many at {name}?",
        options=("1", "2", "3", "4"), answer="A", generator="g", index=1,
    )  # fmt: skip


def tasks(n: int) -> list[Task]:
    return [question_task(question(f"q{k:03d}")) for k in range(n)]


def test_tasks_are_divided_evenly_and_stay_with_their_annotator() -> None:
    """Three annotators share evenly; new tasks go to who has least, known ones stay."""
    names = ("ann", "bob", "cy")
    first = assign(tasks(9), [], names)
    assert [sum(t.annotator == name for t in first) for name in names] == [3, 3, 3]
    more = assign(tasks(12), first, names)
    assert more[:9] == first
    assert [sum(t.annotator == name for t in more) for name in names] == [4, 4, 4]
    without = assign(tasks(9), first, ("ann", "bob"))
    assert [sum(t.annotator == name for t in without) for name in ("ann", "bob")] == [5, 4] or [
        sum(t.annotator == name for t in without) for name in ("ann", "bob")
    ] == [4, 5]


def test_the_adjudicator_sees_all_edits_and_a_twentieth_of_the_accepted() -> None:
    """5% of accepts by the seed, every edit, no deletion; then the adjudicator's word is final."""
    todo = tasks(2000)
    decisions = [Decision(one.id, "ann", "accept") for one in todo[:1990]]
    decisions += [Decision(one.id, "ann", "edit", after={"answer": "B"}) for one in todo[1990:1995]]
    decisions += [Decision(one.id, "ann", "delete") for one in todo[1995:]]
    settled = settle_tasks(todo, decisions, adjudicator="judy", share=0.05, seed=0)
    due = [one for one in settled if one.needs_adjudicator]
    drawn = [one for one in due if one.first and one.first.decision == "accept"]
    assert 70 < len(drawn) < 130
    assert len(due) - len(drawn) == 5
    decisions.append(Decision(due[0].task.id, "judy", "delete"))
    again = settle_tasks(todo, decisions, adjudicator="judy", share=0.05, seed=0)
    one = next(s for s in again if s.task.id == due[0].task.id)
    assert (one.needs_adjudicator, one.deciding and one.deciding.decision) == (False, "delete")


def test_an_adjudicators_accept_keeps_the_edit() -> None:
    """To accept an edited question is to accept the edit; an edit of one's own replaces it."""
    [task] = tasks(1)
    edit = Decision(task.id, "ann", "edit", after={"answer": "B"})
    agree = settle_tasks([task], [edit, Decision(task.id, "judy", "accept")],
                         adjudicator="judy", share=0, seed=0)  # fmt: skip
    assert agree[0].after == {"answer": "B"}
    own = Decision(task.id, "judy", "edit", after={"answer": "C"})
    assert settle_tasks([task], [edit, own], adjudicator="judy", share=0, seed=0)[0].after == {
        "answer": "C"
    }


def test_a_decision_on_another_text_does_not_count() -> None:
    """The digest of what was seen must be that of the task; without one it counts for any."""
    [task] = tasks(1)
    old = Decision(task.id, "ann", "delete", digest="other")
    assert settle_tasks([task], [old], adjudicator="j", share=0, seed=0)[0].first is None
    free = msgspec.structs.replace(old, digest="")
    assert settle_tasks([task], [free], adjudicator="j", share=0, seed=0)[0].first == free


@pytest.mark.parametrize(
    ("after", "complaint"),
    [
        ({"generator": "me"}, "changes `generator`"),
        ({"options": ["1", "1", "2", "3"]}, "four different options"),
        ({"answer": "E"}, "answer or a category"),
        ({"question": " "}, "leaves no question"),
    ],
)
def test_an_edit_that_leaves_no_question_is_refused(
    after: dict[str, object], complaint: str
) -> None:
    """An edit may change four fields, and must leave a whole question."""
    with pytest.raises(DataError, match=complaint):
        edited(question("q"), after)
    assert edited(question("q"), {"answer": "D"}).answer == "D"
