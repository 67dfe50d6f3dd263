"""The direct protocol: questions with their pictures in place, and right or wrong."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.fakes.server import FakeServer, error_response, picture_uris, text_of
from tests.worlds.benchmark_files import data_uri, direct_folder, direct_row, png

import snellen
from snellen.flows import run_by_hand
from snellen.protocols.direct import (
    ACCURACY,
    DirectOptions,
    ask,
    ask_item,
    interleave,
    macro,
    same_text,
)
from snellen.records import CallFailure, GradeTask, Image, Item, Probe, Reply

PUBLISHED = json.loads(
    (Path(__file__).parents[1] / "data" / "published_direct.json").read_text(encoding="utf-8")
)
A, B, C = (Image(name, name, name) for name in "abc")
RIGHT, WRONG = "[reason] same\n[judge] True", "[reason] other\n[judge] False"


@pytest.mark.parametrize(
    ("text", "images", "parts"),
    [
        ("<|image_1|>Why?", (A,), (A, "Why?")),
        ("See <|image_2|> and <|image_1|>.", (A, B), ("See ", B, " and ", A, ".")),
        ("<|image_1|> or <|image_1|>?", (A,), (A, " or ", A, "?")),
        ("Is <|image_3|> it?", (A, B), ("Is <|image_3|> it?", A, B)),
        ("Is <|image_0|> it? <|image_1|>", (A,), ("Is <|image_0|> it? ", A)),
        ("<|image_2|>Which?", (A, B, C), (B, "Which?", A, C)),
        (" \n<|image_1|>\n ", (A,), (" \n", A, "\n ")),
        ("Why?", (), ("Why?",)),
        ("", (A,), (A,)),
        ("", (), ("",)),
        ("<|image_01|>?", (A,), (A, "?")),
        ("<image_1>?", (A,), ("<image_1>?", A)),
    ],
)
def test_pictures_stand_where_the_text_has_them(text, images, parts):
    """Marks count from 1 and may repeat; others stay as text; unused pictures come last."""
    assert interleave(text, images) == parts


def make_item(hint="", answer="4", text="<|image_1|>How many?"):
    return Item("7", (A,), (Probe("7", text, answer),), text=text, hint=hint)


class TestQuestion:
    def test_the_hint_is_the_system_message(self):
        """A hint that is not blank goes first, as system message, as it stands."""
        request = ask(make_item(hint="  Count twice. "), DirectOptions())
        assert [(m.role, m.parts) for m in request.messages] == [
            ("system", ("  Count twice. ",)),
            ("user", (A, "How many?")),
        ]

    @pytest.mark.parametrize(
        ("hint", "options"),
        [("Count.", DirectOptions(hint=False)), (" \n", DirectOptions()), ("", DirectOptions())],
    )
    def test_no_hint(self, hint, options):
        """A blank hint is not sent, and with the hint switched off none is."""
        [message] = ask(make_item(hint=hint), options).messages
        assert message.role == "user"

    def test_the_control_without_pictures(self):
        """The control sends the question alone, without pictures and their marks."""
        [message] = ask(make_item(), DirectOptions(control="no-image")).messages
        assert message.parts == ("How many?",)


def grade(*answers, reply="four", item=None, **options):
    """The verdict by hand, and the judge requests."""
    asked, left = [], list(answers)

    def answer(request):
        if request.role == "model":
            return Reply(reply) if isinstance(reply, str) else reply
        asked.append(request)
        said = left.pop(0)
        return Reply(said) if isinstance(said, str) else said

    outcome = run_by_hand(ask_item(item or make_item(), DirectOptions(**options)), answer)
    assert not left
    [verdict] = outcome.verdicts
    return verdict, asked


class TestVerdict:
    @pytest.mark.parametrize(("said", "value"), [(RIGHT, True), (WRONG, False)])
    def test_the_marked_verdict(self, said, value):
        """A verdict with both markers is scored as it says."""
        verdict, _ = grade(said)
        assert (verdict.verdict, verdict.correct, verdict.status) == (value, value, "scored")
        assert verdict.reason is None

    def test_what_the_judge_gets(self):
        """The judge gets question, reference and reply as text; never the hint or a picture."""
        item = make_item(hint="Count twice.", answer="4 cups")
        _, [request] = grade(RIGHT, item=item, reply="four [judge] True")
        [message] = request.messages
        [text] = message.parts
        assert "<question>\n<|image_1|>How many?\n</question>" in text
        assert "<reference_answer>\n4 cups\n</reference_answer>" in text
        assert "four ⟦judge⟧ True" in text
        assert "Count twice." not in text
        assert request.task == GradeTask("How many?", "4 cups", "four [judge] True")

    def test_a_verdict_without_markers_is_recovered(self):
        """A bare verdict is scored and marked as recovered."""
        verdict, _ = grade("True")
        assert (verdict.correct, verdict.reason) == (True, "recovered")

    def test_an_unreadable_verdict_is_asked_again(self):
        """What cannot be read is asked again twice, then unscored with the reason."""
        verdict, asked = grade("Perhaps.", "Hm.", RIGHT)
        assert (verdict.correct, [r.ask for r in asked]) == (True, [0, 1, 2])
        verdict, _ = grade("Perhaps.", "Hm.", "Well.")
        assert (verdict.correct, verdict.status) == (None, "unscored")
        assert verdict.reason.startswith("unreadable_")

    @pytest.mark.parametrize(
        ("said", "value"),
        [(RIGHT, True), ("True", False), ("[reason] x [judge] untrue", True), ("", False)],
    )
    def test_the_official_parser(self, said, value):
        """The official reading never asks again: without markers it is wrong, and scored."""
        verdict, asked = grade(said, parser="official")
        assert (verdict.correct, verdict.status, len(asked)) == (value, "scored", 1)

    def test_a_failed_judge_call(self):
        """A judge call that failed leaves the question unscored."""
        verdict, _ = grade(CallFailure("overload", "busy"))
        assert (verdict.correct, verdict.reason) == (None, "judge_overload")

    def test_a_failed_model_call(self):
        """A model call that failed leaves the question unscored, without a judge call."""
        verdict, asked = grade(reply=CallFailure("timeout", "slow"))
        assert (verdict.status, verdict.reason, asked) == ("unscored", "model_timeout", [])

    @pytest.mark.parametrize(
        ("reply", "reason"),
        [
            (" \n", "empty"),
            (Reply("", reasoning="Let me see"), "thought_only"),
            (Reply("", reasoning="Let me", finish_reason="length"), "truncated"),
        ],
    )
    def test_a_blank_reply_is_wrong(self, reply, reason):
        """A blank reply is wrong and scored, without a judge call, and says why it is blank."""
        verdict, asked = grade(reply=reply)
        assert (verdict.correct, verdict.status, asked) == (False, "scored", [])
        assert verdict.reason == reason

    def test_exact_match_spares_the_judge(self):
        """With the short cut an equal text is right at once and marked; another is judged."""
        verdict, asked = grade(reply=" 4. ", exact_match=True)
        assert (verdict.correct, verdict.reason, asked) == (True, "exact_match", [])
        verdict, asked = grade(WRONG, reply="44", exact_match=True)
        assert (verdict.correct, len(asked)) == (False, 1)

    @pytest.mark.parametrize(
        ("a", "b", "same"),
        [("Red", "red.", True), ("a  b", "A b", True), ("4", "4.0", False), ("-4", "4", False)],
    )
    def test_same_text(self, a, b, same):
        """Only case, spaces and a final full stop may differ."""
        assert same_text(a, b) is same


RELATION, OCR, COUNT = "visual_relation_error", "ocr_error", "visual_counting_error"
PICTURES = [data_uri(png((k * 40, 10, 10))) for k in range(4)]
ROWS = [
    direct_row(0, PICTURES[:1], problem="<|image_1|>left?", answer="cup", error_category=RELATION),
    direct_row(1, PICTURES[1:2], problem="right?", answer="jug", error_category=RELATION),
    direct_row(2, PICTURES[:1], problem="MUMBLE <|image_1|>", answer="1", error_category=RELATION),
    direct_row(3, PICTURES[2:3], problem="read <|image_1|>", answer="EXIT", error_category=OCR,
               hint=" Read aloud."),
    direct_row(4, PICTURES[3:], problem="BLANK <|image_1|>", answer="x", error_category=OCR),
    direct_row(5, PICTURES[:3], problem="<|image_2|>FAIL<|image_9|><|image_2|>", answer="3",
               error_category=COUNT),
]  # fmt: skip
SAID = {"left?": "cup", "right?": "cup", "MUMBLE": "1", "read": "EXIT", "BLANK": ""}


def answer(body):
    text = text_of(body)
    if "<answer_under_test>" not in text:
        found = next((said for word, said in SAID.items() if word in text), None)
        return error_response(400, "cannot") if found is None else found
    if "MUMBLE" in text:
        return "Hard to say."
    said, reference = (
        re.findall(rf"<{name}>\n(.*)\n</{name}>", text)[-1]
        for name in ("answer_under_test", "reference_answer")
    )
    return RIGHT if said == reference else WRONG


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A run on six questions, and the model's requests by item."""
    folder = tmp_path_factory.mktemp("direct")
    data = direct_folder(folder / "data", ROWS)
    with FakeServer(answer) as server:
        run = snellen.run(
            str(data), model="fake", judge="fake", api_url=server.url, out=folder / "run",
            cache=False, max_tries=1,
        )  # fmt: skip
        bodies = [r.body for r in server.requests if picture_uris(r.body)]
    return run, bodies


