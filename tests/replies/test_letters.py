"""Letters, read from readers' replies."""

from __future__ import annotations

import pytest

from snellen.replies import UNCERTAIN, parse_letter, parse_letters

OPTIONS = ("a brass lamp", "two candles", "no light", "a lantern")


@pytest.mark.parametrize("letter", "ABCDE")
def test_a_lone_capital_letter_is_marked(letter: str) -> None:
    """The protocol's own form, with white space around it or thoughts before it."""
    for reply in (letter, f"\n {letter} \n", f"<think>A or B</think>{letter}"):
        parsed = parse_letter(reply, OPTIONS)
        assert (parsed.value, parsed.how) == (letter, "marked")


def test_a_lone_letter_counts_even_if_the_reply_was_cut() -> None:
    """With a limit of one token every reply ends by its length."""
    assert parse_letter("A", OPTIONS, finish_reason="length").value == "A"


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B.", "B"),
        ("b", "B"),
        ("[[B]]", "B"),
        ("B) two candles", "B"),
        ("B – two candles", "B"),
        ("B two candles", "B"),
        ("B\n\nTwo wicks are named.", "B"),
        ("E (Not mentioned)", "E"),
        ("Two wicks are named.\n\nB. two candles", "B"),
        ("Two wicks are named.\n\nB", "B"),
        ("Answer:\nB", "B"),
        ("**Answer:** B", "B"),
        ("Answer: two candles", "B"),
        ("The correct option is (B).", "B"),
        ("Option B", "B"),
        ("I choose B", "B"),
        ('{"answer": "two candles"}', "B"),
        ('{"letter": "B", "why": "A is wrong"}', "B"),
        ("<answer>B</answer>", "B"),
        ("选项B", "B"),
        ("正确答案是：B", "B"),
        ("A brass lamp", "A"),
        ("answer: a", "A"),
        ("E. Not mentioned", "E"),
        ("Not mentioned", "E"),
        ("cannot be determined.", "E"),
        ("E. Cannot be determined", "E"),
        (UNCERTAIN.lower() + ".", "E"),
        ("not mentioned/cannot be determined", "E"),
        ("The answer is E: Not mentioned / Cannot be determined.", "E"),
        ("- A: no\n- B: yes\n- C: no\n\nB", "B"),
        ("One by one.\nA. no\nB. yes\nC. no\n\n(B)", "B"),
        ("The caption shows two wicks, so the answer is B.", "B"),
    ],
)
def test_other_forms_without_doubt_are_recovered(reply: str, letter: str) -> None:
    """A choice in another form counts, and is marked as recovered."""
    parsed = parse_letter(reply, OPTIONS)
    assert (parsed.value, parsed.how, parsed.reason) == (letter, "recovered", None)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        ("<think>B</think>", "thought_only"),
        ("F", "not_an_option"),
        ("(G)", "not_an_option"),
        ("AB", "several_letters"),
        ("B or C", "several_letters"),
        ("A\nB\nC\nD", "several_letters"),
        ("B. two candles or C. no light", "no_verdict"),
        ('{"answer": ["A", "C"]}', "several_letters"),
        ("B: no light", "contradiction"),
        ("E: no", "no_verdict"),
        ("B. Not sure", "hedged"),
        ("B. A is possible too", "hedged"),
        ("B. Actually, C.", "no_verdict"),
        ('{"answer": "A", "letter": "B"}', "contradiction"),
        ("The answer is not B", "no_verdict"),
        ("Answer: B?", "hedged"),
        ("Probably B", "hedged"),
        ("Answer: none", "no_verdict"),
        ("A lantern and a lamp", "no_verdict"),
        ("I see two of them", "no_verdict"),
        ("e.g. the lamp", "no_verdict"),
        ("A.M. light", "no_verdict"),
        ("2", "no_verdict"),
        ("I'm sorry, but there is no caption.", "refusal"),
    ],
)
def test_what_cannot_be_read_has_a_reason(reply: str, reason: str) -> None:
    """Several letters, contradiction, doubt and prose choose nothing, each for its reason."""
    parsed = parse_letter(reply, OPTIONS)
    assert (parsed.value, parsed.how, parsed.reason) == (None, "", reason)


