"""Two groups of booleans, read from a judge's assessment."""

from __future__ import annotations

import pytest

from snellen.replies import parse_assessment

WHOLE = (
    "<Assessment>\n<GroupA>\n<Result>true</Result>\n<Result>false</Result>\n</GroupA>\n"
    "<GroupB>\n<Result>true</Result>\n</GroupB>\n</Assessment>"
)


def tags(**groups: tuple[tuple[str, str], ...]) -> str:
    """An assessment whose results carry ids."""
    return "".join(
        f"<Group{name}>"
        + "".join(f'<Result id="{i}">{value}</Result>' for i, value in results)
        + f"</Group{name}>"
        for name, results in groups.items()
    )


CLOSED_A = WHOLE[: WHOLE.index("<GroupB>")]


def test_the_protocols_form_is_marked() -> None:
    """Tags as prescribed, with one result a rubric, in order."""
    a, b = parse_assessment(WHOLE, 2, 1)
    assert (a.value, a.how) == ((True, False), "marked")
    assert (b.value, b.how) == ((True,), "marked")


@pytest.mark.parametrize(
    "reply",
    [
        WHOLE.upper(),
        WHOLE.replace("</Result>", ""),
        WHOLE.replace("<Result>", '<Result type="bool">'),
        WHOLE.replace("Group", "Group_"),
        WHOLE.replace("<Assessment>", "").replace("</Assessment>", ""),
        WHOLE.replace("true", "yes").replace("false", "no"),
        WHOLE.replace("true", "1. true").replace("false", "2. false"),
        WHOLE.replace(">false", ">**false**").replace(">true", ">true."),
        WHOLE.replace(">false<", "><Reason>silent</Reason><Verdict>false</Verdict><"),
        '{"GroupA": [true, false], "GroupB": [true]}',
        '{"Assessment": {"GroupA": {"Result": ["true", "false"]}, "GroupB": {"Result": ["true"]}}}',
        '{"group_a": [{"id": 2, "pass": false}, {"id": 1, "pass": true}], "group_b": [1]}',
        '{"A1": true, "A2": false, "B1": true}',
        "[true, false, true]",
        '[{"id": 3, "pass": true}, {"id": 2, "pass": false}, {"id": 1, "pass": true}]',
        '[{"id": "B1", "pass": true}, {"id": "A2", "pass": false}, {"id": "A1", "pass": true}]',
        "<Assessment><Result>true</Result><Result>false</Result><Result>true</Result></Assessment>",
        tags(A=(("A2", "false"), ("A1", "true")), B=(("B1", "true"),)),
        tags(A=(("1", "false"), ("0", "true")), B=(("0", "true"),)),
        tags(A=(("1", "true"), ("2", "false")), B=(("3", "true"),)),
        WHOLE.replace("true", "1.0").replace("false", "0.0"),
        WHOLE.replace("true", "2. false", 1).replace(">false", ">1. true"),
        "**Group A:**\n1. True\n1. False\n\n**Group B:**\n1. True",
        "Group A:\n2. False\n1. True\nGroup B:\n1. True",
        "### Group A\n- True\n- False\n\n### Group B\n- True",
        "Group A (Critical): true, false\nGroup B (Granular): true",
    ],
)
def test_other_dress_is_recovered(reply: str) -> None:
    """Case, attributes, entities, missing tags, JSON and headings do not hide the results."""
    a, b = parse_assessment(reply, 2, 1)
    assert (a.value, b.value) == ((True, False), (True,))
    assert a.how == "recovered"


@pytest.mark.parametrize(
    "dress", ["```xml\n{}\n```", "My assessment:\n{}\nDone.", "<think>hm</think>{}"]
)
def test_what_stands_around_it_does_not_matter(dress: str) -> None:
    """Fences, prose and thoughts around the element are left out."""
    a, b = parse_assessment(dress.format(WHOLE), 2, 1)
    assert (a.value, b.value) == ((True, False), (True,))


@pytest.mark.parametrize(
    ("reply", "finish_reason", "reasons"),
    [
        ("", "stop", ("empty", "empty")),
        ("", "length", ("truncated", "truncated")),
        ("<think>true</think>", "stop", ("thought_only", "thought_only")),
        ("I'm sorry, I can't.", "stop", ("refusal", "refusal")),
        ("All hold.", "stop", ("no_verdict", "no_verdict")),
        (WHOLE.replace("false", ""), "stop", ("unreadable_item", None)),
        (WHOLE.replace("false", "0.5"), "stop", ("unreadable_item", None)),
        (WHOLE.replace("false", "false (no jug)"), "stop", ("unreadable_item", None)),
        (WHOLE.replace("<Result>false</Result>\n", ""), "stop", ("wrong_count", None)),
        (CLOSED_A, "stop", (None, "missing_group")),
        (CLOSED_A, "length", (None, "truncated")),
        (CLOSED_A + "<GroupB>\n<Result>tr", "length", (None, "truncated")),
        (WHOLE + WHOLE.replace("false", "true"), "stop", ("conflict", None)),
        (WHOLE + WHOLE.replace("<Result>false</Result>", ""), "stop", ("wrong_count", None)),
        (
            '{"GroupA": [true, false], "GroupA": [true, true], "GroupB": [true]}',
            "stop",
            ("conflict", None),
        ),
        ("[true, false]", "stop", ("wrong_count", "wrong_count")),
        (WHOLE.replace("<Result>", '<Result id="1">'), "stop", ("conflict", None)),
        (
            tags(A=(("1", "true"), ("3", "false")), B=(("1", "true"),)),
            "stop",
            ("wrong_ids", None),
        ),
        (
            '[{"id": 1, "pass": true}, {"id": 2, "pass": false}, {"id": 4, "pass": true}]',
            "stop",
            ("wrong_count", "wrong_count"),
        ),
    ],
)
def test_a_group_is_all_or_nothing(
    reply: str, finish_reason: str, reasons: tuple[str | None, str | None]
) -> None:
    """A group with a fault has a reason and no value; the other group is not touched by it."""
    parsed = parse_assessment(reply, 2, 1, finish_reason=finish_reason)
    assert tuple(p.reason for p in parsed) == reasons
    assert [p.value is None for p in parsed] == [r is not None for r in reasons]