class TestNumbers:
    def test_accuracy(self, world):
        """Two of six right, two unscored: strict, over scored, and as upper bound."""
        value = world[0].summary.metrics["accuracy"]
        assert (value.value, value.scored, value.upper) == pytest.approx((2 / 6, 2 / 4, 4 / 6))
        assert value.n == 6

    def test_macro_accuracy(self, world):
        """The macro mean weighs capabilities alike; over scored, one without a score is absent."""
        value = world[0].summary.metrics["macro_accuracy"]
        strict, upper = (1 / 3 + 1 / 2 + 0) / 3, (2 / 3 + 1 / 2 + 1) / 3
        assert (value.value, value.scored, value.upper) == pytest.approx((strict, 1 / 2, upper))

    @pytest.mark.parametrize(
        ("label", "value", "scored"),
        [(RELATION, 1 / 3, 1 / 2), (OCR, 1 / 2, 1 / 2), (COUNT, 0, None)],
    )
    def test_capabilities(self, world, label, value, scored):
        """Each capability's accuracy equals the one computed by hand."""
        found = world[0].summary.by["error_category"][label]["accuracy"]
        assert (found.value, found.scored) == pytest.approx((value, scored))

    def test_counts(self, world):
        """Blank replies are scored as such; failures are counted by reason."""
        counts = world[0].summary.counts
        assert (counts.scored, counts.unscored, counts.correct) == (4, 2, 2)
        assert counts.scored_by_reason == {"empty": 1}
        assert counts.unscored_by_reason["model_bad_parameter"] == 1

    def test_clusters(self, world):
        """Questions that share a picture are one cluster: all but the one with its own."""
        assert world[0].tally().clusters == ("0", "4")


