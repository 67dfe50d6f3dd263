"""The controls blind and swapped: what is asked, what is stored, and what the table says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.benchmark_files import png, question, write_card, write_lines
from tests.worlds.flows import flow

import snellen
from snellen.errors import UsageError
from snellen.flows import run_by_hand
from snellen.protocols.reading import ReadingOptions
from snellen.readers import load_benchmark
from snellen.records import Reply, Request
from snellen.runs.controls import derange
from snellen.runs.folder import Run, load_run
from snellen.runs.plan import GivenReplies, plan_for
from snellen.runs.request import RunRequest
from snellen.runs.run import execute
from snellen.studies.controls import Controlled, find_controlled, leaks
from snellen.tables.studies import controls_table, leaks_table
from snellen.tables.writers import texts

COLOURS = ("red", "green", "blue", "black")
Messages = list[dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Four pictures, each of one colour, with a colour question and one that betrays itself."""
    base = tmp_path / "bench"
    base.mkdir()
    write_card(base, "reading")
    images, questions = [], []
    for k, colour in enumerate(COLOURS):
        (base / f"{colour}.png").write_bytes(png((40 * k, 0, 0)))
        images.append({"image_id": colour, "image": f"{colour}.png", "l1": ["Art"], "l2": []})
        more: dict[str, Any] = {"region_id": None, "question": "Which colour is it?"}
        questions.append(question(k, colour, options=list(COLOURS), answer="ABCD"[k], **more))
        more["question"] = "Where is the sky above?"
        questions.append(
            question(10 + k, colour, options=["below", "above", "left", "right"], **more)
        )
    write_lines(base / "images.jsonl", images)
    write_lines(base / "questions.jsonl", questions)
    return str(base)


def judge(messages: Messages) -> str:
    """Finds the colour in the caption; else abstains, or the first option; knows the sky."""
    prompt = messages[-1]["content"]
    caption = prompt.split("<CAPTION>\n")[1].split("\n</CAPTION>")[0]
    options = {line[3:]: line[0] for line in prompt.splitlines() if line[1:3] == ". "}
    wanted = "above" if "sky" in prompt else next((c for c in COLOURS if c in caption), "")
    uncertain = options.get("Not mentioned / Cannot be determined")
    return options.get(wanted) or uncertain or "A"


def model(messages: Messages) -> str:
    """Names the colour that the picture's bytes stand for."""
    calls.append(1)
    return f"All {COLOURS[len(calls) - 1]}."


calls: list[int] = []


def run(folder: str, out: Path, **words: Any) -> Run:
    return snellen.run(folder, judge=judge, out=out, **words)


CAPTIONS = {colour: f"All {colour}." for colour in COLOURS}


def three_runs(folder: str, tmp_path: Path, orders: Sequence[int] = ()) -> Controlled:
    real = run(folder, tmp_path / "real", replies=CAPTIONS)
    swapped = run(folder, tmp_path / "swapped", replies=CAPTIONS, control="swapped")
    blind = [run(folder, tmp_path / "blind", control="blind")]
    blind += [run(folder, tmp_path / f"blind{k}", control="blind", option_order=k) for k in orders]
    [case] = find_controlled([real, *blind, swapped])
    return case


def test_blind_gives_an_empty_caption_and_no_way_out(folder: str) -> None:
    """No model call; the judge sees neither a caption nor E, and must choose."""
    item = load_benchmark(folder).items[0]
    seen: list[Request] = []
    outcome = run_by_hand(
        flow(item, ReadingOptions(control="blind")), lambda r: seen.append(r) or Reply("A")
    )
    assert {r.role for r in seen} == {"judge"}
    text = str(seen[0].messages[0].parts[0])
    assert "<CAPTION>\n\n</CAPTION>" in text
    assert "E. " not in text
    assert "Cannot be determined" not in text
    assert [v.correct for v in outcome.verdicts] == [True, False]
    assert (outcome.reply.reply, outcome.reply.variant) == ("", "blind")


def test_blind_does_not_take_e_for_an_answer(folder: str) -> None:
    """An E that was not offered is asked again and stays unscored."""
    item = load_benchmark(folder).items[0]
    outcome = run_by_hand(flow(item, ReadingOptions(control="blind")), lambda _: Reply("E"))
    assert {v.status for v in outcome.verdicts} == {"unscored"}


def test_swapping_gives_each_picture_another_ones_caption() -> None:
    """Every picture gives one caption and takes one, never its own, the same for the same seed."""
    names = [f"p{k}" for k in range(30)]
    donors = derange(names, 7)
    assert sorted(donors) == sorted(donors.values()) == sorted(names)
    assert all(name != donor for name, donor in donors.items())
    assert donors == derange(list(reversed(names)), 7)
    assert donors != derange(names, 8)
    with pytest.raises(UsageError, match="fewer than two"):
        derange(["alone"], 0)