def test_escaped_tags_are_tags() -> None:
    """Entities for the brackets say the same."""
    escaped = WHOLE.replace("<", "&lt;").replace(">", "&gt;")
    assert parse_assessment(escaped, 2, 1)[0].value == (True, False)


def test_the_same_assessment_twice_is_one() -> None:
    """A repetition that says the same is no conflict."""
    assert parse_assessment(WHOLE + "\n" + WHOLE, 2, 1)[0].value == (True, False)


def test_a_template_before_the_assessment_does_not_count() -> None:
    """An earlier version that cannot be read yields to the last one."""
    template = WHOLE.replace("true", "true|false")
    assert parse_assessment(template + "\n" + WHOLE, 2, 1)[0].value == (True, False)


@pytest.mark.parametrize("empty", ["<GroupB></GroupB>", "<GroupB/>", "<GroupB>\n</GroupB>", ""])
def test_a_group_without_rubrics_has_no_results(empty: str) -> None:
    """Nothing asked, nothing missing."""
    a, b = parse_assessment("<GroupA><Result>true</Result></GroupA>" + empty, 1, 0)
    assert (a.value, b.value) == ((True,), ())


def test_a_conflict_keeps_what_other_ids_say() -> None:
    """Of a group with a conflict, the rubrics that ids tell apart keep their results, in order."""
    reply = tags(A=(("A2", "true"), ("A1", "false"), ("A2", "false")), B=(("B1", "true"),))
    a, b = parse_assessment(reply, 2, 1)
    assert (a.value, a.reason, a.parts) == (None, "conflict", (False, None))
    assert (b.value, b.parts) == ((True,), ())


def test_a_conflict_without_ids_for_all_keeps_nothing() -> None:
    """Where ids do not name every rubric once, nothing of the group can be told apart."""
    reply = tags(A=(("A1", "true"), ("A1", "false"), ("A3", "true")), B=())
    a, _ = parse_assessment(reply, 3, 0)
    assert (a.reason, a.parts) == ("conflict", ())


@pytest.mark.parametrize(
    "reply",
    [
        "[Group A: Critical Rubrics]\ntrue\nfalse\n[Group B: Granular Rubrics]\ntrue",
        "### Group A: Critical Rubrics\n1. true\n2. false\n### Group B: Granular Rubrics\n1. true",
        "Group A: [true, false]\nGroup B: [true]",
        "Group A:\n```json\n[true, false]\n```\nGroup B:\n```json\n[true]\n```",
        "B1: true\nA2: false\nA1: true",
        "<GroupA>true\nfalse</GroupA><GroupB>true</GroupB>",
        "<GroupA><Result2>false</Result2><Result1>true</Result1></GroupA>"
        "<GroupB><Result1>true</Result1></GroupB>",
        "<Result>true</Result>\n<Result>false</Result>\n<Result>true</Result>",
        "<analysis>" + WHOLE.replace("false", "true") + "</analysis>" + WHOLE,
    ],
)
def test_more_forms_of_two_groups(reply: str) -> None:
    """The prompt's own headings, named lines and bare groups say which result is whose."""
    assert [p.value for p in parse_assessment(reply, 2, 1)] == [(True, False), (True,)]


def test_a_number_used_twice_leaves_another_out() -> None:
    """Numbers that name one statement twice do not tell where the others stand."""
    results = "<Result>1. false</Result><Result>2. true</Result><Result>2. true</Result>"
    a, b = parse_assessment(f"<GroupA>{results}</GroupA><GroupB></GroupB>", 3, 0)
    assert (a.reason, b.value) == ("wrong_count", ())
    same = results.replace("2.", "1.")
    assert parse_assessment(f"<GroupA>{same}</GroupA>", 3, 0)[0].value == (False, True, True)


@pytest.mark.parametrize(
    "reply",
    ["Group A:\ntrue\nfalse\nGroup B:\nfalse", "A1: true\nA2: false\nB1: false"],
)
def test_the_last_results_of_a_cut_list_are_not_whole(reply: str) -> None:
    """A list that nothing closes may have been cut inside its last line."""
    a, b = parse_assessment(reply, 2, 1, finish_reason="length")
    assert (a.value, b.reason) == ((True, False), "truncated")
