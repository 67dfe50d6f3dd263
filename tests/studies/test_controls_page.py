"""The page about controls shows what the code gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.controls_mini import PAGE, mini_case, page_with, shown_part

from snellen.studies.controls import leaks


@pytest.mark.slow
def test_the_page_shows_the_table_and_the_controls_do_what_they_should(tmp_path: Path) -> None:
    """The captioner's own score is far above both controls, and blind is near chance."""
    case = mini_case(tmp_path)
    assert PAGE.read_text(encoding="utf-8") == page_with(shown_part(case)), (
        "make it anew: python benchmarks/controls_mini.py --write"
    )
    found = list(leaks(case).values())
    blind = sum(leak.blind or 0.0 for leak in found) / len(found)
    swapped = sum(leak.swapped or 0.0 for leak in found) / len(found)
    assert case.real.summary is not None
    own = case.real.summary.metrics["overall_acc"].value
    assert own is not None
    assert own > blind + 0.3
    assert swapped < blind
    assert 0.15 < blind < 0.35
