"""The bias of discarding, and the counts that the paper prints."""

from __future__ import annotations

from snellen.builders.rows import Shot
from snellen.builders.rubrics.counts import Described, count_rubrics
from snellen.builders.rubrics.discards import discard_report
from snellen.builders.rubrics.rows import ScoredRow


def scored(number: int, domain: str, complexity: int) -> ScoredRow:
    return ScoredRow(
        id=f"p{number}", name="x", file=Shot("x", "y"), width=1, height=1, domain=domain,
        complexity=complexity, informativeness=complexity - 1,
    )  # fmt: skip


PICTURES = [scored(1, "Natural Scene", 3), scored(2, "Natural Scene", 5),
            scored(3, "Document/OCR", 8), scored(4, "Document/OCR", 10)]  # fmt: skip


def test_discards_are_counted_by_domain_and_complexity() -> None:
    """Two of four, one a band; the rest is simpler by what the means differ."""
    report = discard_report(PICTURES, {"p3", "p4"})
    assert (report.whole.pictures, report.whole.discarded, report.whole.share) == (4, 2, 0.5)
    assert report.domains["Document/OCR"].share == 1.0
    assert report.domains["Natural Scene"].discarded == 0
    assert {band: group.discarded for band, group in report.complexity.items()} == {
        "low": 0, "medium": 0, "high": 2
    }  # fmt: skip
    assert report.complexity_difference == 4.0 - 6.5
    assert report.informativeness_difference == 3.0 - 5.5
    assert report.mix_distance == 0.5


def test_chance_tells_a_biased_discard_from_a_plain_one() -> None:
    """Dropping the most complex half is rare by chance; dropping every other one is not."""
    many = [scored(k, "Natural Scene", 1 + k % 10) for k in range(40)]
    dense = discard_report(many, {one.id for one in many if one.complexity > 5})
    every = discard_report(many, {f"p{k}" for k in range(0, 40, 4)})
    assert dense.chance is not None
    assert every.chance is not None
    assert dense.chance < 0.01
    assert every.chance > 0.2


def test_nothing_kept_and_nothing_discarded_have_no_difference() -> None:
    """The means of no pictures are None; of all they differ by nothing."""
    none = discard_report(PICTURES, {"p1", "p2", "p3", "p4"})
    assert (none.complexity_difference, none.mix_distance, none.chance) == (None, None, None)
    everything = discard_report(PICTURES, set())
    assert (everything.complexity_difference, everything.mix_distance) == (0.0, 0.0)


def test_counts_are_those_that_the_paper_prints() -> None:
    """Words a caption, statements of both streams an image, and images a domain."""
    counts = count_rubrics([
        Described("STEM/Expert", 100, 3, 6), Described("Digital UI/UX", 300, 5, 8),
        Described("Digital UI/UX", 500, 4, 4),
    ])  # fmt: skip
    assert (counts.images, counts.rubrics) == (3, 30)
    assert counts.an_image(counts.must_right) == 4.0
    assert counts.an_image(counts.easy_wrong) == 6.0
    assert (counts.words_mean, counts.words_median, counts.words_most) == (300.0, 300.0, 500)
    assert counts.must_right_range == (3, 5)
    assert list(counts.domains.items()) == [("Digital UI/UX", 2), ("STEM/Expert", 1)]