def test_swapped_captions_are_read_and_their_donors_stored(folder: str, tmp_path: Path) -> None:
    """A committed answer from another's caption is wrong; the reply row names the donor."""
    done = run(folder, tmp_path / "out", replies=CAPTIONS, control="swapped")
    for (name, _), row in done.replies.items():
        donor = row.variant.removeprefix("swapped:")
        assert donor != name
        assert row.reply == CAPTIONS[donor]
    assert done.summary is not None
    assert done.summary.metrics["overall_acc"].value == 0.5
    assert done.summary.metrics["coverage"].value == 1.0
    assert any("control swapped" in note for note in done.summary.notes)


def test_a_live_model_is_asked_for_all_captions_before_any_is_swapped(
    folder: str, tmp_path: Path
) -> None:
    """Each picture is captioned once, and a second start on the folder asks nothing again."""
    calls.clear()
    words = {"model": model, "control": "swapped", "concurrency": 1}
    first = run(folder, tmp_path / "out", **words)
    rows = (tmp_path / "out/calls.jsonl").read_text(encoding="utf-8").splitlines()
    roles = [json.loads(row)["role"] for row in rows]
    assert roles == ["model"] * 4 + ["judge"] * 8
    second = run(folder, tmp_path / "out", **words)
    assert len(calls) == 4
    assert second.verdicts == first.verdicts
    assert {row.variant.partition(":")[0] for row in second.replies.values()} == {"swapped"}
    assert len((tmp_path / "out/replies.jsonl").read_text(encoding="utf-8").splitlines()) == 4


def test_a_swapped_run_that_is_judged_again_keeps_its_donors(folder: str, tmp_path: Path) -> None:
    """The stored captions are those of other pictures already and are not swapped back."""
    first = run(folder, tmp_path / "out", replies=CAPTIONS, control="swapped")
    given = GivenReplies("", first.replies)
    request = RunRequest(folder, tmp_path / "again", control="swapped", judge=judge)
    plan = plan_for(request, load_benchmark(folder), given=given)
    asyncio.run(execute(plan))
    assert load_run(tmp_path / "again").replies == first.replies


def test_the_table_sets_the_controls_beside_the_real_score(folder: str, tmp_path: Path) -> None:
    """Real 100%, blind 5 of 8, swapped 4 of 8; what is left without leaks is the colours' score."""
    case = three_runs(folder, tmp_path)
    table = controls_table(case)
    shown = {row[0].split(":")[0]: row[1:4] for row in texts(table)}
    assert shown["its own caption"] == ("100.0", "100.0", "100.0")
    assert shown["blind"] == ("62.5", "62.5", "100.0")
    assert shown["swapped"] == ("50.0", "50.0", "100.0")
    assert shown["its own, no-leak questions"] == ("100.0", "100.0", "100.0")
    assert table.rows[-1][-1] == 3
    assert any("guessing alone would flag 2" in note for note in table.notes)
    assert any("swapped minus blind: -12.5" in note for note in table.notes)
    assert any("several --option-order" in note for note in table.notes)


def test_several_option_orders_clear_a_lucky_guess(folder: str, tmp_path: Path) -> None:
    """A question that is right blind in one order only is no longer flagged as guessable."""
    case = three_runs(folder, tmp_path, orders=(1, 2, 3))
    found = leaks(case)
    guessable = {probe for (_, probe), leak in found.items() if leak.is_guessable}
    leaking = {probe for (_, probe), leak in found.items() if leak.is_leaking}
    assert guessable == leaking == {"q10", "q11", "q12", "q13"}
    assert {row[0] for row in leaks_table(case).rows} == guessable
    assert not any("several --option-order" in note for note in controls_table(case).notes)


def test_runs_without_controls_have_no_table(folder: str, tmp_path: Path) -> None:
    """A run alone, or beside a control on other pictures, gives nothing to set beside it."""
    real = run(folder, tmp_path / "real", replies=CAPTIONS)
    other = run(folder, tmp_path / "other", control="blind", limit=2)
    assert find_controlled([real]) == []
    assert find_controlled([real, other]) == []


@pytest.mark.parametrize(
    "words", [{"control": "no-image"}, {"control": "blind", "questions_a_call": 2}]
)
def test_what_makes_no_sense_is_refused(words: dict[str, Any]) -> None:
    """Controls of other protocols, and blind in batches, are errors of use."""
    with pytest.raises(UsageError):
        ReadingOptions(**words)
