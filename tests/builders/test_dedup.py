"""Duplicates among questions: against a plain quadratic reference, and in hand-made cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from snellen.builders.dedup import (
    best,
    calibrate,
    deduplicate,
    embedded_text,
    folded,
    signs,
    unit_vectors,
)
from snellen.builders.options import DedupOptions
from snellen.builders.rows import QuestionRow
from snellen.errors import DataError

WORDS = (
    "What colour is the cup at the left?",
    "What colour is the cup at the right?",
    "What is the cup made of, at the top?",
    "How many red cups are near the door?",
)


def question(
    name: str,
    region: str = "r1",
    *,
    text: str = WORDS[0],
    right: str = "red",
    generator: str = "a",
    index: int = 1,
) -> QuestionRow:
    return QuestionRow(
        id=name, image_id="i", region_id=region, category="Attributes", question=text,
        options=(right, "wrong one", "wrong two", "wrong three"), answer="A",
        generator=generator, index=index,
    )  # fmt: skip


def reference(
    rows: Sequence[QuestionRow], vectors: NDArray[Any], options: DedupOptions
) -> dict[str, tuple[str, str]]:
    """What is removed and by whom, one pair after the other: no matrix, no shortcut."""
    unit = {
        row.id: vector / np.linalg.norm(vector)
        for row, vector in zip(rows, vectors.astype(float), strict=True)
    }
    ordered = sorted(rows, key=lambda row: (row.region_id, row.generator, row.index, row.id))
    gone: dict[str, tuple[str, str]] = {}
    for level, above in (("across", options.across), ("within", options.within)):
        alive = [row for row in ordered if row.id not in gone]
        here: dict[str, tuple[str, str]] = {}
        for place, later in enumerate(alive):
            for earlier in alive[:place]:
                if level == "within" and earlier.region_id != later.region_id:
                    continue
                if options.kept_only and earlier.id in here:
                    continue
                if round(float(np.dot(unit[earlier.id], unit[later.id])), 6) <= above:
                    continue
                if folded(earlier.right) != folded(later.right):
                    continue
                if options.guard and signs(earlier.question) != signs(later.question):
                    continue
                here[later.id] = (earlier.id, level)
                break
        gone |= here
    return gone


@pytest.mark.slow
def test_it_equals_the_plain_reference_on_2000_random_cases() -> None:
    """Whatever the vectors, answers, words and switches: the same removals, the same partners."""
    rng = np.random.default_rng(0)
    n_removed = 0
    for _ in range(2000):
        n = int(rng.integers(1, 12))
        centres = rng.normal(size=(3, 6))
        vectors = centres[rng.integers(3, size=n)] + rng.normal(size=(n, 6)) * 0.35
        rows = [
            question(
                f"q{k}",
                f"r{rng.integers(3)}",
                text=WORDS[rng.integers(len(WORDS))],
                right=("red", "blue")[rng.integers(2)],
                generator="ab"[rng.integers(2)],
                index=int(rng.integers(5)),
            )
            for k in range(n)
        ]  # fmt: skip
        options = DedupOptions(
            across=0.9, within=0.85, guard=bool(rng.integers(2)), kept_only=bool(rng.integers(2))
        )
        done = deduplicate(rows, vectors.astype(np.float32), options)
        found = {one.id: (one.partner, one.level) for one in done.removals}
        assert found == reference(rows, vectors.astype(np.float32), options)
        assert {row.id for row in done.kept} | set(found) == {row.id for row in rows}
        n_removed += len(found)
    assert n_removed > 1000


def test_the_order_of_rows_is_no_matter() -> None:
    """The same questions in any order leave the same ones, with the same similarities."""
    rng = np.random.default_rng(1)
    rows = [question(f"q{k}", f"r{k % 3}", index=k) for k in range(40)]
    vectors = rng.normal(size=(40, 4)) + np.array([2, 0, 0, 0])
    first = deduplicate(rows, vectors, DedupOptions())
    order = rng.permutation(40)
    again = deduplicate([rows[k] for k in order], vectors[order], DedupOptions())
    assert first == again


def test_a_similarity_at_the_threshold_stays() -> None:
    """Only what is strictly above the threshold is a duplicate."""
    rows = [question("a"), question("b", index=2)]
    vectors = np.array([[1.0, 0.0], [0.6, 0.8]])
    assert not deduplicate(rows, vectors, DedupOptions(across=0.6, within=0.6)).removals
    [gone] = deduplicate(rows, vectors, DedupOptions(across=0.59, within=0.6)).removals
    assert (gone.id, gone.partner, gone.similarity) == ("b", "a", 0.6)


def test_other_regions_count_on_the_first_level_only() -> None:
    """At 0.87 two questions of one region are alike, of two regions they are not."""
    far = np.array([[1.0, 0.0], [0.87, np.sqrt(1 - 0.87**2)]])
    apart = [question("a"), question("b", "r2")]
    together = [question("a"), question("b", index=2)]
    assert not deduplicate(apart, far, DedupOptions()).removals
    assert deduplicate(together, far, DedupOptions()).removals[0].level == "within"


def test_other_answers_and_other_directions_stay() -> None:
    """Equal vectors: what differs in its answer's text or in left and right is kept, and counted.

    A difference in the letter of the answer alone is none.
    """
    same = np.ones((2, 3))
    answers = [question("a", right="red"), question("b", right="blue", index=2)]
    done = deduplicate(answers, same, DedupOptions())
    assert (len(done.kept), done.kept_by_answer > 0) == (2, True)
    sides = [question("a", text="Who is left of the bus?"),
             question("b", text="Who is right of the bus?", index=2)]  # fmt: skip
    done = deduplicate(sides, same, DedupOptions())
    assert (len(done.kept), done.kept_by_guard > 0) == (2, True)
    assert len(deduplicate(sides, same, DedupOptions(guard=False)).kept) == 1
    moved = QuestionRow(
        id="c", image_id="i", region_id="r1", category="Count", question=WORDS[0],
        options=("wrong one", "red", "wrong two", "wrong three"), answer="B", generator="a",
        index=3,
    )  # fmt: skip
    assert len(deduplicate([question("a"), moved], same, DedupOptions()).kept) == 1


def test_a_chain_is_cut_where_only_kept_ones_are_compared() -> None:
    """a~b and b~c, but not a~c: c goes with b in the paper's way, and stays with `kept_only`."""
    rows = [question(name, index=k) for k, name in enumerate("abc")]
    angles = np.deg2rad([0, 20, 40])
    vectors = np.stack([np.cos(angles), np.sin(angles)], 1)
    assert [r.id for r in deduplicate(rows, vectors, DedupOptions()).kept] == ["a"]
    kept_only = DedupOptions(kept_only=True)
    assert [r.id for r in deduplicate(rows, vectors, kept_only).kept] == ["a", "c"]


