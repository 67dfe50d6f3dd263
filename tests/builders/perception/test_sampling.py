"""The draw of a sample: balanced, mixed, stratified, and the same for the same seed."""

from __future__ import annotations

from collections import Counter

from snellen.builders.perception.rows import AtomicRow, Origin
from snellen.builders.perception.sampling import drawn, even_shares, mixed
from snellen.builders.rows import Shot


def rows(label: str, origin: Origin, stratum: str, n: int) -> list[AtomicRow]:
    return [
        AtomicRow(
            id=f"{label}.{origin}.{stratum}.{k}", files=(Shot("a", "b"),), problem="p", answer="a",
            error_category=label, origin=origin, writer="w", stratum=stratum,
        )
        for k in range(n)
    ]  # fmt: skip


def test_even_shares_by_hand() -> None:
    """Ten over 2, 9 and 9: the small one gives all; what does not divide goes to the first."""
    assert even_shares(10, {"a": 2, "b": 9, "c": 9}) == {"a": 2, "b": 4, "c": 4}
    assert even_shares(11, {"a": 2, "b": 9, "c": 9}) == {"a": 2, "b": 5, "c": 4}
    assert even_shares(0, {"a": 3}) == {"a": 0}
    assert even_shares(9, {}) == {}


def test_the_mix_by_hand() -> None:
    """60 to 40 where there are enough of both, else as many as there are."""
    assert mixed(330, decomposed=1000, new=1000, new_share=0.4) == (198, 132)
    assert mixed(10, decomposed=2, new=20, new_share=0.4) == (2, 8)
    assert mixed(10, decomposed=3, new=3, new_share=0.4) == (3, 3)


def test_a_sample_by_hand() -> None:
    """Twenty of two capabilities: ten each, six and four, two of each difficulty of the old."""
    pool = [
        row
        for label in ("ocr_error", "hallucination")
        for origin, n in (("decomposed", 9), ("new", 6))
        for stratum in ("easy", "medium", "hard")
        for row in rows(label, origin, stratum, n)  # type: ignore[arg-type]
    ]
    found = drawn(pool, 20, new_share=0.4, seed=3)
    assert Counter(row.error_category for row in found) == {"ocr_error": 10, "hallucination": 10}
    assert Counter(row.origin for row in found) == {"decomposed": 12, "new": 8}
    old = Counter((r.error_category, r.stratum) for r in found if r.origin == "decomposed")
    assert set(old.values()) == {2}
    new = Counter(r.stratum for r in found if r.origin == "new" and r.error_category == "ocr_error")
    assert new == {"hard": 2, "medium": 1, "easy": 1}
    assert drawn(pool, 20, new_share=0.4, seed=3) == found
    assert drawn(list(reversed(pool)), 20, new_share=0.4, seed=3) == found[::-1]
    assert drawn(pool, 20, new_share=0.4, seed=4) != found
    assert drawn(pool, 0, new_share=0.4, seed=3) == tuple(pool)


def test_a_thin_capability_gives_what_it_has() -> None:
    """The others fill the size."""
    pool = rows("ocr_error", "new", "easy", 2) + rows("hallucination", "new", "hard", 20)
    found = drawn(pool, 10, new_share=0.4, seed=0)
    assert Counter(row.error_category for row in found) == {"ocr_error": 2, "hallucination": 8}