@pytest.mark.parametrize(
    ("options", "reply", "letter"),
    [
        (("1", "2", "3", "4"), "2", "B"),
        (("5", "-5", "0.5", ".5"), "-5", "B"),
        (("5", "-5", "0.5", ".5"), ".5", "D"),
        (("$5", "5", "5%", "50"), "5%", "C"),
        (("$5", "5", "5%", "50"), "$5", "A"),
        (("B", "A", "D", "C"), "B", "B"),
        (("B", "A", "D", "C"), "Answer: B", "B"),
        (("yes", "no", "blue", "red"), "No.", "B"),
        (("yes", "no", "blue", "red"), "A. No", None),
        (("ja", "ja", "nein", "kaum"), "ja", None),
        (("ja", "ja", "nein", "kaum"), "B. ja", "B"),
        (("car", "bike", "dog", "street"), "A car", "A"),
        (("car", "bike", "dog", "street"), "A dog", None),
        (("..", "?", "-", "!"), "?", "B"),
    ],
)
def test_short_and_odd_options(options: tuple[str, ...], reply: str, letter: str | None) -> None:
    """Options that are numbers, letters, signs or alike are never mixed up."""
    assert parse_letter(reply, options).value == letter


def test_without_an_uncertain_option_its_letter_is_none() -> None:
    """The forced form has as many letters as options."""
    assert parse_letter("E", OPTIONS, uncertain=None).reason == "not_an_option"
    assert parse_letter("D", OPTIONS, uncertain=None).value == "D"


@pytest.mark.parametrize(
    "reply",
    [
        "1. B\n2. E\n3. a",
        "Q1: B\nQ2: E\nQ3: A",
        "1) **B**\n2) E. Not mentioned\n\n3) A",
        "B\nE\nA",
        "B, E, A",
        '["B", "E", "A"]',
        '{"1": "B", "2": "E", "3": "A"}',
        '```json\n{"answers": ["B", "E", "A"]}\n```',
        '[{"id": 2, "answer": "E"}, {"id": 1, "answer": "B"}, {"id": 3, "answer": "A"}]',
        "2. E\n1. B\n3. A",
        "0. B\n1. E\n2. A",
        "1) B 2) E 3) A",
        "1. B, 2. E, 3. A",
    ],
)
def test_several_questions_in_one_reply(reply: str) -> None:
    """Numbered lines, bare lines and JSON give one letter a question."""
    assert [p.value for p in parse_letters(reply, 3)] == ["B", "E", "A"]


@pytest.mark.parametrize(
    "reply", ["1. B\n2. E", "1. B\n2. E\n3. A\n4. C", "1. B\n2. E\n4. A", "B", "[]"]
)
def test_another_count_reads_nothing(reply: str) -> None:
    """With a line missing, too many or misnumbered no line can be trusted."""
    assert {p.reason for p in parse_letters(reply, 3)} == {"wrong_count"}


def test_one_bad_line_leaves_the_others() -> None:
    """Numbered answers stand each for itself."""
    parsed = parse_letters("1. B\n2. A and C\n3. D\n3. A", 3)
    assert [p.reason for p in parsed] == [None, "several_letters", "conflict"]
    assert parsed[0].value == "B"


def test_several_answers_know_their_options() -> None:
    """A contradiction between letter and text is seen in each question's own options."""
    options = [("red", "blue"), ("one", "two")]
    parsed = parse_letters("1. B: blue\n2. B: one", 2, options=options)
    assert [p.value for p in parsed] == ["B", None]
    assert parse_letters("1. B\n2.", 2, finish_reason="length")[0].reason == "truncated"