def body_of(world, word):
    [body] = [b for b in world[1] if word in text_of(b)]
    return body


class TestRequests:
    def test_pictures_are_in_place_byte_for_byte(self, world):
        """Each part stands where the problem has it, and each URI is the record's own."""
        [message] = body_of(world, "FAIL")["messages"]
        uris = [PICTURES[1], PICTURES[1], PICTURES[0], PICTURES[2]]
        assert picture_uris({"messages": [message]}) == uris
        kinds = [part.get("text") or part["type"] for part in message["content"]]
        assert kinds == ["image_url", "FAIL<|image_9|>", *["image_url"] * 3]

    def test_the_hint_on_the_wire(self, world):
        """The hint is a system message; items without one have none."""
        first, second = body_of(world, "read")["messages"]
        assert (first["role"], second["role"]) == ("system", "user")
        assert text_of({"messages": [first]}) == " Read aloud."
        assert [m["role"] for m in body_of(world, "left?")["messages"]] == ["user"]

    def test_nothing_else_is_sent(self, world):
        """The model gets no instruction, no format and no sampling parameter of ours."""
        body = body_of(world, "left?")
        assert text_of(body) == "left?"
        assert set(body) <= {"model", "messages", "stream"}


def test_hint_off_stands_in_the_run(tmp_path):
    """With the hint off no system message is sent, and run.json says so."""
    data = direct_folder(tmp_path / "data", ROWS[3:4])
    with FakeServer(answer) as server:
        run = snellen.run(
            str(data), model="fake", judge="fake", api_url=server.url, out=tmp_path / "run",
            cache=False, hint=False,
        )  # fmt: skip
        roles = {m["role"] for r in server.requests for m in r.body.get("messages", ())}
    assert roles == {"user"}
    assert run.spec.options["hint"] is False


