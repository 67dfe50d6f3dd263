"""What a benchmark holds, counted as the paper counts; the paper's own numbers add up."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.worlds.capprobe_world import config, construct, paint

from snellen.builders.counts import DataCounts, count, reduction, shares
from snellen.builders.rows import Label, PictureRow, QuestionRow, Shot
from snellen.construction.files import StageRecord
from snellen.construction.statistics import data_counts
from snellen.errors import DataError
from snellen.readers import taxonomy

# Source: CapProbe, sections 3.5 to 3.8.
RAW, ACROSS, WITHIN, UNIQUE = 50_902, 3_268, 8_507, 39_127
POOL, BALANCED, KEPT = (664, 39_127), (346, 26_062), 25_650


def test_the_papers_funnel_adds_up() -> None:
    """50,902 - 3,268 - 8,507 = 39,127: a fall of 23.1% by these counts, and 23.2% as printed."""
    dedup = StageRecord(
        "dedup", RAW, UNIQUE, ACROSS + WITHIN,
        reasons={"duplicate_in_picture": ACROSS, "duplicate_in_region": WITHIN},
    )  # fmt: skip
    assert dedup.adds_up
    assert round(100 * reduction(RAW, UNIQUE), 1) == 23.1
    balance = StageRecord("balance", POOL[1], BALANCED[1], POOL[1] - BALANCED[1],
                          reasons={"over_subdomain_cap": 13_065})  # fmt: skip
    assert balance.adds_up
    review = StageRecord("review", BALANCED[1], KEPT, 412, reasons={"deleted_by_people": 412})
    assert review.adds_up
    assert round(100 * reduction(BALANCED[1], KEPT), 1) == 1.6
    assert not StageRecord("review", 26_062, 25_650, 411).adds_up


def test_the_papers_averages_follow_from_its_counts() -> None:
    """346 images, 1,868 regions, 25,650 questions: 5.4, 13.7 and 74 as printed."""
    found = DataCounts(BALANCED[0], 1_868, KEPT, {}, {}, {})
    assert found.regions_an_image == pytest.approx(5.4, abs=0.05)
    assert found.questions_a_region == pytest.approx(13.7, abs=0.05)
    assert found.questions_an_image == pytest.approx(74, abs=0.5)
    assert round(RAW / 1_868 / 2) == 14


def test_apparel_stands_under_two_domains() -> None:
    """The built-in taxonomy has 37 domains and 219 pairs; labels are pairs for that reason."""
    known = taxonomy()
    pairs = [(l1, l2) for l1, subs in known.items() for l2 in subs]
    assert (len(known), len(set(pairs))) == (37, 219)
    assert {l1 for l1, l2 in pairs if l2 == "Apparel"} == {"Daily Necessities", "Shopping"}


def test_counts_are_of_what_has_questions() -> None:
    """A picture without a question counts nowhere; one with two labels under both."""
    labels = (Label("A", "x"), Label("B", "x"))
    pictures = [
        PictureRow(id=n, name=n, file=Shot(n, "0"), width=1, height=1, labels=labels) for n in "pq"
    ]
    rows = [
        QuestionRow(id=f"{k}", image_id="p", region_id=f"r{k % 2}", category="Count", question="?",
                    options=("1", "2", "3", "4"), answer="A", generator="g", index=k)
        for k in range(3)
    ]  # fmt: skip
    found = count(pictures, rows)
    assert (found.images, found.regions, found.questions) == (1, 2, 3)
    assert found.subdomains == {"A": {"x": 1}, "B": {"x": 1}}
    assert found.share("Count") == 1.0
    assert count([], []).questions_an_image is None
    assert shares({"a": 1, "b": 3}) == {"a": 0.25, "b": 0.75}
    assert shares({}) == {}


def test_a_folder_and_its_benchmark_have_the_same_counts(tmp_path: Path) -> None:
    """Whether read from the stages or from the exported files."""
    out = tmp_path / "out"
    with pytest.raises(DataError):
        data_counts(tmp_path)
    construct(paint(tmp_path / "in", 1), out, until="question")
    before, stage = data_counts(out)
    assert (stage, before.images) == ("question", 1)
    construct(tmp_path / "in", out, config=config())
    built, stage = data_counts(out)
    exported, source = data_counts(out / "benchmark")
    assert (stage, source) == ("review", "benchmark")
    assert built == exported
