"""What a built benchmark is made of: rings of domains; bars of categories and capabilities.

Source: CapProbe, figures 2 and 3; PerceptionRubrics, the domains of its images; PerceptionBench,
the sizes of its subsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from snellen.figures import bars, rings
from snellen.figures.chart import Chart
from snellen.figures.style import ability

if TYPE_CHECKING:
    from snellen.builders.counts import DataCounts
    from snellen.builders.perception.counts import PerceptionCounts
    from snellen.builders.rubrics.counts import RubricCounts


def domain_rings(counts: DataCounts) -> Chart | None:
    """Domains inside and sub-domains outside, each sector as large as its share of the images.

    An image with two labels counts under both. None where no image has a label.
    """
    nested = counts.subdomains or {name: {"": n} for name, n in counts.domains.items()}
    if not any(n for subs in nested.values() for n in subs.values()):
        return None
    n_subs = sum(map(len, nested.values()))
    text = f"{len(nested)} domains and {n_subs} sub-domains of {counts.images:,} images."
    figure = rings.domain_rings(nested)
    return Chart("domains", "Domains and sub-domains", text, figure)


def category_bars(counts: DataCounts) -> Chart | None:
    """The share of each of the ten categories among all questions; None without a question."""
    if not counts.questions:
        return None
    text = f"{counts.questions:,} questions in ten categories."
    figure = bars.share_bars(counts.categories)
    return Chart("categories", "Questions by category", text, figure)


def rubric_bars(counts: RubricCounts) -> Chart | None:
    """The share of each domain among the images of rubrics; None without an image."""
    if not counts.images:
        return None
    text = f"{counts.images:,} images with {counts.rubrics:,} rubrics."
    return Chart(
        "domains", "Images by domain", text, bars.share_bars(counts.domains, unit="images")
    )


def capability_bars(counts: PerceptionCounts) -> Chart | None:
    """The share of each capability among the questions; None without a question."""
    if not counts.questions:
        return None
    text = f"{counts.questions:,} questions, {counts.decomposed:,} of them from failures."
    shown = {ability(name): one.questions for name, one in counts.capabilities.items()}
    return Chart("capabilities", "Questions by capability", text, bars.share_bars(shown))