@pytest.mark.parametrize(
    ("vectors", "complaint"),
    [
        ([[1.0, 0.0], [np.nan, 1.0]], "question b is not finite"),
        ([[1.0, 0.0], [np.inf, 1.0]], "question b is not finite"),
        ([[1.0, 0.0], [0.0, 0.0]], "question b is zero"),
        ([[1.0], [0.5]], r"expected 2 embeddings of one length, found an array of \(2, 1\)"),
        ([[1.0, 0.0]], "expected 2 embeddings"),
    ],
)
def test_a_broken_embedding_is_an_error_that_names_its_question(
    vectors: list[list[float]], complaint: str
) -> None:
    """A vector that is no number, zero or short is never like everything."""
    with pytest.raises(DataError, match=complaint):
        unit_vectors(np.array(vectors), [question("a"), question("b")])


def test_nothing_gives_nothing() -> None:
    """No question needs no vector."""
    assert deduplicate([], np.zeros((0, 0)), DedupOptions()).kept == ()


def test_options_are_embedded_with_the_question() -> None:
    """The text is the question and all options, without letters."""
    assert embedded_text(question("a")) == f"{WORDS[0]} red wrong one wrong two wrong three"


def test_thresholds_are_calibrated_on_labelled_pairs() -> None:
    """Precision, recall and F1 of each threshold; the best one parts the two kinds."""
    found = calibrate([0.97, 0.93, 0.92, 0.88, 0.7], [True, True, False, False, False])
    chosen = best(found)
    assert (chosen.value, chosen.precision, chosen.recall) == (0.92, 1.0, 1.0)
    low = found[0]
    assert (low.value, low.precision, low.recall) == (0.5, 0.4, 1.0)
    with pytest.raises(DataError, match="all alike"):
        calibrate([0.9], [True])