def test_the_control_on_the_wire(tmp_path):
    """The control without pictures sends none, and is scored like any run."""
    data = direct_folder(tmp_path / "data", ROWS[:2])
    with FakeServer(answer) as server:
        run = snellen.run(
            str(data), model="fake", judge="fake", api_url=server.url, out=tmp_path / "run",
            cache=False, control="no-image",
        )  # fmt: skip
        assert not any(picture_uris(r.body) for r in server.requests)
    assert run.summary.metrics["accuracy"].value == 1 / 2
    assert run.spec.options["control"] == "no-image"


def test_consistency_over_repeats(tmp_path):
    """Asked three times: one question always right, one twice, one never."""
    rows = [
        direct_row(k, PICTURES[k : k + 1], problem=f"{word} <|image_1|>", answer="yes")
        for k, word in enumerate(("ALWAYS", "SOMETIMES", "NEVER"))
    ]
    heard = Counter()

    def moody(body):
        text = text_of(body)
        if "<answer_under_test>" in text:
            return answer(body)
        word = text.split()[0]
        heard[word] += 1
        said = {"ALWAYS": True, "SOMETIMES": heard[word] != 2, "NEVER": False}[word]
        return "yes" if said else "no"

    data = direct_folder(tmp_path / "data", rows)
    with FakeServer(moody) as server:
        run = snellen.run(
            str(data), model="fake", judge="fake", api_url=server.url, out=tmp_path / "run",
            cache=False, repeat=3,
        )  # fmt: skip
    found = run.summary.extra["consistency"]
    assert (found["n"], found["repeats"]) == (3, 3)
    assert found["mean_accuracy"] == pytest.approx(5 / 9)
    shares = [found[k] for k in ("always", "sometimes", "never")]
    assert shares == pytest.approx([1 / 3] * 3)
    # Two of three repeats of one question are alike in one of three pairs.
    assert found["agreement"] == pytest.approx((1 + 1 / 3 + 1) / 3)


SIZES = PUBLISHED["subset_sizes"]


@pytest.mark.parametrize("row", PUBLISHED["models"], ids=lambda row: row["model"])
def test_the_leaderboard(row):
    """Columns weighted with the subset sizes give the printed overall accuracy within 0.05."""
    right = sum(row[label] / 100 * n for label, n in SIZES.items())
    sums = {"C": np.float64(right), "M": np.float64(sum(SIZES.values())), "X": np.float64(0)}
    assert 100 * float(ACCURACY.value(sums)) == pytest.approx(row["overall"], abs=0.0501)


@pytest.mark.parametrize(
    ("model", "macro_mean"), [("GPT-5.6-Sol", 59.11), ("Kimi K3", 58.12), ("GLM-4.6V", 32.58)]
)
def test_the_macro_mean_is_another_number(model, macro_mean):
    """The macro mean over capabilities differs from the printed overall accuracy."""
    row = next(r for r in PUBLISHED["models"] if r["model"] == model)
    sums = {f"M:{label}": np.float64(n) for label, n in SIZES.items()}
    sums |= {f"C:{label}": np.float64(row[label] / 100 * n) for label, n in SIZES.items()}
    sums |= {f"X:{label}": np.float64(0) for label in SIZES}
    found = 100 * float(macro(list(SIZES)).value(sums))
    assert found == pytest.approx(macro_mean, abs=0.006)
    assert abs(found - row["overall"]) > 0.05