CARS = ("a red bicycle", "a blue car", "two dogs", "an empty street")


@pytest.mark.parametrize(
    "reply",
    [
        "Die richtige Antwort ist B.",
        "La respuesta correcta es B.",
        "La bonne réponse est B",
        "الإجابة الصحيحة هي B",
        "答えはBです。",
        "정답은 B입니다.",
        "【答案】B",
        "✅ B",
        "B ✓",
        "B\ufe0f",
        "Therefore, B.",
        "It's B",
        "B[/INST]",
        "B<｜end▁of▁sentence｜>",
        "<scratchpad>A?</scratchpad>B",
        "<|START_THINKING|>A<|END_THINKING|>B",
        '{"response": "B"}',
    ],
)
def test_more_forms_of_one_letter(reply: str) -> None:
    """A letter is read in other languages, behind thoughts and beside ticks."""
    assert parse_letter(reply, CARS).value == "B"


@pytest.mark.parametrize(
    "reply",
    [
        "A错误",
        "A: 错误",
        "A不是正确答案，B才是",
        "A选项不符合描述",
        "不选A",
        "A和B都可能",
        "A吗？不，是B",
        "答案：A。等等，应该是B。",
        "A, falsch",
        "Antwort: A oder B",
        "Die Antwort ist nicht A",
        "答えはAではない",
        "A: B",
        "A. B",
        "A: red bicycle. B: blue car. The caption says blue.",
        "A ✗ B ✓",
        "B, I think",
        "B (most likely)",
        "B, but not sure",
        "B. I'm not sure.",
        "It's a",
        '{"answer": "A"}\n{"answer": "B"}',
        "不是A，而是B",
        "B，不是A",
        "The answer is not A but B.",
    ],
)
def test_a_letter_that_is_denied_or_left_open_is_none(reply: str) -> None:
    """No letter is taken from words that deny it, weigh it or set another beside it."""
    assert parse_letter(reply, CARS).value is None


def test_letters_inside_an_option_are_its_own() -> None:
    """The option's own text may have letters that look like those of options."""
    options = ("Mr B. Jones", "Dr. A. Smith", "vitamin A or C", "none")
    assert parse_letter("B: Dr. A. Smith", options).value == "B"
    assert parse_letter("C. vitamin A or C", options).value == "C"


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("A. Mostly red", "A"),
        ("B: Partially open door", "B"),
        ("B: partially open", None),
        ("Answer: D. Half full", "D"),
        ("C. No, thanks", "C"),
        ("C, no, thanks, as the sign says", None),
        ("A. Mostly red, I think", None),
        ("D. Half full? Maybe", None),
        ("D, half open", None),
    ],
)
def test_doubt_in_an_options_own_words_is_no_doubt(reply: str, letter: str | None) -> None:
    """An option that is itself half, mostly or no is chosen by its letter and its text."""
    options = ("Mostly red", "Partially open door", "No, thanks", "Half full")
    assert parse_letter(reply, options).value == letter


@pytest.mark.parametrize(
    "reply",
    [
        "B because two wicks are named",
        "B, and not D",
        "(B). No other option fits.",
        "E. No information given",
        "E (not mentioned in the caption)",
        "E, since the caption is silent",
        "Two wicks are named. B",
        "Option A is wrong; option B fits.",
        "Two wicks, so **B** fits",
        "C: yes",
        "Two candles are named.",
    ],
)
def test_what_only_prose_says_is_asked_again(reply: str) -> None:
    """A letter inside of a sentence is not guessed at."""
    assert parse_letter(reply, OPTIONS).value is None


def test_half_of_the_abstention_is_nobody_elses_text() -> None:
    """Where an option has the words of half of E, they name two options, hence none."""
    options = ("Not mentioned", "red", "blue", "green")
    assert parse_letter("Not mentioned", options).value is None
    assert parse_letter("Cannot be determined", options).value == "E"
    assert parse_letter("Not mentioned", options, uncertain=None).value == "A"
